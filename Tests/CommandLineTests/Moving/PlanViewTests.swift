import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Plans of devices and views of plans")
struct PlanViewTests {
  @Test("The document of a device's plan names the device as the source, with a digest of its identity and revision")
  func device() throws {
    let sandbox = try PhoneSandbox()
    let text = try sandbox.succeed("plan old-phone --to new-phone --json")
    #expect(try PlanSchema.problems(in: text) == [])
    let plan = try sandbox.object(text)
    let source = try #require(plan["source"] as? [String: Any])
    let shown = try sandbox.object(sandbox.succeed("device show old-phone --json"))
    #expect(source["kind"] as? String == "device" && source["name"] as? String == "old-phone")
    #expect(source["encrypted"] as? Bool == true && source["device"] as? String == shown["udid"] as? String)
    let udid = try #require(shown["udid"] as? String)
    let revision = try #require(shown["revision"] as? String)
    let digest = try sandbox.devices.run("printf '%s\\0%s' \(udid) \(revision) | sha256sum").output.prefix(64)
    #expect(source["digest"] as? String == "sha256:\(digest)")
    let summary = try #require(plan["summary"] as? [String: Any])
    #expect(summary["total"] as? Int == 22 && summary["migrates"] as? Int == 14)
    let withoutPassword = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --json --no-password"))
    #expect((withoutPassword["source"] as? [String: Any])?["encrypted"] as? Bool == false)
    #expect((withoutPassword["summary"] as? [String: Any])?["migrates"] as? Int == 0)
    let toSameDevice = try sandbox.object(sandbox.succeed("plan old-phone --to old-phone --json --no-password"))
    #expect((toSameDevice["summary"] as? [String: Any])?["migrates"] as? Int == 18)
  }

  @Test("The digest changes with the device's items")
  func changedDigest() throws {
    let sandbox = try PhoneSandbox()
    func digest() throws -> String? {
      let plan = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --json"))
      return (plan["source"] as? [String: Any])?["digest"] as? String
    }
    let digestBefore = try digest()
    #expect(try digest() == digestBefore)
    try sandbox.devices.run("printf x | keyhaul item add old-phone --service later --account me --secret-file -")
    #expect(try digest() != digestBefore)
  }

  @Test("A plan of a device requires an unlocked device, and rejects a password")
  func usage() throws {
    let sandbox = try PhoneSandbox()
    let ofDevice = try sandbox.keyhaul("plan old-phone --to new-phone --password-file .bp")
    #expect(ofDevice.status == 64 && ofDevice.errors.hasPrefix("error: a plan made from a device needs no password\n"))
    try sandbox.backUp(to: "b.tar")
    let ofBackup = try sandbox.keyhaul("plan b.tar --to new-phone --no-password --password-file .bp")
    #expect(ofBackup.status == 64 && ofBackup.errors.hasPrefix("error: b.tar is an existing backup\n"))
    try sandbox.succeed("device lock old-phone -q")
    #expect(try sandbox.keyhaul("plan old-phone --to new-phone").status == 15)
    #expect(try sandbox.keyhaul("plan old-phone --to new-phone --compare").status == 15)
    #expect(try sandbox.keyhaul("why old-phone --account anna").status == 15)
  }

  @Test("Flags of a plan that exclude each other are rejected")
  func contradictoryFlags() throws {
    let sandbox = try PhoneSandbox()
    for flags in [
      "--compare -o p", "--compare --by-app", "--audit --expect p", "--by-app --redact", "--redact --expect p",
    ] {
      #expect(try sandbox.keyhaul("plan old-phone --to new-phone \(flags)").status == 64, "\(flags)")
    }
  }

