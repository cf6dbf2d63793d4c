import Foundation
import KeyhaulKit
import Testing

@testable import KeychainCrypto
@testable import keyhaul

@Suite("Forged backups in place of an encrypted one")
struct ForgedBackupTests {
  /// Writes what anybody can write who has no device: without a password, the keys of three classes under the empty one.
  private func craft(in sandbox: PhoneSandbox, to name: String, password: String? = nil, unbound: Set<UInt32>) throws {
    let random = SeededRandomSource(seed: name)
    let hardware = try DeviceKey(Secret(copying: [UInt8](repeating: 1, count: 16)))
    let salt = try random.bytes(20)
    let second = password == nil ? nil : Keybag.SecondRound(rounds: 1, salt: salt)
    let passcodeKey = try PasswordDerivation.passcodeKey(
      password: Secret(utf8: password ?? ""),
      parameters: .init(
        salt: salt, iterations: 10, sha256Step: second.map { .init(salt: $0.salt, iterations: $0.rounds) }))
    let records = try (UInt32(1)...11).reversed().map { number in
      try ClassKeyWrapPolicy(
        keyClass: KeyClass(rawValue: number),
        wrap: number < 5 || unbound.contains(number) ? .password : [.device, .password]
      ).makeRecord(passcodeKey: passcodeKey, deviceKey: hardware, random: random)
    }
    let keybag = try Keybag(
      type: .backup, uuid: random.bytes(16), salt: salt, iterations: 10, secondRound: second, classKeys: records)
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

  private func words(_ text: String) -> String { text.split(whereSeparator: \.isWhitespace).joined(separator: " ") }

  @Test("No command restores a forged backup, even with the password in the environment and -q")
  func restore() throws {
    let sandbox = try PhoneSandbox()
    try craft(in: sandbox, to: "b", unbound: [6, 7, 8])
    let before = try sandbox.contents(of: "new-phone")
    for setting in ["", "KEYHAUL_PASSWORD_FILE=.bp", "KEYHAUL_PASSWORD_COMMAND='cat .bp'"] {
      for line in ["restore b --to new-phone -q --yes", "restore b --to new-phone -n", "plan b --to new-phone"] {
        let outcome = try sandbox.devices.run("\(setting) keyhaul \(line)")
        #expect(outcome.status == 14 && outcome.output == "", "\(setting) \(line): \(outcome)")
        #expect(
          words(outcome.errors) == "error: b contains something that no device writes why: \(Self.fact) try: don't "
            + "trust this "
            + "backup; use the source device's own copy", "\(outcome)")
      }
    }
    #expect(try sandbox.keyhaul("why b --account 'planted ak' --to new-phone").status == 14)
    #expect(try sandbox.contents(of: "new-phone") == before)
  }

