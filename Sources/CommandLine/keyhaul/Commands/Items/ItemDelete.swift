import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item delete`: deletes the matching items of a keychain.
struct ItemDelete: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Delete items from a device, a backup or a Simulator's keychain",
    usage: "keyhaul item delete DEVICE|BACKUP [attributes] [--yes] [-o COPY]",
    examples: [
      "keyhaul item delete old-phone --service chat.example --account anna",
      "keyhaul item delete old-phone --access-group '*.example.chat' -n",
      "keyhaul item delete family.backup --service chat.example --account anna",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * matches any text"), "--kind", "--yes",
      .init("--password-file", "the backup's password, if the items are in a backup"),
      .init("--output, --in-place", "change a copy, or the backup itself"),
      "--dry-run", "--json",
    ])
  static let configuration = makeConfiguration(named: "delete")

  @Option(help: ItemFilterOptions.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "If the items are in a backup") var change: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var filter: ItemFilterOptions { ItemFilterOptions(kind: kind, attributes: attributes) }

  func run(in session: Session) throws -> CommandExitStatus {
    let selection = try ItemSelection(filter).required(to: "delete")
    let keychain = try target.edit(selection, accessOptions, change, to: "delete", isDryRun: dryRun.isOn, in: session)
    let entries = try keychain.entries(for: nil, in: session)
    guard !entries.isEmpty else {
      session.info("No item \(keychain.preposition) \(UntrustedText.escaped(target.keychain)) matches.")
      if session.isJSON { try session.writeDocument(keychain.document, of: [], outcome: outcome(0)) }
      return .noMatch
    }
    let (items, name) = (HumanReadable.count(entries.count, "item"), UntrustedText.escaped(keychain.name))
    if dryRun.isOn {
      try session.announce("Would delete \(items) from \(name):")
      try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
    } else {
      let object = entries.count == 1 ? "this item" : "these \(items)"
      try session.confirm(
        "Delete \(object) from \(name)\(change.output == nil ? "" : " in the copy")?",
        action: "deleting \(items) from \(name)",
        showing: FoundItemTable.table(of: entries, style: session.messageStyle).lines(style: session.messageStyle))
    }
    let clause = "\(items) \(entries.count == 1 ? "was" : "were") deleted from \(keychain.name)"
    _ = try keychain.apply(
      .delete(entries), isDryRun: dryRun.isOn, reportedAs: ItemAdd.committedChange(clause, on: keychain.name),
      in: session)
    if !dryRun.isOn {
      for entry in entries { session.debug("deleted \(ItemText.line(of: entry))") }
      try session.announce("Deleted \(items) from \(name)\(keychain.ending).")
    }
    if session.isJSON {
      try session.writeDocument(keychain.document, of: entries, outcome: outcome(dryRun.isOn ? 0 : entries.count))
    }
    return .ok
  }

  private func outcome(_ count: Int) -> [(String, JSONValue)] {
    [("deleted", .count(count))] + change.members + (dryRun.isOn ? [("dry_run", true)] : [])
  }
}
