import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Plans of devices and views of plans")
struct PlanViewTests {
  @Test("The document names the device as the source, with a digest of its identity and revision")
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
    let plain = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --json --no-password"))
    #expect((plain["source"] as? [String: Any])?["encrypted"] as? Bool == false)
    #expect((plain["summary"] as? [String: Any])?["migrates"] as? Int == 0)
    let same = try sandbox.object(sandbox.succeed("plan old-phone --to old-phone --json --no-password"))
    #expect((same["summary"] as? [String: Any])?["migrates"] as? Int == 18)
  }

  @Test("The digest changes with the device's items")
  func changedDigest() throws {
    let sandbox = try PhoneSandbox()
    func digest() throws -> String? {
      (try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --json"))["source"] as? [String: Any])?[
        "digest"]
        as? String
    }
    let before = try digest()
    #expect(try digest() == before)
    try sandbox.devices.run("printf x | keyhaul item add old-phone --service later --account me --secret-file -")
    #expect(try digest() != before)
  }

  @Test("A plan of a device requires it to be unlocked, and rejects a password")
  func usage() throws {
    let sandbox = try PhoneSandbox()
    let password = try sandbox.keyhaul("plan old-phone --to new-phone --password-file .bp")
    #expect(password.status == 64 && password.errors.hasPrefix("error: a plan made from a device needs no password\n"))
    try sandbox.backUp(to: "b.tar")
    let archive = try sandbox.keyhaul("plan b.tar --to new-phone --no-password --password-file .bp")
    #expect(archive.status == 64 && archive.errors.hasPrefix("error: b.tar is an existing backup\n"))
    for flags in [
      "--compare -o p", "--compare --by-app", "--audit --expect p", "--by-app --redact", "--redact --expect p",
    ] {
      #expect(try sandbox.keyhaul("plan old-phone --to new-phone \(flags)").status == 64, "\(flags)")
    }
    try sandbox.succeed("device lock old-phone -q")
    #expect(try sandbox.keyhaul("plan old-phone --to new-phone").status == 15)
    #expect(try sandbox.keyhaul("plan old-phone --to new-phone --compare").status == 15)
    #expect(try sandbox.keyhaul("why old-phone --account anna").status == 15)
  }

  @Test("The source device adds the names of items that stay, without changing a decision")
  func names() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let named = try sandbox.plan("b.tar")
    try sandbox.succeed("plan b.tar --to new-phone --password-file .bp -o named -q")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let sealed = try sandbox.plan("b.tar")
    func items(_ plan: [String: Any]) -> [[String: Any]] { plan["items"] as? [[String: Any]] ?? [] }
    #expect(items(named).compactMap { $0["account"] as? String }.contains("push token"))
    #expect(!items(sealed).compactMap { $0["account"] as? String }.contains("push token"))
    for (namedItem, sealedItem) in zip(items(named), items(sealed)) {
      for field in ["index", "outcome", "reason", "change", "protection", "detail", "kind"] {
        #expect("\(namedItem[field] ?? "-")" == "\(sealedItem[field] ?? "-")", "\(field)")
      }
    }
    // The plan stays valid, although the names are no longer available.
    let restored = try sandbox.keyhaul("restore b.tar --to new-phone --plan named --password-file .bp --yes")
    #expect(restored.status == 0, "\(restored.errors)")
  }

  @Test("--compare in JSON has counts, four outcomes per item, and advice")
  func comparison() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let compared = try sandbox.object(sandbox.succeed("plan plain.tar --to new-phone --compare --json"))
    #expect(compared["format"] as? String == "migration-comparison/1")
    let settings = try #require(compared["settings"] as? [[String: Any]])
    #expect(settings.map { $0["arrives"] as? Int } == [18, 14, 18, 0])
    #expect(settings.map { $0["password"] as? Bool } == [true, true, false, false])
    let items = try #require(compared["items"] as? [[String: Any]])
    #expect(items.count == 18 && items.allSatisfy { ($0["outcomes"] as? [Any])?.count == 4 })
    let advice = try #require(compared["advice"] as? [String: Any])
    #expect(advice["gained_by_password"] as? Int == 14 && advice["never_here"] as? Int == 4)
    #expect(advice["brought_by_password"] as? Int == 0)
    try sandbox.backUp(to: "b.tar")
    let given = try sandbox.object(sandbox.succeed("plan b.tar --to new-phone --compare --json --password-file .bp"))
    let givenAdvice = try #require(given["advice"] as? [String: Any])
    #expect(givenAdvice["gained_by_password"] as? Int == 0 && givenAdvice["brought_by_password"] as? Int == 14)
    let current = try #require(compared["current"] as? [String: Bool])
    #expect(current == ["password": false, "same_device": false])
  }

  @Test("A damaged backup is compared within 80 columns, and its damaged item is numbered by app")
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
    let apps = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --by-app --json"))
    #expect(apps["format"] as? String == "migration-by-app/1")
    let list = try #require(apps["apps"] as? [[String: Any]])
    #expect(list.prefix(2).map { $0["name"] as? String } == ["bank", "chat"])
    #expect((list[0]["losses"] as? [Int])?.count == 3)
    let audit = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --audit --json"))
    #expect(audit["format"] as? String == "keychain-audit/1")
    #expect(
      (audit["summary"] as? [String: Int])
        == ["total": 22, "leaves_device": 14, "never_leaves": 8, "unreadable": 0, "deprecated": 5])
  }

  @Test("The names of apps come from the backup's Info.plist")
  func appsOfBackup() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let apps = try sandbox.object(sandbox.succeed("plan b.tar --to new-phone --by-app --json --password-file .bp"))
    let list = try #require(apps["apps"] as? [[String: Any]])
    let chat = try #require(list.first { $0["name"] as? String == "org.example.chat" })
    #expect(chat["kind"] as? String == "app")
    let properties = """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>
      <key>Installed Applications</key><array><string>org.example.a</string></array>
      <key>Applications</key><dict><key>org.example.b</key><dict><key>iTunesMetadata</key><data>\(
        Data("<plist version=\"1.0\"><dict><key>itemName</key><string>Bee</string></dict></plist>".utf8)
          .base64EncodedString())</data></dict></dict></dict></plist>
      """
    try sandbox.backUp(to: "b/")
    try sandbox.write(Array(properties.utf8), to: "b/Info.plist")
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
    let many = try sandbox.keyhaul("plan b.tar b.tar --to new-phone --redact --password-file .bp")
    #expect(many.status == 64 && many.output.isEmpty && !many.errors.contains("b.tar"), "\(many)")
    let plan = try sandbox.plan("b.tar")
    #expect(try sandbox.object(text)["summary"] as? NSDictionary == plan["summary"] as? NSDictionary)
    let refused = try sandbox.keyhaul("restore b.tar --to new-phone --plan r --password-file .bp --yes")
    #expect(refused.status == 16 && refused.errors.contains("its names were left out"))
    try sandbox.succeed("plan old-phone --to new-phone -o d -q")
    let forecast = try sandbox.keyhaul("restore b.tar --to new-phone --plan d --password-file .bp --yes")
    #expect(forecast.status == 16 && unwrapped(forecast.errors).contains("not from a backup"))
  }

  @Test("A plan of many items is short and repeatable")
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
    #expect(text.contains("… 990 more (-v shows all)"))
    #expect(try sandbox.succeed("plan many.tar --to new-phone --password-file .bp") == text)
    #expect(
      try sandbox.succeed("plan many.tar --to new-phone --password-file .bp -v").split(separator: "\n").count > 1_500)
    let json = try sandbox.plan("many.tar")
    var again = try sandbox.plan("many.tar")
    again["made"] = json["made"]
    again["checksum"] = json["checksum"]
    #expect(json as NSDictionary == again as NSDictionary)
  }
}