  @Test("Inspecting a forged backup shows a warning first, and only true statements")
  func looking() throws {
    let sandbox = try PhoneSandbox()
    try craft(in: sandbox, to: "b", unbound: [6, 7, 8])
    for (line, status) in [
      ("inspect b", Int32(0)), ("export b -o -", 0), ("why b --account 'planted ak'", 0), ("diff b b", 0),
      ("convert b -o c.tar", 0),
    ] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(
        words(outcome.errors).contains("warning: b contains something that no device writes why: \(Self.fact)"),
        "\(line): \(outcome)")
    }
    let inspected = words(try sandbox.keyhaul("inspect b").output)
    #expect(inspected.contains("keychain present, but not trustworthy: the keys of classes 6, 7 and 8"))
    #expect(inspected.contains("They cannot be restored.") && inspected.contains("2 that anyone can decrypt"))
    #expect(!inspected.contains("can be restored only to") && !inspected.contains("could go to any device"))
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
    try craft(in: sandbox, to: "b", unbound: [6, 7, 8])
    let outcome = try sandbox.keyhaul("verify b \(flag)")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(
      words(outcome.output).hasSuffix(
        "b contains something that no device writes: its keybag contains keychain keys that are not bound to a "
          + "device. Don't trust it. Nothing was written."), "\(outcome.output)")
    let document = try sandbox.object(sandbox.keyhaul("verify b \(flag) --json").output)
    let faults = try #require(document["faults"] as? [[String: Any]])
    #expect(faults.map { $0["id"] as? String } == ["hardware-layer-missing"])
  }

  @Test("Setting a password with the original key does not hide that a backup is forged")
  func rekey() throws {
    let sandbox = try PhoneSandbox()
    try craft(in: sandbox, to: "b", unbound: [6, 7, 8])
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
    try craft(in: sandbox, to: "b", password: PhoneSandbox.password, unbound: [6, 7, 8, 9])
    let fact = "the key of class 9 in its keybag is not wrapped with a device's hardware key"
    for line in ["inspect b", "plan b --to new-phone", "restore b --to new-phone -n", "export b -o -"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 0 && words(outcome.errors).contains(fact), "\(line): \(outcome)")
    }
    // Before a password is asked for.
    let locked = try sandbox.keyhaul("restore b --to new-phone --no-input")
    #expect(locked.status == 12 && words(locked.errors).contains(fact), "\(locked)")
    let inspected = words(try sandbox.keyhaul("inspect b --password-file .bp").output)
    #expect(
      inspected.contains("but no device writes such a keychain: \(fact)")
        && inspected.contains("3 any device, 0 this device"))
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(verified.status == 13 && words(verified.output).contains(fact), "\(verified)")
    try sandbox.write([UInt8](repeating: 1, count: 16), to: ".key")
    #expect(try sandbox.keyhaul("rekey b --no-password --password-file .bp --device-key-file .key --yes").status == 14)
  }
}

@Suite("Passwords given for backups without a password")
struct UnexpectedPasswordTests {
  private static let ways = [
    ("", "--password-file .bp", "--password-file"), ("", "--password-fd 5 5< .bp", "--password-fd"),
    ("", "--password-command 'cat .bp'", "--password-command"),
    ("KEYHAUL_PASSWORD_FILE=.bp", "", "KEYHAUL_PASSWORD_FILE"),
    ("KEYHAUL_PASSWORD_COMMAND='cat .bp'", "", "KEYHAUL_PASSWORD_COMMAND"),
  ]

