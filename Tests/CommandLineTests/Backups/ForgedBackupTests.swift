import Foundation
import KeyhaulKit
import Testing

@testable import KeychainCrypto
@testable import keyhaul

@Suite("Forged backups in place of an encrypted one")
struct ForgedBackupTests {
  /// Writes a backup that anyone can write without a device: its class keys are wrapped with the password only.
  private func forge(in sandbox: PhoneSandbox, to name: String, password: String? = nil, unbound: Set<UInt32>) throws {
    let random = SeededRandomSource(seed: name)
    let hardware = try DeviceKey(Secret(copying: [UInt8](repeating: 1, count: 16)))
    let salt = try random.bytes(20)
    let secondRound = password == nil ? nil : Keybag.SecondRound(rounds: 1, salt: salt)
    let passcodeKey = try PasswordDerivation.passcodeKey(
      password: Secret(utf8: password ?? ""),
      parameters: .init(
        salt: salt, iterations: 10, sha256Step: secondRound.map { .init(salt: $0.salt, iterations: $0.rounds) }))
    let records = try (UInt32(1)...11).reversed().map { number in
      try ClassKeyWrapPolicy(
        keyClass: KeyClass(rawValue: number),
        wrap: number < 5 || unbound.contains(number) ? .password : [.device, .password]
      ).makeRecord(passcodeKey: passcodeKey, deviceKey: hardware, random: random)
    }
    let keybag = try Keybag(
      type: .backup, uuid: random.bytes(16), salt: salt, iterations: 10, secondRound: secondRound, classKeys: records)
    let keys = try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: hardware)
    let entries = try [ProtectionClass.whenUnlocked, .afterFirstUnlock, .whenUnlockedThisDeviceOnly].map { protection in
      var item = KeychainItem(
        kind: .genericPassword,
        attributes: [
          .account: .string("planted \(protection.rawValue)"), .service: .string("evil.example"),
          .accessGroup: .string("app"),
        ])
      item[.creationDate] = .date(KeychainDate(secondsSinceReferenceDate: 500))
      item[.modificationDate] = .date(KeychainDate(secondsSinceReferenceDate: 500))
      item.protection = protection
      item.secret = SensitiveBytes(copying: Array("evil".utf8))
      let blob = try keys.seal(item, as: .backup, random: random)
      return KeychainBackupFile.Entry(kind: item.kind, blob: blob.serialized())
    }
    let contents = BackupContents(
      device: BackupDevice(
        identifier: "4C1F0A2B-9D3E5F60718293A4", name: "old-phone", productType: "iPhone15,2", productVersion: "18.1",
        buildVersion: nil, serialNumber: nil),
      date: KeychainDate(secondsSinceReferenceDate: 785_412_345), keybag: keybag, isEncrypted: password != nil,
      wasPasscodeSet: true,
      keychainFile: try KeychainBackupFile(keybagUUID: keybag.uuidText, entries: entries).serialized())
    let path = sandbox.home.appending(path: name).path
    _ = try BackupWriter().write(contents, keys: keys, random: random, to: .directory(path), replace: true)
  }

  private static let fact = """
    the keys of classes 6, 7 and 8 in its keybag are not wrapped with a device's hardware key, although every device does \
    this in a backup without a password: their items can be decrypted without any device's hardware key; the backup \
    has no password, according to Manifest.plist, so anyone can decrypt them, and anyone could have written them
    """

  @Test("No command restores a forged backup, even with the password in the environment and -q")
  func restore() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", unbound: [6, 7, 8])
    let before = try sandbox.contents(of: "new-phone")
    for setting in ["", "KEYHAUL_PASSWORD_FILE=.bp", "KEYHAUL_PASSWORD_COMMAND='cat .bp'"] {
      for line in ["restore b --to new-phone -q --yes", "restore b --to new-phone -n", "plan b --to new-phone"] {
        let outcome = try sandbox.devices.run("\(setting) keyhaul \(line)")
        #expect(outcome.status == 14 && outcome.output == "", "\(setting) \(line): \(outcome)")
        #expect(
          unwrapped(outcome.errors) == "error: b contains something that no device writes why: \(Self.fact) try: don't "
            + "trust this "
            + "backup; use the source device's own copy", "\(outcome)")
      }
    }
    #expect(try sandbox.keyhaul("why b --account 'planted ak' --to new-phone").status == 14)
    #expect(try sandbox.contents(of: "new-phone") == before)
  }

  @Test("Inspecting a forged backup shows a warning first, and only true statements")
  func inspected() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", unbound: [6, 7, 8])
    for (line, status) in [
      ("inspect b", Int32(0)), ("export b -o -", 0), ("why b --account 'planted ak'", 0), ("diff b b", 0),
      ("convert b -o c.tar", 0),
    ] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(
        unwrapped(outcome.errors).contains("warning: b contains something that no device writes why: \(Self.fact)"),
        "\(line): \(outcome)")
    }
    let overview = unwrapped(try sandbox.keyhaul("inspect b").output)
    #expect(overview.contains("keychain present, but not trustworthy: the keys of classes 6, 7 and 8"))
    #expect(overview.contains("They cannot be restored.") && overview.contains("2 that anyone can decrypt"))
    #expect(!overview.contains("can be restored only to") && !overview.contains("could go to any device"))
    let document = try sandbox.object(sandbox.keyhaul("inspect b --json -q").output)
    let findings = try #require(document["findings"] as? [[String: Any]])
    #expect(findings.count == 1 && findings[0]["id"] as? String == "hardware-layer-missing")
    #expect(findings[0]["classes"] as? [Int] == [6, 7, 8] && findings[0]["refused"] as? Bool == true)
    try sandbox.succeed("inspect b --format html -o b.html -q")
    let page = String(decoding: try sandbox.read("b.html"), as: UTF8.self)
    #expect(page.contains("No device accepts this keychain:"))
    #expect(!page.contains("This keychain can be restored only to"))
    #expect(!page.contains("keyhaul plan"))
  }

  @Test("Verify finds a forged backup, even with --quick", arguments: ["", "--quick"])
  func verify(flag: String) throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", unbound: [6, 7, 8])
    let outcome = try sandbox.keyhaul("verify b \(flag)")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(
      unwrapped(outcome.output).hasSuffix(
        "b contains something that no device writes: its keybag contains keychain keys that are not bound to a "
          + "device. Don't trust it. Nothing was written."), "\(outcome.output)")
    let document = try sandbox.object(sandbox.keyhaul("verify b \(flag) --json").output)
    let faults = try #require(document["faults"] as? [[String: Any]])
    #expect(faults.map { $0["id"] as? String } == ["hardware-layer-missing"])
  }

  @Test("Setting a password with the original key does not hide that a backup is forged")
  func rekey() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", unbound: [6, 7, 8])
    try sandbox.write([UInt8](repeating: 1, count: 16), to: ".key")
    let before = try sandbox.read("b/Manifest.plist")
    let outcome = try sandbox.keyhaul("rekey b --new-password-file .bp --rounds 1 --device-key-file .key --yes")
    #expect(
      outcome.status == 14
        && outcome.errors.contains(
          "error: b contains something that no device "
            + "writes\n"),
      "\(outcome)")
    #expect(try sandbox.read("b/Manifest.plist") == before)
  }

  @Test("Unbound this-device-only items in a backup with a password cause a warning and may be restored")
  func encrypted() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", password: PhoneSandbox.password, unbound: [6, 7, 8, 9])
    let fact = "the key of class 9 in its keybag is not wrapped with a device's hardware key"
    for line in ["inspect b", "plan b --to new-phone", "restore b --to new-phone -n", "export b -o -"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 0 && unwrapped(outcome.errors).contains(fact), "\(line): \(outcome)")
    }
    // The warning comes before the question for the password.
    let locked = try sandbox.keyhaul("restore b --to new-phone --no-input")
    #expect(locked.status == 12 && unwrapped(locked.errors).contains(fact), "\(locked)")
    let inspected = unwrapped(try sandbox.keyhaul("inspect b --password-file .bp").output)
    #expect(
      inspected.contains("but no device writes such a keychain: \(fact)")
        && inspected.contains("3 any device, 0 this device"))
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(verified.status == 13 && unwrapped(verified.output).contains(fact), "\(verified)")
    try sandbox.write([UInt8](repeating: 1, count: 16), to: ".key")
    #expect(try sandbox.keyhaul("rekey b --no-password --password-file .bp --device-key-file .key --yes").status == 14)
  }
}
