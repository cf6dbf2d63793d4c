import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item delete`: the items of a device that have these attributes go.
struct ItemDelete: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Delete items from a device, a backup or a Simulator's keychain",
    usage: "keyhaul item delete DEVICE|BACKUP [attributes] [--yes]",
    examples: [
      "keyhaul item delete old-phone --service chat.example --account anna",
      "keyhaul item delete old-phone --access-group '*.example.chat' -n",
      "keyhaul item delete family.backup --service chat.example --account anna",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * matches any text"), "--kind", "--yes",
      .init("--password-file", "the backup's password, if the items are in a backup"), "--dry-run", "--json",
    ])
  static let configuration = described(as: "delete")

  @Option(help: ChosenItems.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var chosen: ChosenItems { ChosenItems(kind: kind, attributes: attributes) }

  func perform(in session: Session) throws -> CommandStatus {
    let selection = try ItemSelection(chosen).required(to: "delete")
    let unlocking = UnlockingOptions(password: password, opening: opening)
    switch try target.find(unlocking, in: session) {
    case .device(let device): return try delete(selection, from: device, in: session)
    case .archive(let archive):
      let items = try BackupItems(archive, unlocking, to: "delete", isRehearsed: dryRun.isOn, in: session)
      return try delete(selection, from: items, in: session)
    case .dump(let dump): return try delete(selection, from: try SimulatorItems(dump), in: session)
    }
  }

  private func delete(
    _ selection: ItemSelection, from keychain: some EditableItems, in session: Session
  ) throws -> CommandStatus {
    try selection.requireNoApp(of: keychain.name)
    let rows = keychain.items.meant(by: selection)
    let document = keychain.items.document(revealsSecrets: false)
    keychain.items.noteHidden(besides: rows, for: selection, in: session)
    let name = HostileText.shown(keychain.name)
    guard !rows.isEmpty else {
      session.note("No item in \(name) matches.")
      if session.isJSON { try session.answer(document, of: [], outcome(0)) }
      return .noMatch
    }
    let items = Amounts.count(rows.count, "item")
    if dryRun.isOn {
      try session.announce("Would delete \(items) from \(name):")
      try session.say(FoundItemTable.table(of: rows, style: session.resultStyle))
    } else {
      if let note = keychain.note { session.note(note) }
      try session.confirm("Delete \(items) from \(name)?", refusal: "deleting \(items) from \(name)")
    }
    let what = "\(items) \(rows.count == 1 ? "was" : "were") deleted from \(keychain.name)"
    _ = try keychain.perform(
      .delete(rows), isRehearsed: dryRun.isOn, ItemAdd.done(what, on: keychain.name), in: session)
    if !dryRun.isOn {
      for row in rows { session.detail("deleted \(ItemText.line(of: row))") }
      try session.announce("Deleted \(items) from \(name).")
    }
    if session.isJSON { try session.answer(document, of: rows, outcome(dryRun.isOn ? 0 : rows.count)) }
    return .ok
  }

  private func delete(_ selection: ItemSelection, from device: FoundDevice, in session: Session) throws -> CommandStatus
  {
    let agreed = try device.hold(.reading) { openDevice in
      try AgreedItems(try selection.rows(on: openDevice, to: "delete"), on: openDevice)
    }
    guard let items = agreed.count else {
      session.note("No item on \(HostileText.shown(target.keychain)) matches.")
      if session.isJSON { try session.answer(agreed.document, of: [], outcome(0)) }
      return .noMatch
    }
    if dryRun.isOn {
      try session.announce("Would delete \(items) from \(agreed.device):")
      try session.say(FoundItemTable.table(of: agreed.rows, style: session.resultStyle))
    } else {
      try session.confirm(
        "Delete \(items) from \(agreed.device)?", refusal: "deleting \(items) from \(agreed.device)")
      try device.hold(.writing) { openDevice in
        try openDevice.requireUnchanged(since: agreed.revision)
        let what = "\(items) \(agreed.rows.count == 1 ? "was" : "were") deleted from \(agreed.device)"
        try session.changing(ItemAdd.done(what, on: agreed.device)) { () throws(CommandFailure) in
          do throws(VirtualDeviceError) { try openDevice.delete(selection.query, as: selection.app) } catch {
            throw ItemFailure.changing(error, "delete", on: openDevice)
          }
        }
      }
      for row in agreed.rows { session.detail("deleted \(ItemText.line(of: row))") }
      try session.announce("Deleted \(items) from \(agreed.device).")
    }
    if session.isJSON {
      try session.answer(agreed.document, of: agreed.rows, outcome(dryRun.isOn ? 0 : agreed.rows.count))
    }
    return .ok
  }

  private func outcome(_ count: Int) -> [(String, JSONValue)] {
    [("deleted", .count(count))] + (dryRun.isOn ? [("dry_run", true)] : [])
  }
}

/// What a person is asked about: the items as they were when the question was put.
struct AgreedItems {
  let device: String
  let rows: [ItemRow]
  let revision: String
  let document: ItemDocument

  init(_ rows: [ItemRow], on openDevice: DeviceSession) throws {
    device = openDevice.name
    self.rows = rows
    revision = openDevice.record.revision
    document = ItemDocument(
      source: ("device", openDevice.name),
      indexes: try openDevice.keychain.places(of: Set(rows.map(\.reference))),
      revealsSecrets: false)
  }

  /// "2 items", or `nil` for none.
  var count: String? { rows.isEmpty ? nil : Amounts.count(rows.count, "item") }
}
