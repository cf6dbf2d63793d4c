import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("A plan of a device, and the other ways to look at a plan")
struct PlanViewTests {
  @Test("is a document with the device as its source, and a digest of its identity and revision")
  func device() throws {
    let world = try MoveWorld()
    let text = try world.succeed("plan old-phone --to new-phone --json")
    #expect(try PlanSchema.problems(in: text) == [])
    let plan = try world.object(text)
    let source = try #require(plan["source"] as? [String: Any])
    let shown = try world.object(world.succeed("device show old-phone --json"))
    #expect(source["kind"] as? String == "device" && source["name"] as? String == "old-phone")
    #expect(source["encrypted"] as? Bool == true && source["device"] as? String == shown["udid"] as? String)
    let udid = try #require(shown["udid"] as? String)
    let revision = try #require(shown["revision"] as? String)
    let digest = try world.devices.run("printf '%s\\0%s' \(udid) \(revision) | sha256sum").output.prefix(64)
    #expect(source["digest"] as? String == "sha256:\(digest)")
    let summary = try #require(plan["summary"] as? [String: Any])
    #expect(summary["total"] as? Int == 22 && summary["migrates"] as? Int == 14)
    let plain = try world.object(world.succeed("plan old-phone --to new-phone --json --no-password"))
    #expect((plain["source"] as? [String: Any])?["encrypted"] as? Bool == false)
    #expect((plain["summary"] as? [String: Any])?["migrates"] as? Int == 0)
    let same = try world.object(world.succeed("plan old-phone --to old-phone --json --no-password"))
    #expect((same["summary"] as? [String: Any])?["migrates"] as? Int == 18)
  }

  @Test("follows the device: another item, another digest")
  func digestFollows() throws {
    let world = try MoveWorld()
    func digest() throws -> String? {
      (try world.object(world.succeed("plan old-phone --to new-phone --json"))["source"] as? [String: Any])?["digest"]
        as? String
    }
    let before = try digest()
    #expect(try digest() == before)
    try world.devices.run("printf x | keyhaul item add old-phone --service later --account me --secret-file -")
    #expect(try digest() != before)
  }

  @Test("needs the device unlocked, and takes no password")
  func usage() throws {
    let world = try MoveWorld()
    let password = try world.keyhaul("plan old-phone --to new-phone --password-file .bp")
    #expect(password.status == 64 && password.errors.hasPrefix("error: a plan made from a device needs no password\n"))
    try world.backUp(to: "b.tar")
    let archive = try world.keyhaul("plan b.tar --to new-phone --no-password --password-file .bp")
    #expect(archive.status == 64 && archive.errors.hasPrefix("error: b.tar is an existing backup\n"))
    for flags in [
      "--compare -o p", "--compare --by-app", "--audit --expect p", "--by-app --redact", "--redact --expect p",
    ] {
      #expect(try world.keyhaul("plan old-phone --to new-phone \(flags)").status == 64, "\(flags)")
    }
    try world.succeed("device lock old-phone -q")
    #expect(try world.keyhaul("plan old-phone --to new-phone").status == 15)
    #expect(try world.keyhaul("plan old-phone --to new-phone --compare").status == 15)
    #expect(try world.keyhaul("why old-phone --account anna").status == 15)
  }

