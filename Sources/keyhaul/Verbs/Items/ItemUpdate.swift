import ArgumentParser
import CommandArguments
import CommandSession
import KeychainFormats
import KeychainRules
import KeychainStore
import Migration
import Reports
import VirtualDevice

/// `keyhaul item update`: gives the items of a device that have these attributes other ones, or another secret.
struct ItemUpdate: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Change items in a device's keychain",
    usage: "keyhaul item update DEVICE [attributes] [changes] [--yes]",
    examples: [
      "keyhaul item update old-phone --service chat.example --account anna --new-secret-file -",
      "keyhaul item update old-phone --service '*.example' --new-protection when-unlocked-this-device",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * stands for any text"), "--kind",
      .init("--new-account, --new-label, ...", "what they get; the same for every attribute"), "--new-protection",
      .init("--new-biometry, --no-new-sync, ...", "what else they ask for or do from now on, or no longer"),
      "--new-secret-file", "--yes", "--dry-run", "--json",
    ])
  static let configuration = described(as: "update")

  @Option(help: ChosenItems.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "What changes") var changes: ItemChangeOptions
  @OptionGroup(title: "The new secret") var newSecret: NewItemSecretFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  var chosen: ChosenItems { ChosenItems(kind: kind, attributes: attributes) }

  func perform(in session: Session) throws -> CommandStatus {
    let selection = try ItemSelection(chosen).required(to: "update")
    var wanted = ItemChanges(attributes: try changes.attributes())
    guard !wanted.attributes.isEmpty || newSecret.isGiven else {
      throw CommandFailure.usage("nothing says what to change", try: "--new-label TEXT, or --new-secret-file PATH")
    }
    let device = try target.find(in: session)
    let agreed = try device.hold(.reading) { openDevice in
      try ItemFailure.checkGroups(
        [changes.newAccessGroup].compactMap(\.self), of: chosen.attributes.app, on: openDevice)
      let rows = try selection.rows(on: openDevice, to: "change")
      if rows.contains(where: \.isLocked) { throw ItemFailure.locked("change", on: openDevice) }
      return try AgreedItems(rows, on: openDevice)
    }
    let readable = agreed.rows.filter { $0.stored != nil }
    guard !readable.isEmpty else { return try end(agreed, changed: [], in: session) }
    try checkKinds(of: readable)
    for item in readable.compactMap({ $0.stored?.item }) { try changes.check(for: item) }
    if newSecret.isGiven {
      wanted.secrets[.valueData] = try session.itemSecret(newSecret, of: Self.subject(of: readable))
    }
    let items = Amounts.count(readable.count, "item")
    guard !dryRun.isOn else {
      try device.hold(.writing) { openDevice in
        try openDevice.requireUnchanged(since: agreed.revision)
        try rehearse(wanted, selection, on: openDevice)
      }
      try session.announce("Would change \(items) on \(agreed.device):")
      try session.say(FoundItemTable.table(of: readable, style: session.resultStyle))
      return try end(agreed, changed: readable, in: session)
    }
    try session.confirm("Change \(items) on \(agreed.device)?", refusal: "changing \(items) on \(agreed.device)")
    let changed = try device.hold(.writing) { openDevice in
      try openDevice.requireUnchanged(since: agreed.revision)
      let what = "\(items) on \(agreed.device) \(readable.count == 1 ? "was" : "were") changed"
      try session.changing(ItemAdd.done(what, on: agreed.device)) { () throws(CommandFailure) in
        try update(wanted, selection, on: openDevice)
      }
      return try found(readable, on: openDevice)
    }
    for row in changed { session.detail("changed \(ItemText.line(of: row))") }
    try session.announce("Changed \(items) on \(agreed.device).")
    return try end(agreed, changed: changed, in: session)
  }

  /// What an item of one of these kinds cannot have, or cannot have changed alone.
  private func checkKinds(of rows: [ItemRow]) throws(CommandFailure) {
    for kind in ItemKind.allCases where rows.contains(where: { $0.summary.kind == kind }) {
      try changes.check(for: kind)
      guard newSecret.isGiven, kind == .certificate || kind == .key else { continue }
      throw .usage(
        "the bytes of \(ItemText.nounWithArticle(kind)) are not changed", why: "its attributes follow from them",
        try: "delete it, and add the other one")
    }
  }

  private func update(
    _ changes: ItemChanges, _ selection: ItemSelection, on openDevice: DeviceSession
  ) throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      try openDevice.update(Self.query(of: selection), with: changes, as: selection.app)
    } catch {
      throw ItemFailure.changing(error, "change", on: openDevice)
    }
  }

  /// The items as they are now.
  private func found(_ rows: [ItemRow], on openDevice: DeviceSession) throws(CommandFailure) -> [ItemRow] {
    do throws(VirtualDeviceError) {
      var changed: [ItemRow] = []
      for row in rows { changed += ItemRow.all(of: try openDevice.find(ItemQuery(row: row.summary.reference))) }
      return changed
    } catch {
      throw ItemFailure.finding(error, on: openDevice)
    }
  }

  /// Ends as the change would end, and changes nothing.
  private func rehearse(
    _ changes: ItemChanges, _ selection: ItemSelection, on openDevice: DeviceSession
  ) throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      try openDevice.rehearseUpdating(Self.query(of: selection), with: changes, as: selection.app)
    } catch {
      throw ItemFailure.changing(error, "change", on: openDevice)
    }
  }

  /// A row that nothing opens is left as it is: an update without a condition would delete it, as a device does.
  private static func query(of selection: ItemSelection) -> ItemQuery {
    var query = selection.query
    let condition = query.condition
    query.condition = { condition?($0) ?? true }
    return query
  }

  private func end(_ agreed: AgreedItems, changed: [ItemRow], in session: Session) throws -> CommandStatus {
    if session.isJSON {
      let count = dryRun.isOn ? 0 : changed.count
      try session.answer(
        agreed.document.document(
          of: changed, [("changed", .count(count))] + (dryRun.isOn ? [("dry_run", true)] : [])))
    }
    let unreadable = agreed.rows.count { $0.stored == nil }
    if unreadable > 0 {
      session.warn(
        "\(Amounts.count(unreadable, "item")) of \(agreed.device) cannot be read and \(unreadable == 1 ? "was" : "were") not changed",
        try: "restore \(unreadable == 1 ? "it" : "them") from a backup")
      return .partial
    }
    guard changed.isEmpty else { return .ok }
    session.note("Nothing on \(HostileText.shown(target.device)) matches.")
    return .noMatch
  }

  private static func subject(of rows: [ItemRow]) -> String {
    guard let row = rows.first, rows.count == 1 else { return Amounts.count(rows.count, "item") }
    return ItemText.name(row.identity)
  }
}