  @Test("Every command that decrypts a backup rejects a password given in any way for an unencrypted one")
  func refused() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    for line in DecryptingCommands.all.map({ $0.hasPrefix("rekey") ? "\($0) --rounds 1" : $0 }) {
      for (setting, flag, name) in Self.ways {
        let outcome = try sandbox.devices.run("\(setting) keyhaul \(line) -q \(flag)")
        #expect(outcome.status == 14 && outcome.output == "", "\(setting) \(line) \(flag): \(outcome)")
        #expect(outcome.errors.hasPrefix("error: b has no password, but \(name) provides one\n"), "\(outcome)")
      }
      // Without one it goes as ever: a restore onto another device would only remove, which is refused for that reason.
      let outcome = try sandbox.keyhaul("\(line) -q")
      let isPointless =
        line.hasPrefix("restore ") && outcome.errors.contains("no item of b would be restored to new-phone")
      #expect(outcome.status == (isPointless ? 14 : 0), "\(line): \(outcome)")
    }
    let file = try sandbox.devices.run("KEYHAUL_PASSWORD_FILE=.bp keyhaul verify b")
    #expect(file.errors.hasSuffix("try: if it is the right backup, put KEYHAUL_PASSWORD_FILE= before the command\n"))
    #expect(try sandbox.devices.run("KEYHAUL_PASSWORD_FILE= keyhaul verify b").status == 0)
    let first = try sandbox.keyhaul("rekey b --password-file .bp --new-password-file .np -n")
    #expect(first.errors.hasSuffix("try: --new-password-file with the new password\n"), "\(first)")
  }

  private func set(isEncrypted: Bool, of backup: String, in sandbox: PhoneSandbox) throws {
    let bytes = Data(try sandbox.read("\(backup)/Manifest.plist"))
    var root = try #require(try PropertyListSerialization.propertyList(from: bytes, format: nil) as? [String: Any])
    root["IsEncrypted"] = isEncrypted
    let changed = try PropertyListSerialization.data(fromPropertyList: root, format: .binary, options: 0)
    try sandbox.write(Array(changed), to: "\(backup)/Manifest.plist")
  }

  @Test("A backup that falsely says it has no password is rejected, with advice on how to decrypt it")
  func denied() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try set(isEncrypted: false, of: "b", in: sandbox)
    for line in ["inspect b", "verify b", "export b -o -"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 14, "\(line): \(outcome)")
      #expect(
        outcome.errors.contains(
          "error: b says that it has no password, but it was made with one\n"), "\(outcome)")
      #expect(unwrapped(outcome.errors).contains("set IsEncrypted to true"), "\(outcome)")
      #expect(!outcome.errors.contains("leave --password-file out"), "\(outcome)")
    }
    try set(isEncrypted: true, of: "b", in: sandbox)
    #expect(try sandbox.keyhaul("verify b --password-file .bp").status == 0)
  }

  @Test("A backup with a false claim of a password is read without it, and a given password is reported")
  func claimed() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    try set(isEncrypted: true, of: "b", in: sandbox)
    #expect(try sandbox.keyhaul("inspect b").status == 0)
    let outcome = try sandbox.keyhaul("inspect b --password-file .bp")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(outcome.errors.contains("error: b has no password, but --password-file provides one\n"), "\(outcome)")
    #expect(outcome.errors.hasSuffix("try: if it is the right backup, leave --password-file out\n"), "\(outcome)")
  }

  @Test("A keybag of another type is named, and its password is not called wrong")
  func keybagType() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.write(Array("other\n".utf8), to: ".other")
    var manifest = try sandbox.read("b/Manifest.plist")
    let field = try #require(KeybagFields.inside(manifest).first { $0.tag == "TYPE" })
    manifest.replaceSubrange(field.range, with: [0, 0, 0, 4])
    try sandbox.write(manifest, to: "b/Manifest.plist")
    let outcome = try sandbox.keyhaul("verify b --password-file .other")
    #expect(outcome.status == 14 && !outcome.errors.contains("the password is wrong"), "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("why: the keybag's type is 4 (an asymmetric backup)"), "\(outcome)")
  }

  @Test("A single item that only its device can decrypt is reported in the singular")
  func singleItem() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create solo -q")
    try sandbox.succeed("item add solo --service s --account a --secret-command 'echo s' -q")
    try sandbox.succeed("backup solo --no-password -o b/ -q")
    let outcome = try sandbox.keyhaul("verify b --home elsewhere")
    #expect(
      outcome.status == 0
        && unwrapped(outcome.output).hasSuffix(
          "its 1 item needs a device's hardware key (the backup names solo)."),
      "\(outcome)")
  }

  @Test("A password that only one of two compared backups needs is used for it, with a note")
  func diff() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.backUp(to: "b/")
    for line in ["diff plain b", "diff b plain"] {
      for (setting, flag, _) in Self.ways {
        let outcome = try sandbox.devices.run("\(setting) keyhaul \(line) \(flag)")
        #expect(
          outcome.status == 0 && outcome.errors.contains("warning: plain has no password\n"),
          "\(setting) \(line) \(flag): \(outcome)")
      }
    }
    #expect(try sandbox.keyhaul("diff b plain --password-file .bp --other-password-file .bp").status == 14)
    #expect(try sandbox.keyhaul("diff plain b --password-file .bp --other-password-file .bp").status == 14)
    #expect(try sandbox.keyhaul("diff plain b --other-password-file .bp").status == 0)
    #expect(try sandbox.keyhaul("diff plain old-phone --password-file .bp").status == 14)
  }
}
