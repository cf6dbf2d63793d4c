import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import keyhaul

@Suite("The commands verify, inspect and diff")
struct VerifyAndDiffTests {
  /// Runs a command with `--json`, checks its exit status, and returns the document that it prints.
  private func jsonDocument(of line: String, in sandbox: PhoneSandbox, status: Int32) throws -> [String: Any] {
    let outcome = try sandbox.keyhaul("\(line) --json")
    #expect(outcome.status == status, "\(line): \(outcome)")
    return try sandbox.object(outcome.output)
  }

  /// Returns the results of the checks in verify's JSON by identifier: `true` if the check found no fault.
  private func checkResults(in document: [String: Any]) -> [String: Bool] {
    var results: [String: Bool] = [:]
    for check in document["checks"] as? [[String: Any]] ?? [] {
      // Each check must have a detail. Without one, its result is missing, and the test fails.
      guard let id = check["id"] as? String, check["detail"] is String else { continue }
      #expect(results[id] == nil, "two results of \(id)")
      results[id] = check["ok"] as? Bool
    }
    return results
  }

  // MARK: verify

  @Test("Verify's JSON has the checks, the item counts and a verdict, and lists the checks that were skipped")
  func verifyDocument() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    let complete = try jsonDocument(of: "verify b/ --password-file .bp --home elsewhere", in: sandbox, status: 0)
    #expect(complete["format"] as? String == "backup-verification/1" && complete["whole"] as? Bool == true)
    #expect(complete["verdict"] as? String == "whole" && complete["quick"] as? Bool == false)
    let results = checkResults(in: complete)
    #expect(results.keys.sorted() == ["database", "files", "items", "keybag", "keychain", "seal", "structure"])
    #expect(results.values.allSatisfy { $0 })
    #expect(complete["items"] as? [String: Int] == ["readable": 14, "device_bound": 4, "damaged": 0])
    let quick = try jsonDocument(of: "verify b/ --quick", in: sandbox, status: 0)
    #expect(quick["items"] is NSNull && quick["quick"] as? Bool == true)
    #expect(checkResults(in: quick).keys.sorted() == ["files", "keybag", "structure"])
    let unchecked = (quick["unchecked"] as? [[String: String]] ?? []).compactMap { $0["id"] }
    #expect(unchecked == ["database", "keychain", "items", "seal"])
    // Without the device key, no item of a backup without a password can be decrypted.
    try sandbox.succeed("backup old-phone -o plain.zip --no-password -q")
    let withoutDevice = try jsonDocument(of: "verify plain.zip --home elsewhere", in: sandbox, status: 0)
    #expect(withoutDevice["verdict"] as? String == "foreign" && withoutDevice["whole"] as? Bool == true)
  }

  @Test("Verify reports damage in its JSON and on standard error, and exits with 13")
  func damage() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    // The file is encrypted, so one changed bit damages two blocks, most likely of an item.
    try sandbox.flipMiddleBit(of: "b/\(PhoneSandbox.keychainPath)")
    let outcome = try sandbox.keyhaul("verify b/ --password-file .bp --json")
    #expect(outcome.status == 13)
    let document = try sandbox.object(outcome.output)
    #expect(document["whole"] as? Bool == false && document["verdict"] as? String == "damaged")
    let faults = document["faults"] as? [[String: Any]] ?? []
    let digest = try #require(faults.first { $0["id"] as? String == "digest-mismatch" })
    #expect(
      digest["file"] as? String == "KeychainDomain/keychain-backup.plist" && digest["check"] as? String == "keychain")
    let itemFaults = faults.filter { $0["check"] as? String == "items" }
    #expect(itemFaults.allSatisfy { $0["index"] is Int && $0["offset"] is Int && $0["bytes"] is Int })
    let lastLine = try #require(outcome.errors.split(separator: "\n").last)
    #expect(lastLine.contains(#""message_type":"exit_error","code":13,"id":"damaged","message":"b/ is damaged""#))
    #expect(try sandbox.keyhaul("verify b/ --password-file .bp -q").status == 13)
  }

  @Test(
    "Verify finds a flipped bit, or the plan stays the same (36 bits per file, 9 in a quick run)",
    arguments: 0..<3)
  func flippedBits(part: Int) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var random = SeededRandom(seed: UInt64(part) + 31)
    let itemsBefore = PlannedItems(try sandbox.plan("b/"), includesEncryptedNames: false)
    try sandbox.removeSeal("b")
    for file in try sandbox.files(in: "b") where file != "Info.plist" {
      try sandbox.flipBits(Cases.count(12, quick: 3), of: "b/\(file)", using: &random) { offset in
        let outcome = try sandbox.keyhaul("verify b/ --password-file .bp")
        let details: Comment = "\(file), byte \(offset): \(outcome)"
        #expect([0, 3, 12, 13, 14].contains(outcome.status), details)
        // The files in folders are the payloads, whose digests the manifest contains.
        if file.contains("/") { #expect(outcome.status == 13, details) }
        if outcome.status == 0 {
          #expect(PlannedItems(try sandbox.plan("b/"), includesEncryptedNames: false) == itemsBefore, details)
        }
      }
    }
  }

  @Test("Verify exits with 3 if a payload is missing, and with 13 if a payload was changed")
  func payloads() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    #expect(try jsonDocument(of: "verify old --home elsewhere", in: sandbox, status: 0)["whole"] as? Bool == true)
    try old.removePayload(of: OldBackup.maliciousName)
    let incomplete = try sandbox.keyhaul("verify old --home elsewhere")
    #expect(incomplete.status == 3)
    #expect(incomplete.output.contains("FAIL files        2 of 3 present, 2 digests match\n"))
    #expect(incomplete.output.contains(#"HomeDomain/Library/\u{1B}[31mred\u{202E}.txt: it is listed"#))
    #expect(incomplete.output.hasSuffix("old is not complete: 1 file is missing; the rest is intact.\n"))
    #expect(!incomplete.output.contains("\u{1B}") && !incomplete.output.contains("\u{202E}"))
    let document = try jsonDocument(of: "verify old --home elsewhere", in: sandbox, status: 3)
    let faults = document["faults"] as? [[String: Any]] ?? []
    #expect(faults.count == 1 && faults.first?["id"] as? String == "payload-missing")
    #expect(faults.first?["file"] as? String == "HomeDomain/\(OldBackup.maliciousName)")
    #expect(document["whole"] as? Bool == false)
    try old.changePayload(of: "Library/plain.txt")
    let damaged = try sandbox.keyhaul("verify old --quick")
    #expect(damaged.status == 13)
    #expect(damaged.output.contains("HomeDomain/Library/plain.txt: its bytes do not match the"))
    #expect(damaged.output.hasSuffix("old is damaged: 1 file is damaged and 1 file is missing.\n"))
  }

  @Test("Rekey refuses a damaged backup with a seal. Without a seal, rekey changes the password and warns")
  func rekeyDamaged() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try FileManager.default.removeItem(at: sandbox.home.appending(path: "b/\(PhoneSandbox.keychainPath)"))
    let withSeal = try sandbox.keyhaul("rekey b --password-file .bp --new-password-command 'echo another'")
    #expect(withSeal.status == 13 && withSeal.errors.contains("b has changed since it was sealed"), "\(withSeal)")
    try sandbox.removeSeal("b")
    let outcome = try sandbox.keyhaul("rekey b --in-place --password-file .bp --new-password-command 'echo another'")
    #expect(outcome.status == 0 && outcome.output.hasPrefix("Rekeyed b. "))
    #expect(outcome.errors.contains("warning: b is damaged; changing the password does not repair it\n"))
    #expect(outcome.errors.contains("  why: 1 listed file is not stored\n"))
  }

  @Test("Export names the domain and path of a listed file that is not stored")
  func missingFile() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    try old.removePayload(of: "Library/plain.txt")
    let outcome = try sandbox.keyhaul("export old --domain HomeDomain --path Library/plain.txt -o x --home elsewhere")
    #expect(outcome.status == 13)
    #expect(unwrapped(outcome.errors).contains("lists \"HomeDomain/Library/plain.txt\", stored as "), "\(outcome)")
  }

  // MARK: inspect

  @Test("Inspect counts files, folders and links separately in its text, page and JSON")
  func fileKinds() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    for number in 0..<2 { try old.add("Library/folder\(number)", mode: 0o040755) }
    try old.add("Library/link", mode: 0o120755)
    let document = try sandbox.object(sandbox.succeed("inspect old --json"))
    #expect(document["listed"] as? [String: Int] == ["files": 3, "folders": 2, "links": 1, "unreadable": 0])
    try sandbox.succeed("inspect old --format html -o old.html -q")
    let page = String(decoding: try sandbox.read("old.html"), as: UTF8.self)
    #expect(page.contains("lists 3 files, 2 folders and 1 link in 2 domains"), "\(page)")
    let text = unwrapped(try sandbox.succeed("inspect old"))
    #expect(text.contains("2 folders") && text.contains("1 link"), "\(text)")
  }

  @Test(
    "Inspect --tree has the sums of each folder and domain, in text and JSON, and exits with 3 if a file is missing")
  func tree() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    let text = try sandbox.succeed("inspect old --tree --home elsewhere")
    let expectedLines: [String] = [
      "DOMAIN          FILES   BYTES", "KeychainDomain      1  \(old.keychainSize)",
      "HomeDomain          2      10", "  Library           2      10",
      "all                 3  \(old.totalSize)",
      "-v lists every file; export --domain D --path P exports one.",
    ]
    #expect(text.split(separator: "\n").map(String.init) == expectedLines)
    let document = try jsonDocument(of: "inspect old --tree --home elsewhere", in: sandbox, status: 0)
    #expect(document["layout"] as? String == "mbdb")
    #expect(document["listed"] as? [String: Int] == ["files": 3, "folders": 0, "links": 0, "unreadable": 0])
    let tree = try #require(document["tree"] as? [[String: Any]])
    #expect(tree.map { $0["name"] as? String } == ["KeychainDomain", "HomeDomain"])
    #expect(tree.map { $0["files"] as? Int } == [1, 2])
    try old.removePayload(of: OldBackup.maliciousName)
    let missing = try sandbox.keyhaul("inspect old --tree --home elsewhere")
    #expect(missing.status == 3 && missing.output.hasPrefix("DOMAIN          FILES   BYTES  MISSING\n"))
  }

  @Test("Inspect --tree -v lists every file, and export accepts the listed domains and paths")
  func fileList() throws {
    let sandbox = try PhoneSandbox()
    let old = try OldBackup(in: sandbox, named: "old")
    try old.removePayload(of: OldBackup.maliciousName)
    let outcome = try sandbox.keyhaul("inspect old --tree -v --home elsewhere")
    #expect(outcome.status == 3)
    let alignedSize = String(repeating: " ", count: 15 - old.keychainSize.count) + old.keychainSize
    #expect(
      outcome.output.hasSuffix(
        """

        HomeDomain
                      5  Library/plain.txt
                missing  Library/\\u{1B}[31mred\\u{202E}.txt

        KeychainDomain
        \(alignedSize)  keychain-backup.plist

        """))
    let document = try jsonDocument(of: "inspect old --tree -v --home elsewhere", in: sandbox, status: 3)
    let files = try #require(document["file_list"] as? [[String: Any]])
    #expect(
      files.map { $0["path"] as? String } == ["Library/plain.txt", OldBackup.maliciousName, "keychain-backup.plist"])
    #expect(files.map { $0["missing"] as? Bool } == [false, true, false])
    #expect(try jsonDocument(of: "inspect old --tree --home elsewhere", in: sandbox, status: 3)["file_list"] == nil)
    let (domain, path) = (files[0]["domain"] as? String ?? "", files[0]["path"] as? String ?? "")
    try sandbox.succeed("export old --domain \(domain) --path \(path) -o plain --home elsewhere")
    #expect(try sandbox.read("plain") == Array("plain".utf8))
    // A report in a file, which is written in parts, has the same text.
    #expect(try sandbox.keyhaul("inspect old --tree -v --home elsewhere -o tree.txt").status == 3)
    #expect(try sandbox.read("tree.txt") == Array(outcome.output.utf8))
    #expect(try sandbox.keyhaul("inspect old --tree -v --json --home elsewhere -o tree.json").status == 3)
    #expect(try sandbox.object(String(decoding: try sandbox.read("tree.json"), as: UTF8.self))["file_list"] is [Any])
  }

  @Test("Inspect --list --json has all items, with the reason for each that cannot be decrypted")
  func itemList() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let document = try jsonDocument(
      of: "inspect b.tar --list --password-file .bp --home elsewhere", in: sandbox, status: 0)
    let items = try #require(document["items"] as? [[String: Any]])
    #expect(items.count == 18 && items.map { $0["index"] as? Int } == (0..<18).map { $0 })
    #expect(items.filter { $0["readable"] as? Bool == true }.count == 14)
    let encrypted = items.filter { $0["readable"] as? Bool == false }
    #expect(encrypted.allSatisfy { $0["reason"] as? String == "device-bound" && $0["account"] is NSNull })
    let withDevice = try jsonDocument(of: "inspect b.tar --list --password-file .bp", in: sandbox, status: 0)
    let itemsWithDevice = try #require(withDevice["items"] as? [[String: Any]])
    #expect(itemsWithDevice.allSatisfy { $0["readable"] as? Bool == true })
  }

  @Test("Inspect shows an overview without a password, even if the environment names a wrong password")
  func environment() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array("wrong\n".utf8), to: ".wrong")
    for (file, reason) in [("nowhere", "cannot read the password of b.tar"), (".wrong", "the password is wrong")] {
      let outcome = try sandbox.devices.run("KEYHAUL_PASSWORD_FILE=\(file) keyhaul inspect b.tar")
      #expect(outcome.status == 0 && outcome.output.contains("present, encrypted"))
      #expect(outcome.errors.contains("warning: ") && outcome.errors.contains(reason))
      #expect(try sandbox.devices.run("KEYHAUL_PASSWORD_FILE=\(file) keyhaul inspect b.tar --list").status != 0)
    }
    let right = try sandbox.devices.run("KEYHAUL_PASSWORD_FILE=.bp keyhaul inspect b.tar")
    #expect(right.status == 0 && right.output.contains("items           18 items"))
  }

  // MARK: diff

  @Test("Diff names the changed items, attributes and dates, but no values")
  func changedItems() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "a.tar")
    try sandbox.write(Array("a new planted secret".utf8), to: ".s")
    try sandbox.succeed(
      "item update old-phone --service chat.example --account anna --new-secret-file .s --new-label planted --yes -q")
    try sandbox.succeed("item delete old-phone --server imap.example.org --yes -q")
    try sandbox.backUp(to: "b.tar")
    let document = try jsonDocument(of: "diff a.tar b.tar --password-file .bp --exit-code", in: sandbox, status: 2)
    #expect(document["format"] as? String == "keychain-diff/1" && document["same"] as? Int == 16)
    #expect((document["added"] as? [Any])?.isEmpty == true)
    let removed = try #require((document["removed"] as? [[String: Any]])?.first)
    #expect(removed["server"] as? String == "imap.example.org" && removed["kind"] as? String == "internet-password")
    let changed = try #require((document["changed"] as? [[String: Any]])?.first)
    #expect(changed["attributes"] as? [String] == ["mdat", "labl"] && changed["secret_changed"] as? Bool == true)
    #expect(changed["service"] as? String == "chat.example" && changed["modified_second"] is String)
    let firstSide = try #require(document["first"] as? [String: Any])
    #expect(firstSide["kind"] as? String == "archive" && firstSide["name"] as? String == "a.tar")
    let text = try sandbox.keyhaul("diff a.tar b.tar --password-file .bp --exit-code -v")
    #expect(text.status == 2 && text.output.contains("secret and label changed"))
    #expect(try sandbox.keyhaul("diff a.tar b.tar --password-file .bp").status == 0)
    #expect(!(text.output + text.errors).contains("a new planted secret"))
  }

  @Test("Diff states that one of the backups has no keychain")
  func noKeychain() throws {
    func side(_ name: String, _ items: [KeychainEntry], hasKeychain: Bool) -> ComparisonSide {
      ComparisonSide(
        kind: .archive, name: name, argument: name, deviceName: nil, items: items, hasKeychain: hasKeychain,
        omissions: [], keybagDamage: nil)
    }
    let item = KeychainItem(kind: .genericPassword, attributes: [.account: .string("anna")])
    let report = try DifferenceReport(
      side("empty.tar", [], hasKeychain: false),
      side("full.tar", [KeychainEntry(index: 0, item: item)], hasKeychain: true))
    #expect(
      report.lines(style: .plain, showsAll: false) == [
        "+ generic  anna  new", "empty.tar has no keychain.",
      ] + WordWrap.lines(of: BackupBlindSpots.line, columns: 80) + [
        "2 backups compared: 1 new, 0 changed, 0 missing, 0 the same."
      ])
  }

  @Test("Diff exits with 3 for a damaged item, but does not report it as changed")
  func damagedItem() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "a/")
    try sandbox.succeed("convert a/ -o whole.tar -q")
    try sandbox.flipMiddleBit(of: "a/\(PhoneSandbox.keychainPath)")
    let document = try jsonDocument(of: "diff whole.tar a/ --password-file .bp --exit-code", in: sandbox, status: 3)
    // This member counts the items that Keyhaul could not decrypt.
    let encryptedCounts = try #require(document["sealed"] as? [String: Int])
    let damagedCount = try #require(encryptedCounts["damaged"])
    #expect(damagedCount > 0 && (document["changed"] as? [Any])?.isEmpty == true)
    // Compared with itself, the damaged backup has the same encrypted bytes on both sides.
    let withItself = try jsonDocument(of: "diff a/ a/ --password-file .bp --exit-code", in: sandbox, status: 0)
    let countsWithItself = try #require(withItself["sealed"] as? [String: Int])
    #expect(countsWithItself["damaged_alike"] == damagedCount && countsWithItself["damaged"] == 0)
    #expect(withItself["same"] as? Int == 18)
  }

  @Test("Diff cannot compare items encrypted in a backup without a password, and --exit-code makes it exit with 3")
  func incomparable() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "a.tar")
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let line = "diff a.tar plain.tar --password-file .bp --home elsewhere"
    let document = try jsonDocument(of: "\(line) --exit-code", in: sandbox, status: 3)
    let encryptedCounts = try #require(document["sealed"] as? [String: Int])
    #expect(encryptedCounts["in_both"] == 18)
    #expect(encryptedCounts["open_in_first"] == 14 && encryptedCounts["open_in_second"] == 0)
    let text = try sandbox.devices.run("COLUMNS=200 keyhaul \(line)")
    #expect(text.status == 0)
    #expect(
      text.output.contains(
        "18 encrypted items could not be compared (18 in both, 14 of them can be decrypted in a.tar): "))
    #expect(text.output.contains("where they are encrypted, 18 can be decrypted only on the source device."))
    try sandbox.succeed("\(line) --format html -o page.html -q")
    let page = String(decoding: try sandbox.read("page.html"), as: UTF8.self)
    #expect(page.contains("18 in both and 14 of them can be decrypted in a.tar."))
    // The sentence begins with "The source device's", whose apostrophe is escaped in HTML.
    #expect(page.contains("s key can decrypt them: "))
  }

  @Test("Diff escapes untrusted names and keeps its lines within the width of the terminal")
  func untrustedNames() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create hostile --from hostile-names -q")
    try sandbox.backUp("hostile", to: "h.tar")
    try sandbox.backUp(to: "o.tar")
    for width in [80, 120] {
      let outcome = try sandbox.devices.run("COLUMNS=\(width) keyhaul diff o.tar h.tar --password-file .bp")
      #expect(outcome.status == 0)
      for scalar in outcome.output.unicodeScalars where scalar != "\n" {
        #expect(scalar.value >= 0x20 && scalar != "\u{202E}" && scalar != "\u{200B}")
      }
      for line in outcome.output.split(separator: "\n") {
        #expect(DisplayWidth.columns(of: String(line)) <= width, "\(line)")
      }
    }
  }
}
