import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports
@testable import keyhaul

@Suite("Details of the device and the backup in inspect")
struct InspectDetailsTests {
  private func propertyList(_ members: String) -> [UInt8] {
    Array("<?xml version=\"1.0\"?><plist version=\"1.0\"><dict>\(members)</dict></plist>".utf8)
  }

  @Test(
    "Inspect names the computer's program, the incremental backup and both dates with their time zone")
  func origin() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.write(
      propertyList(
        "<key>iTunes Version</key><string>10.14.6</string><key>macOS Version</key><string>10.15.7</string>"
          + "<key>Last Backup Date</key><date>2020-01-02T03:04:05Z</date>"), to: "b/Info.plist")
    try sandbox.write(
      propertyList(
        "<key>SnapshotState</key><string>finished</string><key>IsFullBackup</key><false/>"
          + "<key>Date</key><date>2020-01-01T00:00:00Z</date>"), to: "b/Status.plist")
    let text = unwrapped(try sandbox.devices.run("TZ=UTC keyhaul inspect b --home elsewhere").output)
    for detail in [
      "backup incremental: the device sent only what had changed", "passcode set",
      "finished 2020-01-01 00:00 UTC", "last backup according to the computer: 2020-01-02 03:04 UTC",
      "by macOS 10.15.7 (iTunes version 10.14.6)", "device iPhone 14 Pro (iPhone15,2), iOS 18.1 (build 22B83)",
      "classes 1 to 11: 4 wrapped with the password and the device, 7 with the password",
    ] {
      #expect(text.contains(detail), "\(detail): \(text)")
    }
    let document = try sandbox.object(sandbox.succeed("inspect b --json --home elsewhere -q"))
    let computer = try #require(document["computer"] as? [String: Any])
    #expect(computer["itunes_version"] as? String == "10.14.6" && computer["macos_version"] as? String == "10.15.7")
    #expect((document["status"] as? [String: Any])?["full"] as? Bool == false)
    #expect(document["passcode_set"] as? Bool == true && document["by_domain"] is NSNull)
    let page = try sandbox.succeed("inspect b --format html -o - --home elsewhere")
    #expect(page.contains("by macOS 10.15.7") && page.contains("iPhone 14 Pro (iPhone15,2)"))
  }

  @Test("Inspect shows the time of unlocking only if it was measured")
  func unlockTime() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    func seconds(_ flags: String) throws -> Any? {
      let document = try sandbox.object(sandbox.succeed("inspect b --json --home elsewhere -q \(flags)"))
      return (document["keybag"] as? [String: Any])?["unlocked_in_seconds"]
    }
    #expect(try seconds("") is NSNull)
    #expect(try seconds("--password-file .bp") is Double)
    #expect(try !unwrapped(sandbox.succeed("inspect b --home elsewhere")).contains("unlocked in"))
    #expect(try unwrapped(sandbox.succeed("inspect b --password-file .bp --home elsewhere")).contains("unlocked in "))
  }

  @Test("Inspect counts the files of the largest domains, and of all domains with -v")
  func domains() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    let text = unwrapped(try sandbox.succeed("inspect old --home elsewhere"))
    #expect(
      text.contains("domains KeychainDomain: 1 file, \(old.keychainSize) bytes HomeDomain: 2 files, 10 bytes keybag"))
    let document = try sandbox.object(sandbox.succeed("inspect old --json --home elsewhere -q"))
    let domains = try #require(document["by_domain"] as? [[String: Any]])
    #expect(domains.map { $0["name"] as? String } == ["KeychainDomain", "HomeDomain"])
    #expect(domains.map { $0["files"] as? Int } == [1, 2] && domains.map { $0["missing"] as? Int } == [0, 0])
    try old.removePayload(of: "Library/plain.txt")
    #expect(
      unwrapped(try sandbox.keyhaul("inspect old --home elsewhere").output).contains(
        "HomeDomain: 2 files, 5 bytes, 1 missing"))
  }

  @Test("Inspect counts undecryptable items by kind, class and reason, and begins with them if they are the majority")
  func deviceBound() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create phone -q")
    for (account, protection) in [("one", "ak"), ("two", "aku"), ("three", "aku"), ("four", "dku")] {
      try sandbox.succeed(
        "item add phone --service s --account \(account) --protection \(protection) --secret-file .bp -q")
    }
    try sandbox.backUp("phone", to: "b.tar")
    let line = "inspect b.tar --password-file .bp --home elsewhere"
    let text = try sandbox.succeed(line)
    #expect(
      unwrapped(text).hasPrefix("Most of its items (3 of 4 items) are this-device-only: only phone can restore them. "),
      "\(text)")
    #expect(
      unwrapped(text).contains(
        "encrypted 3 device-bound: 2 generic (when unlocked, this device), 1 generic (always, this device)"))
    let document = try sandbox.object(sandbox.succeed("\(line) --json -q"))
    let sealed = (document["keychain"] as? [String: Any])?["sealed"] as? [[String: Any]] ?? []
    #expect(
      sealed.map { $0["count"] as? Int } == [2, 1] && sealed.map { $0["protection"] as? String } == ["aku", "dku"])
    #expect(sealed.allSatisfy { $0["reason"] as? String == "device-bound" })
    #expect(try !sandbox.succeed("inspect b.tar --home elsewhere").contains("Most of"))
  }

  @Test("If items have equal names, inspect shows another attribute that distinguishes them")
  func equalNames() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create phone -q")
    for group in ["ABCDE12345.org.example.one", "ABCDE12345.org.example.two"] {
      try sandbox.succeed(
        "item add phone --service s --account a --access-group \(group) --secret-file .bp -q")
    }
    try sandbox.backUp("phone", to: "b.tar")
    for line in ["inspect b.tar --list --password-file .bp --home elsewhere", "item find phone"] {
      let text = try sandbox.devices.run("COLUMNS=140 keyhaul \(line)").output
      #expect(text.contains("DIFFERS IN"), "\(text)")
      #expect(text.contains("  access group ABCDE12345.org.example.one\n"), "\(text)")
      #expect(text.contains("  access group ABCDE12345.org.example.two\n"), "\(text)")
    }
    #expect(try !sandbox.succeed("item find old-phone").contains("DIFFERS IN"))
    let plan = try sandbox.succeed("plan b.tar --to new-phone --password-file .bp")
    #expect(plan.contains("access group ABCDE12345.org.example.one") && plan.contains(".two"))
  }

  @Test("A key is named by its own attributes, or \u{201C}key\u{201D} if it has none")
  func keys() {
    func key(_ attributes: AttributeMap<PropertyValue>) -> String {
      ItemText.name(of: KeychainItem(kind: .key, attributes: attributes))
    }
    #expect(key([:]) == "key" && key([.keySizeInBits: .integer(0), .label: .string("")]) == "key")
    #expect(key([.label: .string("ssh")]) == "ssh" && key([.keySizeInBits: .integer(256)]) == "256 bits")
    #expect(key([.type: .integer(73), .keySizeInBits: .integer(256), .keyClass: .integer(1)]) == "P-256, private")
    #expect(key([.type: .string("42"), .keyClass: .string("0")]) == "RSA, public")
    #expect(key([.type: .integer(42), .keySizeInBits: .integer(2048)]) == "RSA, 2,048 bits")
  }

  @Test("With an empty Manifest.db, inspect says whether a given password is right, and does not ask for it again")
  func emptyManifest() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("convert b.tar -o b/ -q")
    try sandbox.write([], to: "b/Manifest.db")
    let withoutPassword = try sandbox.keyhaul("inspect b")
    #expect(withoutPassword.output.contains("add --password-file"))
    #expect(!withoutPassword.output.contains("The password is right"))
    let withPassword = try sandbox.keyhaul("inspect b --password-file .bp")
    #expect(withPassword.status == 3 && !withPassword.output.contains("add --password-file"))
    #expect(unwrapped(withPassword.output).hasSuffix("The password is right: it unwraps class keys of the keybag."))
    try sandbox.write(Array("another one".utf8), to: ".wrong")
    let withWrongPassword = try sandbox.keyhaul("inspect b --password-file .wrong")
    #expect(withWrongPassword.status == 12 && !withWrongPassword.output.contains("The password is right"))
  }
}