  @Test("names what stays behind where the source device is available, and decides the same")
  func names() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let named = try world.plan("b.tar")
    try world.succeed("plan b.tar --to new-phone --password-file .bp -o named -q")
    try world.succeed("device delete old-phone --confirm old-phone -q")
    let sealed = try world.plan("b.tar")
    func items(_ plan: [String: Any]) -> [[String: Any]] { plan["items"] as? [[String: Any]] ?? [] }
    #expect(items(named).compactMap { $0["account"] as? String }.contains("push token"))
    #expect(!items(sealed).compactMap { $0["account"] as? String }.contains("push token"))
    for (one, other) in zip(items(named), items(sealed)) {
      for field in ["index", "outcome", "reason", "change", "protection", "detail", "kind"] {
        #expect("\(one[field] ?? "-")" == "\(other[field] ?? "-")", "\(field)")
      }
    }
    // The plan holds although the names are known no more.
    let restored = try world.keyhaul("restore b.tar --to new-phone --plan named --password-file .bp --yes")
    #expect(restored.status == 0, "\(restored.errors)")
  }

  @Test("compares in JSON: counts, four outcomes an item, and advice")
  func comparison() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain.tar --no-password -q")
    let compared = try world.object(world.succeed("plan plain.tar --to new-phone --compare --json"))
    #expect(compared["format"] as? String == "migration-comparison/1")
    let settings = try #require(compared["settings"] as? [[String: Any]])
    #expect(settings.map { $0["arrives"] as? Int } == [18, 14, 18, 0])
    #expect(settings.map { $0["password"] as? Bool } == [true, true, false, false])
    let items = try #require(compared["items"] as? [[String: Any]])
    #expect(items.count == 18 && items.allSatisfy { ($0["outcomes"] as? [Any])?.count == 4 })
    let advice = try #require(compared["advice"] as? [String: Any])
    #expect(advice["gained_by_password"] as? Int == 14 && advice["never_here"] as? Int == 4)
    #expect(advice["brought_by_password"] as? Int == 0)
    try world.backUp(to: "b.tar")
    let given = try world.object(world.succeed("plan b.tar --to new-phone --compare --json --password-file .bp"))
    let words = try #require(given["advice"] as? [String: Any])
    #expect(words["gained_by_password"] as? Int == 0 && words["brought_by_password"] as? Int == 14)
    let current = try #require(compared["current"] as? [String: Bool])
    #expect(current == ["password": false, "same_device": false])
  }

  @Test("compares a damaged backup within 80 columns, and numbers the damaged item by app")
  func damagedComparison() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    let payload = try #require(try world.files(in: "plain").first { $0.contains("/") })
    var bytes = try world.read("plain/\(payload)")
    // The version of the first item's blob, which no system writes so.
    let blob = try #require(bytes.firstRange(of: [3, 0, 0, 0]))
    bytes[blob.lowerBound] = 9
    try world.write(bytes, to: "plain/\(payload)")
    let compared = try world.devices.run("COLUMNS=80 keyhaul plan plain/ --to new-phone --compare").output
    #expect(
      compared.contains(
        """
          to the same device
            backup with a password    17 restored, 1 damaged
        """), "\(compared)")
    for line in compared.split(separator: "\n") {
      #expect(DisplayWidth.columns(of: String(line)) <= 80, "\(line)")
    }
    #expect(try world.keyhaul("plan plain/ --to new-phone --by-app").output.contains("(encrypted, item "))
  }

  @Test("sorts by app and audits in JSON")
  func appsAndAudit() throws {
    let world = try MoveWorld()
    let apps = try world.object(world.succeed("plan old-phone --to new-phone --by-app --json"))
    #expect(apps["format"] as? String == "migration-by-app/1")
    let list = try #require(apps["apps"] as? [[String: Any]])
    #expect(list.prefix(2).map { $0["name"] as? String } == ["bank", "chat"])
    #expect((list[0]["losses"] as? [Int])?.count == 3)
    let audit = try world.object(world.succeed("plan old-phone --to new-phone --audit --json"))
    #expect(audit["format"] as? String == "keychain-audit/1")
    #expect(
      (audit["summary"] as? [String: Int])
        == ["total": 22, "leaves_device": 14, "never_leaves": 8, "unreadable": 0, "deprecated": 5])
  }

  @Test("an archive knows its apps by what Info.plist lists")
  func appsOfArchive() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let apps = try world.object(world.succeed("plan b.tar --to new-phone --by-app --json --password-file .bp"))
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
    try world.backUp(to: "b/")
    try world.write(Array(properties.utf8), to: "b/Info.plist")
    let archive = try BackupArchive.open(.path(world.home.appending(path: "b").path))
    let names = InstalledApps.names(in: archive)
    #expect(names["org.example.a"] == "org.example.a" && names["org.example.b"] == "Bee")
  }

  @Test("without names it can be shown to others, and not be carried out")
  func redacted() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let text = try world.succeed("plan b.tar --to new-phone --redact --json --password-file .bp -o r")
    #expect(try PlanSchema.problems(in: text) == [])
    let udid = try #require(try world.object(world.succeed("device show old-phone --json"))["udid"] as? String)
    for name in ["anna", "chat.example", "push token", "old-phone", "new-phone", "b.tar", "apple", udid] {
      #expect(!text.contains(name), "\(name)")
    }
    #expect(text.contains("\"label\": \"item-0002\"") && text.contains("\"redacted\": true"))
    // A row of many says which backup it is about.
    let many = try world.keyhaul("plan b.tar b.tar --to new-phone --redact --password-file .bp")
    #expect(many.status == 64 && many.output.isEmpty && !many.errors.contains("b.tar"), "\(many)")
    let plan = try world.plan("b.tar")
    #expect(try world.object(text)["summary"] as? NSDictionary == plan["summary"] as? NSDictionary)
    let refused = try world.keyhaul("restore b.tar --to new-phone --plan r --password-file .bp --yes")
    #expect(refused.status == 16 && refused.errors.contains("its names were left out"))
    try world.succeed("plan old-phone --to new-phone -o d -q")
    let forecast = try world.keyhaul("restore b.tar --to new-phone --plan d --password-file .bp --yes")
    #expect(forecast.status == 16 && flat(forecast.errors).contains("not from a backup"))
  }

  @Test("of many items stays short, and is the same each time")
  func many() throws {
    let world = try MoveWorld()
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
    try world.write(Array(fixture.utf8), to: "many.json")
    try world.succeed("device create many --from many.json -q")
    try world.backUp("many", to: "many.tar")
    let text = try world.succeed("plan many.tar --to new-phone --password-file .bp")
    #expect(text.split(separator: "\n").count < 80)
    #expect(text.contains("… 990 more (-v shows all)"))
    #expect(try world.succeed("plan many.tar --to new-phone --password-file .bp") == text)
    #expect(
      try world.succeed("plan many.tar --to new-phone --password-file .bp -v").split(separator: "\n").count > 1_500)
    let json = try world.plan("many.tar")
    var again = try world.plan("many.tar")
    again["made"] = json["made"]
    again["checksum"] = json["checksum"]
    #expect(json as NSDictionary == again as NSDictionary)
  }
}
