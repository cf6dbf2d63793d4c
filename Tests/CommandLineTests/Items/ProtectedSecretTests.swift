import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import KeychainCrypto
@testable import keyhaul

/// Each kind of source has an item whose secret requires authentication, and one whose secret does not. On a device and
/// in a backup, the access control protects the first secret. A dump and a database contain both in plain text.
@Suite("Secrets that require authentication")
struct ProtectedSecretTests {
  enum Source: String, CaseIterable, Sendable {
    case device = "phone"
    case backup = "b"
    case dump = "dump.plist"
    case database = "phone.db"
    case simulator = "simulator"

    var omitsProtectedSecrets: Bool { self == .device || self == .backup }
    /// The arguments that name the source and its password.
    var argument: String { self == .backup ? "b --password-file .bp" : rawValue }
  }

  private static let protectedSecret = "protected-secret"
  private static let plainSecret = "plain-secret"
  private static let authentication = "requires authentication"

  private static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "protected secrets") { sandbox in
      try sandbox.succeed("device create phone -q")
      let add = "item add phone --account anna"
      try sandbox.succeed(
        "\(add) --service protected.example --biometry --secret-command 'printf \(protectedSecret)' -q")
      try sandbox.succeed("\(add) --service plain.example --secret-command 'printf \(plainSecret)' -q")
      try sandbox.succeed("device export phone -o phone.db -q")
      try sandbox.devices.run(
        "mkdir -p simulator/data/Library/Keychains; cp phone.db simulator/data/Library/Keychains/keychain-2-debug.db")
      try sandbox.write(Array(try dump().utf8), to: "dump.plist")
      try writeBackup(to: sandbox.home.appending(path: "b").path)
    }
  }

  private static func item(service: String, secret: String) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string("anna"), .service: .string(service), .accessGroup: .string("ABCDE12345.org.example"),
        .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 500)),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: 500)),
      ])
    item.protection = .whenUnlocked
    item.secret = SensitiveBytes(copying: Array(secret.utf8))
    return item
  }

  /// An access control that requires biometry for decryption (`od`).
  private static let biometry = PropertyValue.dictionary(["od": .dictionary(["cbio": .boolean(true)])])

  /// Writes a backup with both items. A device leaves protected items out, but another program may include them.
  private static func writeBackup(to path: String) throws {
    let random = SeededRandomSource(seed: path)
    let generated = try BackupKeybag.make(
      password: Secret(utf8: PhoneSandbox.password),
      deviceKey: DeviceKey(Secret(copying: [UInt8](repeating: 1, count: 16))),
      rounds: 1, random: random)
    var protectedItem = item(service: "protected.example", secret: protectedSecret)
    protectedItem[.accessControl] = biometry
    let plainItem = item(service: "plain.example", secret: plainSecret)
    let entries = try [protectedItem, plainItem].map { item in
      KeychainBackupFile.Entry(
        kind: item.kind, blob: try generated.classKeys.seal(item, as: .backup, random: random).serialized())
    }
    let contents = BackupContents(
      device: BackupDevice(
        identifier: "4C1F0A2B-9D3E5F60718293A4", name: "phone", productType: "iPhone15,2", productVersion: "18.1",
        buildVersion: nil, serialNumber: nil),
      date: KeychainDate(secondsSinceReferenceDate: 785_412_345), keybag: generated.keybag, isEncrypted: true,
      wasPasscodeSet: true,
      keychainFile: try KeychainBackupFile(keybagUUID: generated.keybag.uuidText, entries: entries).serialized())
    _ = try BackupWriter().write(
      contents, keys: generated.classKeys, random: random, to: .directory(path), replace: true)
  }

  /// Returns a dump with both items, as a property list.
  private static func dump() throws -> String {
    func entry(service: String, secret: String, accessControl: String) -> String {
      """
      <dict><key>agrp</key><string>ABCDE12345.org.example</string><key>acct</key><string>anna</string>\
      <key>svce</key><string>\(service)</string><key>pdmn</key><string>ak</string>\(accessControl)\
      <key>v_Data</key><data>\(Data(secret.utf8).base64EncodedString())</data></dict>
      """
    }
    let encodedControl = Data(try DERPropertyList.encode(.dictionary(["prot": .string("ak"), "acl": biometry])))
    let protectedEntry = entry(
      service: "protected.example", secret: protectedSecret,
      accessControl: "<key>accc</key><data>\(encodedControl.base64EncodedString())</data>")
    let plainEntry = entry(service: "plain.example", secret: plainSecret, accessControl: "")
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict><key>genp</key><array>\(protectedEntry)\(plainEntry)</array></dict></plist>
      """
  }

  /// Returns whether a text contains a secret, as text or in base64.
  private static func text(_ text: String, contains secret: String) -> Bool {
    text.contains(secret) || text.contains(Data(secret.utf8).base64EncodedString())
  }

  @Test(
    "`item find` omits protected secrets of devices and backups with a warning, but shows them for other sources",
    arguments: Source.allCases, ["--json", "--format csv"])
  func find(_ source: Source, format: String) throws {
    let sandbox = try Self.sandbox()
    for target in ["", " -o out"] {
      let outcome = try sandbox.keyhaul("item find \(source.argument) \(format) --reveal\(target)")
      let written = target.isEmpty ? outcome.output : String(decoding: try sandbox.read("out"), as: UTF8.self)
      #expect(outcome.status == 0, "\(outcome)")
      #expect(Self.text(written, contains: Self.plainSecret), "\(outcome)")
      #expect(Self.text(written, contains: Self.protectedSecret) == !source.omitsProtectedSecrets, "\(outcome)")
      let warning = "1 item \(Self.authentication)"
      #expect(unwrapped(outcome.errors).contains(warning) == source.omitsProtectedSecrets, "\(outcome)")
    }
    // Without --reveal, there are no secrets, so no warning either.
    let withoutSecrets = try sandbox.keyhaul("item find \(source.argument) \(format)")
    #expect(!Self.text(withoutSecrets.output, contains: Self.protectedSecret))
    #expect(!Self.text(withoutSecrets.output, contains: Self.plainSecret))
    #expect(!withoutSecrets.errors.contains(Self.authentication), "\(withoutSecrets)")
  }

  @Test(
    "`item find` prints a single protected secret unless the source is a device or a backup",
    arguments: Source.allCases)
  func secret(_ source: Source) throws {
    let sandbox = try Self.sandbox()
    let outcome = try sandbox.keyhaul("item find \(source.argument) --service protected.example --reveal")
    if source.omitsProtectedSecrets {
      #expect(outcome.status == 1 && outcome.output == "", "\(outcome)")
      #expect(outcome.errors.contains("error: \"protected.example · anna\" \(Self.authentication)"), "\(outcome)")
    } else {
      #expect(outcome.status == 0 && outcome.output == Self.protectedSecret, "\(outcome)")
    }
    let plainOutcome = try sandbox.keyhaul("item find \(source.argument) --service plain.example --reveal")
    #expect(plainOutcome.status == 0 && plainOutcome.output == Self.plainSecret, "\(plainOutcome)")
  }

  @Test(
    "`export` omits protected secrets of devices and backups, but includes them for other sources",
    arguments: Source.allCases, ["json", "csv", "cxf", "genp-plist"])
  func export(_ source: Source, format: String) throws {
    let sandbox = try Self.sandbox()
    let outcome = try sandbox.keyhaul("export \(source.argument) --format \(format) --reveal -o -")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(Self.text(outcome.output, contains: Self.plainSecret), "\(outcome)")
    #expect(Self.text(outcome.output, contains: Self.protectedSecret) == !source.omitsProtectedSecrets, "\(outcome)")
    // JSON lists the item without its secret; the other formats leave the item out, which is a warning.
    #expect(outcome.output.contains("protected.example") == (!source.omitsProtectedSecrets || format == "json"))
    let isOmitted = source.omitsProtectedSecrets && format != "json"
    #expect(
      unwrapped(outcome.errors).contains("warning: 1 item left out why: an access control") == isOmitted, "\(outcome)")
  }
}
