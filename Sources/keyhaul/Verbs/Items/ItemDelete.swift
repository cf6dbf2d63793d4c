import ArgumentParser
import CommandArguments
import CommandSession
import KeychainFormats
import KeychainStore
import Migration
import Reports
import VirtualDevice

/// `keyhaul item delete`: the items of a device that have these attributes go.
struct ItemDelete: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Delete items from a device's keychain",
    usage: "keyhaul item delete DEVICE [attributes] [--yes]",
    examples: [
      "keyhaul item delete old-phone --service chat.example --account anna",
      "keyhaul item delete old-phone --access-group '*.example.chat' -n",
    ],
    flags: [
      .init("--account, --service, --server", "what the items are for; * stands for any text"), "--kind", "--yes",
      "--dry-run", "--json",
    ])
  static let configuration = described(as: "delete")

  @Option(help: ChosenItems.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  var chosen: ChosenItems { ChosenItems(kind: kind, attributes: attributes) }

  func perform(in session: Session) throws -> CommandStatus {
    let selection = try ItemSelection(chosen).required(to: "delete")
    let device = try target.find(in: session)
    let agreed = try device.hold(.reading) { openDevice in
      try AgreedItems(try selection.rows(on: openDevice, to: "delete"), on: openDevice)
    }
    guard let items = agreed.count else {
      session.note("Nothing on \(HostileText.shown(target.device)) matches.")
      if session.isJSON { try session.answer(agreed.document.document(of: [], outcome(0))) }
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
      try session.answer(agreed.document.document(of: agreed.rows, outcome(dryRun.isOn ? 0 : agreed.rows.count)))
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
      indexes: try openDevice.keychain.places(of: Set(rows.map(\.summary.reference))),
      revealsSecrets: false)
  }

  /// "2 items", or `nil` for none.
  var count: String? { rows.isEmpty ? nil : Amounts.count(rows.count, "item") }
}
