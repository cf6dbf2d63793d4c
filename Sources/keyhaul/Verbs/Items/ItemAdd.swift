import ArchivedKeychain
import ArgumentParser
import Certificates
import CommandArguments
import CommandSession
import DataProtection
import KeychainFormats
import KeychainStore
import Migration
import Reports
import VirtualDevice

/// `keyhaul item add`: a new item on a device.
struct ItemAdd: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Add an item to a device's keychain",
    usage: "keyhaul item add DEVICE [attributes] [--secret-file PATH]",
    examples: [
      "keyhaul item add old-phone --service chat.example --account anna",
      "keyhaul item add old-phone --kind internet --server imap.example.org --account anna --secret-file -",
      "keyhaul item add old-phone --kind certificate --secret-file mail.pem",
      "keyhaul item add old-phone --kind key --label mail --secret-file mail.key",
    ],
    flags: [
      "--kind", .init("--account, --service, --server", "what the item is for"),
      .init("--protection", "when-unlocked, after-first-unlock, always; with -this-device; passcode-only"),
      .init("--secret-file", "read the secret, or a certificate or key in PEM or DER"), "--dry-run",
    ])
  static let configuration = described(as: "add")

  @Option(help: ArgumentHelp("generic, internet, certificate or key (default generic).", valueName: "kind"))
  var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "The secret") var secret: ItemSecretFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetDevice
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let described = try described()
    let device = try target.find(in: session)
    let deviceName = device.name
    let item = try complete(described, in: session)
    let name = ItemText.name(of: item)
    let (stored, document) = try device.hold(.writing) { openDevice in
      let stored =
        dryRun.isOn
        ? try add(item, on: openDevice)
        : try session.changing(Self.done("an item was added to \(deviceName)", on: deviceName)) {
          () throws(CommandFailure) in try add(item, on: openDevice)
        }
      let indexes = session.isJSON ? try openDevice.keychain.places(of: [stored.summary.reference]) : [:]
      return (stored, ItemDocument(source: ("device", deviceName), indexes: indexes, revealsSecrets: false))
    }
    let shown = HostileText.shown(name, columns: 100, ellipsis: session.resultStyle.ellipsis)
    let sentence = "\(item.kind.noun) \"\(shown)\" to \(deviceName) (\(Self.reach(of: stored.item)))."
    try session.announce((dryRun.isOn ? "Would add " : "Added ") + sentence)
    if session.isJSON {
      try session.answer(document.document(of: [.item(stored)], dryRun.isOn ? [("dry_run", true)] : []))
    }
    return .ok
  }

  /// A change of a device's items.
  static func done(_ what: String, on device: String) -> DoneChange {
    DoneChange(what, look: "keyhaul item find \(ShellWord.quoted(device))")
  }

  /// The item without its secret.
  private func described() throws(CommandFailure) -> KeychainItem {
    let kind = kind?.kind ?? .genericPassword
    let isPassword = kind == .genericPassword || kind == .internetPassword
    if isPassword { try attributes.checkName() }
    var item = KeychainItem(kind: kind, attributes: try attributes.attributes(of: kind))
    if let group = attributes.accessGroup { item[.accessGroup] = .string(group) }
    if attributes.sync { item[.synchronizable] = .integer(1) }
    let constraints = attributes.constraints
    try AccessConstraint.check(constraints, sync: attributes.sync)
    if !constraints.isEmpty { item[.accessControl] = .dictionary(AccessConstraint.operations(constraints)) }
    return item
  }

  /// The item with its secret, and with what a certificate or key says of itself; the user's own attributes count more.
  private func complete(_ described: KeychainItem, in session: Session) throws(CommandFailure) -> KeychainItem {
    var item: KeychainItem
    switch described.kind {
    case .genericPassword, .internetPassword:
      item = described
      item.secret = try session.itemSecret(secret, of: ItemText.name(ItemIdentity(described)))
    case .certificate: item = KeychainItem(try ItemMaterial.certificate(secret, in: session))
    case .key: item = KeychainItem(try ItemMaterial.key(secret, in: session))
    }
    item.attributes.merge(described.attributes) { _, given in given }
    return item
  }

  private func add(_ item: KeychainItem, on openDevice: DeviceSession) throws(CommandFailure) -> StoredItem {
    try ItemFailure.checkGroups([item.accessGroup].compactMap(\.self), of: attributes.app, on: openDevice)
    do throws(VirtualDeviceError) {
      return dryRun.isOn
        ? try openDevice.rehearseAdding(item, as: attributes.app) : try openDevice.add(item, as: attributes.app)
    } catch {
      throw ItemFailure.adding(item, error, to: openDevice.name)
    }
  }

  /// How far the item can travel, in words.
  private static func reach(of item: KeychainItem) -> String {
    guard let protection = item.protection, protection != .whenPasscodeSetThisDeviceOnly
    else { return "never leaves this device" }
    guard item[.accessControl] == nil else { return "in no backup" }
    return protection.isThisDeviceOnly ? "stays on this device" : "moves with an encrypted backup"
  }
}
