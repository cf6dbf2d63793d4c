import Foundation
import KeyhaulKit
import Testing

@testable import KeychainCrypto
@testable import keyhaul

@Suite("Forged backups in place of an encrypted backup")
struct ForgedBackupTests {
  /// The key with which the forger wraps class keys, in place of a device key.
  private static let forgedDeviceKey = [UInt8](repeating: 1, count: 16)

  /// Writes a backup without using a device. Without a password, anyone can write such a backup.
  ///
  /// - Parameter classesWithoutDeviceKey: The numbers of keychain classes whose keys are wrapped with the password only.
  private func forge(
    in sandbox: PhoneSandbox, to name: String, password: String? = nil, classesWithoutDeviceKey: Set<UInt32>
  ) throws {
    let random = SeededRandomSource(seed: name)
    let (keybag, keys) = try makeKeybag(
      password: password, classesWithoutDeviceKey: classesWithoutDeviceKey, random: random)
    let contents = BackupContents(
      device: BackupDevice(
        identifier: "4C1F0A2B-9D3E5F60718293A4", name: "old-phone", productType: "iPhone15,2", productVersion: "18.1",
        buildVersion: nil, serialNumber: nil),
      date: KeychainDate(secondsSinceReferenceDate: 785_412_345), keybag: keybag, isEncrypted: password != nil,
      wasPasscodeSet: true,
      keychainFile: try KeychainBackupFile(
        keybagUUID: keybag.uuidText, entries: plantedItems(encryptedWith: keys, random: random)
      ).serialized())
    let path = sandbox.home.appending(path: name).path
    _ = try BackupWriter().write(contents, keys: keys, random: random, to: .directory(path), replace: true)
  }