  @Test("If the source device is available, the plan names items that stay, and all decisions are the same")
  func names() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    func plannedItems() throws -> [[String: Any]] {
      try #require(try sandbox.plan("b.tar")["items"] as? [[String: Any]])
    }
    let withDevice = try plannedItems()
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o move.plan -q")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let withoutDevice = try plannedItems()
    #expect(withDevice.contains { $0["account"] as? String == "push token" })
    #expect(!withoutDevice.contains { $0["account"] as? String == "push token" })
    #expect(withDevice.count == withoutDevice.count)
    for (item, itemWithoutDevice) in zip(withDevice, withoutDevice) {
      for member in ["index", "outcome", "reason", "change", "protection", "detail", "kind"] {
        #expect("\(item[member] ?? "-")" == "\(itemWithoutDevice[member] ?? "-")", "\(member)")
      }
    }
    // The plan stays valid, although the names are no longer available.
    let restored = try sandbox.keyhaul("restore b.tar --to new-phone --plan move.plan --password-file .bp --yes")
    #expect(restored.status == 0, "\(restored.errors)")
  }

  @Test("--compare in JSON has counts, four outcomes per item, and advice")
  func comparison() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let compared = try sandbox.object(sandbox.succeed("plan plain.tar --to new-phone --compare --json"))
    #expect(compared["format"] as? String == "migration-comparison/1")
    let restores = try #require(compared["settings"] as? [[String: Any]])
    // With a password: same device, other device. Without a password: same device, other device.
    #expect(restores.map { $0["arrives"] as? Int } == [18, 14, 18, 0])
    #expect(restores.map { $0["password"] as? Bool } == [true, true, false, false])
    let items = try #require(compared["items"] as? [[String: Any]])
    #expect(items.count == 18 && items.allSatisfy { ($0["outcomes"] as? [Any])?.count == 4 })
    let advice = try #require(compared["advice"] as? [String: Any])
    #expect(advice["gained_by_password"] as? Int == 14 && advice["never_here"] as? Int == 4)
    #expect(advice["brought_by_password"] as? Int == 0)
    let current = try #require(compared["current"] as? [String: Bool])
    #expect(current == ["password": false, "same_device": false])
    try sandbox.backUp(to: "b.tar")
    let encryptedComparison = try sandbox.object(
      sandbox.succeed("plan b.tar --to new-phone --compare --json --password-file .bp"))
    let adviceOnEncrypted = try #require(encryptedComparison["advice"] as? [String: Any])
    #expect(adviceOnEncrypted["gained_by_password"] as? Int == 0)
    #expect(adviceOnEncrypted["brought_by_password"] as? Int == 14)
  }

  @Test("A comparison of a damaged backup fits in 80 columns, and --by-app shows the damaged item's number")
  func damagedComparison() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.damageFirstItem(in: "plain")
    let compared = try sandbox.devices.run("COLUMNS=80 keyhaul plan plain/ --to new-phone --compare").output
    #expect(
      compared.contains(
        """
          to the same device
            backup with a password    17 restored, 1 damaged
        """), "\(compared)")
    for line in compared.split(separator: "\n") {
      #expect(DisplayWidth.columns(of: String(line)) <= 80, "\(line)")
    }
    #expect(try sandbox.keyhaul("plan plain/ --to new-phone --by-app").output.contains("(encrypted, item "))
  }

  @Test("--by-app and --audit are available in JSON")
  func appsAndAudit() throws {
    let sandbox = try PhoneSandbox()
    let byApp = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --by-app --json"))
    #expect(byApp["format"] as? String == "migration-by-app/1")
    let apps = try #require(byApp["apps"] as? [[String: Any]])
    #expect(apps.prefix(2).map { $0["name"] as? String } == ["bank", "chat"])
    #expect((apps[0]["losses"] as? [Int])?.count == 3)
    let audit = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --audit --json"))
    #expect(audit["format"] as? String == "keychain-audit/1")
    #expect(
      (audit["summary"] as? [String: Int])
        == ["total": 22, "leaves_device": 14, "never_leaves": 8, "unreadable": 0, "deprecated": 5])
  }

  @Test("The names of apps come from the backup's Info.plist")
  func appsOfBackup() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let byApp = try sandbox.object(sandbox.succeed("plan b.tar --to new-phone --by-app --json --password-file .bp"))
    let apps = try #require(byApp["apps"] as? [[String: Any]])
    let chat = try #require(apps.first { $0["name"] as? String == "org.example.chat" })
    #expect(chat["kind"] as? String == "app")
    let metadata = "<plist version=\"1.0\"><dict><key>itemName</key><string>Bee</string></dict></plist>"
    try sandbox.backUp(to: "b/")
    try sandbox.editPropertyList("b/Info.plist") { info in
      info["Installed Applications"] = ["org.example.a"]
      info["Applications"] = ["org.example.b": ["iTunesMetadata": Data(metadata.utf8)]]
    }
    let archive = try BackupArchive.open(.path(sandbox.home.appending(path: "b").path))
    let names = InstalledApps.names(in: archive)
    #expect(names["org.example.a"] == "org.example.a" && names["org.example.b"] == "Bee")
  }

  @Test("A redacted plan contains no names, and cannot be carried out")
  func redacted() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let text = try sandbox.succeed("plan b.tar --to new-phone --redact --json --password-file .bp -o r")
    #expect(try PlanSchema.problems(in: text) == [])
    let udid = try #require(try sandbox.object(sandbox.succeed("device show old-phone --json"))["udid"] as? String)
    for name in ["anna", "chat.example", "push token", "old-phone", "new-phone", "b.tar", "apple", udid] {
      #expect(!text.contains(name), "\(name)")
    }
    #expect(text.contains("\"label\": \"item-0002\"") && text.contains("\"redacted\": true"))
    // A table names each backup, so redaction works only for one backup.
    let table = try sandbox.keyhaul("plan b.tar b.tar --to new-phone --redact --password-file .bp")
    #expect(table.status == 64 && table.output.isEmpty && !table.errors.contains("b.tar"), "\(table)")
    let plan = try sandbox.plan("b.tar")
    #expect(try sandbox.object(text)["summary"] as? NSDictionary == plan["summary"] as? NSDictionary)
    let refused = try sandbox.keyhaul("restore b.tar --to new-phone --plan r --password-file .bp --yes")
    #expect(refused.status == 16 && refused.errors.contains("its names were left out"))
  }

  @Test("A saved plan of a device cannot be carried out")
  func planOfDevice() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("plan old-phone --to new-phone -o d -q")
    let refused = try sandbox.keyhaul("restore b.tar --to new-phone --plan d --password-file .bp --yes")
    #expect(refused.status == 16 && unwrapped(refused.errors).contains("not from a backup"))
  }

  @Test("A plan of many items is short, and planning again gives the same result")
  func many() throws {
    let sandbox = try PhoneSandbox()
    let items = (0..<2_000).map { index in
      let protection = ["ak", "ck", "aku", "akpu"][index % 4]
      return """
        {"kind":"generic-password","protection":"\(protection)","attributes":{"svce":"service \(index)",\
        "acct":"a","agrp":"ABCDE12345.org.example.app\(index % 300)"},"secret":{"text":"s"}}
        """
    }
    let fixture = """
      {"format":"device-fixture/1","seed":1,"created":"2026-11-20T18:00:00Z",\
      "device":{"name":"many","product_type":"iPhone15,2","product_version":"18.1","passcode":"1"},\
      "apps":[],"items":[\(items.joined(separator: ","))]}
      """
    try sandbox.write(Array(fixture.utf8), to: "many.json")
    try sandbox.succeed("device create many --from many.json -q")
    try sandbox.backUp("many", to: "many.tar")
    let text = try sandbox.succeed("plan many.tar --to new-phone --password-file .bp")
    #expect(text.split(separator: "\n").count < 80)
    // The 1,000 items of the classes ak and ck move. Ten of them are shown.
    #expect(text.contains("… 990 more (-v shows all)"))
    #expect(try sandbox.succeed("plan many.tar --to new-phone --password-file .bp") == text)
    #expect(
      try sandbox.succeed("plan many.tar --to new-phone --password-file .bp -v").split(separator: "\n").count > 1_500)
    let document = try sandbox.plan("many.tar")
    var secondDocument = try sandbox.plan("many.tar")
    // The date and the checksum over it differ from run to run.
    for member in ["made", "checksum"] { secondDocument[member] = document[member] }
    #expect(document as NSDictionary == secondDocument as NSDictionary)
  }
}