  /// Creates a keybag, and unlocks it.
  ///
  /// On a device, the keys of the file classes (1 to 4) in a backup are wrapped with the password only. The keys of the
  /// keychain classes (6 to 11) are also wrapped with the device key, with one exception: in a backup with a
  /// password, the keys of the classes that may move to another device (6, 7 and 8) are not. Therefore anyone can
  /// decrypt all items of a backup without a password if the wrap with the device key is missing.
  private func makeKeybag(
    password: String?, classesWithoutDeviceKey: Set<UInt32>, random: SeededRandomSource
  ) throws -> (Keybag, ClassKeys) {
    let deviceKey = try DeviceKey(Secret(copying: Self.forgedDeviceKey))
    let salt = try random.bytes(20)
    let secondStep = password == nil ? nil : Keybag.SecondStep(iterations: 1, salt: salt)
    let passcodeKey = try PasswordDerivation.passcodeKey(
      password: Secret(utf8: password ?? ""),
      parameters: .init(
        salt: salt, iterations: 10, sha256Step: secondStep.map { .init(salt: $0.salt, iterations: $0.iterations) }))
    // Keybags list the highest class first.
    let classKeys = try (UInt32(1)...11).reversed().map { number in
      let isFileClass = number <= 4
      return try ClassKeyWrapPolicy(
        keyClass: KeyClass(rawValue: number),
        wrap: isFileClass || classesWithoutDeviceKey.contains(number) ? .password : [.device, .password]
      ).makeRecord(passcodeKey: passcodeKey, deviceKey: deviceKey, random: random)
    }
    let keybag = try Keybag(
      type: .backup, uuid: random.bytes(16), salt: salt, iterations: 10, secondStep: secondStep, classKeys: classKeys)
    return (keybag, try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey))
  }

  /// Returns three items: two of migratable classes, and one of a this-device-only class.
  private func plantedItems(
    encryptedWith keys: ClassKeys, random: SeededRandomSource
  ) throws -> [KeychainBackupFile.Entry] {
    try [ProtectionClass.whenUnlocked, .afterFirstUnlock, .whenUnlockedThisDeviceOnly].map { protection in
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
  }

  private static let refused = CommandExitStatus.refused.code
  private static let reason = """
    the keys of classes 6, 7 and 8 in its keybag are not wrapped with a device key, although every device does \
    this in a backup without a password: their items can be decrypted without a device key; the backup \
    has no password, according to Manifest.plist, so anyone can decrypt them, and anyone could have written them
    """

  @Test("No command restores a forged backup, even with the password in the environment and -q")
  func restore() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", classesWithoutDeviceKey: [6, 7, 8])
    let deviceBefore = try sandbox.contents(of: "new-phone")
    for setting in ["", "KEYHAUL_PASSWORD_FILE=.bp", "KEYHAUL_PASSWORD_COMMAND='cat .bp'"] {
      for line in ["restore b --to new-phone -q --yes", "restore b --to new-phone -n", "plan b --to new-phone"] {
        let outcome = try sandbox.devices.run("\(setting) keyhaul \(line)")
        #expect(outcome.status == Self.refused && outcome.output == "", "\(setting) \(line): \(outcome)")
        #expect(
          unwrapped(outcome.errors) == """
            error: b contains something that no device writes why: \(Self.reason) try: don't trust this backup; use the \
            source device's own copy
            """, "\(outcome)")
      }
    }
    #expect(try sandbox.keyhaul("why b --account 'planted ak' --to new-phone").status == Self.refused)
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("Inspecting a forged backup shows a warning first, and only true statements")
  func inspected() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", classesWithoutDeviceKey: [6, 7, 8])
    for line in [
      "inspect b", "export b -o -", "why b --account 'planted ak'", "diff b b", "convert b -o c.tar",
    ] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == 0, "\(line): \(outcome)")
      #expect(
        unwrapped(outcome.errors).contains("warning: b contains something that no device writes why: \(Self.reason)"),
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
    try forge(in: sandbox, to: "b", classesWithoutDeviceKey: [6, 7, 8])
    let outcome = try sandbox.keyhaul("verify b \(flag)")
    #expect(outcome.status == Self.refused, "\(outcome)")
    #expect(
      unwrapped(outcome.output).hasSuffix(
        """
        b contains something that no device writes: its keybag contains keychain keys that are not bound to a device. \
        Don't trust it. Nothing was written.
        """), "\(outcome.output)")
    let document = try sandbox.object(sandbox.keyhaul("verify b \(flag) --json").output)
    let faults = try #require(document["faults"] as? [[String: Any]])
    #expect(faults.map { $0["id"] as? String } == ["hardware-layer-missing"])
  }

  @Test("Rekey rejects a forged backup, even with the forger's device key")
  func rekey() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", classesWithoutDeviceKey: [6, 7, 8])
    try sandbox.write(Self.forgedDeviceKey, to: ".key")
    let manifestBefore = try sandbox.read("b/Manifest.plist")
    let outcome = try sandbox.keyhaul("rekey b --new-password-file .bp --rounds 1 --device-key-file .key --yes")
    #expect(
      outcome.status == Self.refused
        && outcome.errors.contains("error: b contains something that no device writes\n"), "\(outcome)")
    #expect(try sandbox.read("b/Manifest.plist") == manifestBefore)
  }

  @Test("Commands warn if an encrypted backup does not bind this-device-only items, but restore accepts the backup")
  func encrypted() throws {
    let sandbox = try PhoneSandbox()
    try forge(in: sandbox, to: "b", password: PhoneSandbox.password, classesWithoutDeviceKey: [6, 7, 8, 9])
    let reason = "the key of class 9 in its keybag is not wrapped with a device key"
    for line in ["inspect b", "plan b --to new-phone", "restore b --to new-phone -n", "export b -o -"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 0 && unwrapped(outcome.errors).contains(reason), "\(line): \(outcome)")
    }
    // The warning comes before the password prompt.
    let withoutPassword = try sandbox.keyhaul("restore b --to new-phone --no-input")
    #expect(
      withoutPassword.status == CommandExitStatus.needsPassword.code
        && unwrapped(withoutPassword.errors).contains(reason), "\(withoutPassword)")
    let inspected = unwrapped(try sandbox.keyhaul("inspect b --password-file .bp").output)
    #expect(
      inspected.contains("but no device writes such a keychain: \(reason)")
        && inspected.contains("3 any device, 0 this device"))
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(
      verified.status == CommandExitStatus.damaged.code && unwrapped(verified.output).contains(reason), "\(verified)")
    try sandbox.write(Self.forgedDeviceKey, to: ".key")
    let rekeyed = try sandbox.keyhaul("rekey b --no-password --password-file .bp --device-key-file .key --yes")
    #expect(rekeyed.status == Self.refused, "\(rekeyed)")
  }
}
