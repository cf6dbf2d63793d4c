import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Move commands in scripts")
struct MoveReportTests {
  @Test("A plan matches its schema, for every policy and every pair of devices")
  func planSchema() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("backup old-phone -o plain.tar --no-password")
    let moves: [(backup: String, device: String, migratingCount: Int)] = [
      ("b.tar", "new-phone", 14), ("b.tar", "old-phone", 18), ("plain.tar", "new-phone", 0),
      ("plain.tar", "old-phone", 18),
    ]
    for (backup, device, migratingCount) in moves {
      for policy in ["replace", "merge"] {
        let passwordFlag = backup == "b.tar" ? "--password-file .bp" : ""
        let text = try sandbox.succeed("plan \(backup) --to \(device) --existing \(policy) \(passwordFlag) --json")
        #expect(try PlanSchema.problems(in: text) == [], "\(backup) \(device) \(policy)")
        let plan = try sandbox.object(text)
        let source = try #require(plan["source"] as? [String: Any])
        #expect(source["name"] as? String == backup && source["device_name"] as? String == "old-phone")
        #expect(source["encrypted"] as? Bool == (backup == "b.tar"))
        let target = try #require(plan["target"] as? [String: Any])
        #expect(target["same_device"] as? Bool == (device == "old-phone"))
        #expect(target["claims_same_device"] as? Bool == (device == "old-phone"))
        let summary = try #require(plan["summary"] as? [String: Any])
        #expect(summary["migrates"] as? Int == migratingCount && summary["total"] as? Int == 18)
      }
    }
  }

  /// Checks that a plan without a target counts the damaged item as unreadable, for a new phone and for the source phone.
  private static func checkOutlooks(in sandbox: PhoneSandbox) throws {
    let line = "plan b/ --password-file .bp"
    let outcome = try sandbox.keyhaul("\(line) --json")
    #expect(outcome.status == 3)
    let outlooks = try #require(try sandbox.object(outcome.output)["futures"] as? [[String: Any]])
    #expect(outlooks.count == 2)
    for (outlook, arrivingCount) in zip(outlooks, [13, 17]) {
      func count(_ member: String) -> Int { outlook[member] as? Int ?? 0 }
      #expect(count("arrives") == arrivingCount && count("unreadable") == 1, "\(outlook)")
      #expect(count("never_in_backup") == 4, "\(outlook)")
      let parts = ["arrives", "stays_behind", "unreadable", "never_in_backup", "not_in_this_backup"].map(count)
      #expect(parts.reduce(0, +) == count("total"))
    }
    let text = unwrapped(try sandbox.keyhaul("\(line) -v").output)
    #expect(text.contains("! cannot be read 1 1 "), "\(text)")
    let page = try sandbox.keyhaul("\(line) --format html -o -")
    #expect(page.status == 3 && page.output.components(separatedBy: "1 cannot be read · 4 never").count == 3)
  }

  @Test("A damaged item is in the plan with its reason, and all other items can be restored")
  func damagedItem() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    let path = "b/\(PhoneSandbox.keychainPath)"
    let original = try sandbox.read(path)
    // The file is encrypted, so the test tries offsets until a changed byte damages exactly one item.
    for offset in stride(from: 600, to: original.count, by: 200) {
      var bytes = original
      bytes[offset] ^= 1
      try sandbox.write(bytes, to: path)
      let outcome = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp --json")
      guard outcome.status == 3 else { continue }
      #expect(try PlanSchema.problems(in: outcome.output) == [])
      let decisions = PlannedItems(try sandbox.object(outcome.output)).decisions.values
      guard decisions.count(where: { $0.hasPrefix("unreadable|-|tag-mismatch|") }) == 1,
        decisions.count(where: { $0.hasPrefix("migrates|") }) == 13
      else { continue }
      let text = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp")
      #expect(text.status == 3 && text.output.contains("\nCannot be read (1)  tag-mismatch: "))
      #expect(text.output.contains("\n  ! ") && text.output.contains("  (encrypted)  "))
      try Self.checkOutlooks(in: sandbox)
      let refused = try sandbox.keyhaul("restore b/ --to new-phone --password-file .bp --yes")
      #expect(refused.status == 13 && refused.output == "")
      let restored = try sandbox.keyhaul("restore b/ --to new-phone --password-file .bp --yes --accept-damage")
      #expect(restored.status == 3)
      #expect(
        restored.output.hasSuffix(" 1 was already there, 4 stayed behind, 1 could not be read.\n"), "\(restored)")
      return
    }
    Issue.record("no changed byte lost a single item")
  }

  @Test("The schema checker finds errors")
  func checker() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let text = try sandbox.succeed("plan b.tar --to new-phone --password-file .bp --json")
    let changes: [(valid: String, invalid: String)] = [
      (#""format": "migration-plan/1""#, #""format": "migration-plan/2""#),
      (#""policy": "replace""#, #""policy": "swap""#), (#""outcome": "migrates""#, #""outcome": "moves""#),
      (#""reason": "device-bound""#, #""reason": "because""#), (#""digest": "sha256:"#, #""digest": "md5:"#),
      (#""index": 0"#, #""index": 1"#), (#""migrates": 14"#, #""migrates": 13"#),
      (#""change": "new""#, #""surprise": "new""#),
    ]
    for (valid, invalid) in changes {
      #expect(text.contains(valid), "\(valid)")
      let changed = text.replacing(valid, with: invalid, maxReplacements: 1)
      #expect(try PlanSchema.problems(in: changed) != [], "\(invalid)")
    }
  }

  /// A command line with its exit code and the format of its document, if it prints one.
  private typealias JSONCase = (line: String, status: Int32, format: String?)

  @Test("Standard output is one document or empty, and the last line of standard error states why a command failed")
  func streams() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    let intactBackup: [JSONCase] = [
      ("plan b/ --to new-phone --password-file .bp --json", 0, "migration-plan/1"),
      ("plan b/ --to new-phone --password-file .bp --json --exit-code", 2, "migration-plan/1"),
      // All items of the backup are restored, but four items of the device are never in a backup.
      ("plan b/ --to old-phone --password-file .bp --format json --exit-code", 2, "migration-plan/1"),
      ("plan b/ --password-file .bp --json", 0, "migration-futures/1"), ("plan b/ --to new-phone --json", 12, nil),
      ("plan nothing --to new-phone --json", 10, nil),
      ("restore b/ --to new-phone --password-file .bp --json -n", 0, "migration-plan/1"),
      ("restore b/ --to new-phone --password-file .bp --json -q --yes", 0, "restore-result/1"),
      ("restore b/ --to old-phone --password-file .bp --json", 64, nil),
      ("backup old-phone -o c.zip --password-file .bp --rounds 1 --json", 0, "backup-result/1"),
      ("backup old-phone -o c.zip --password-file .bp --rounds 1 --json", 64, nil),
      ("inspect b/ --json", 0, "backup-inspection/1"),
    ]
    for jsonCase in intactBackup { try checkStreams(of: jsonCase, in: sandbox) }
    // If a class key that an item needs is damaged, the other keys are used, and the exit code is 3.
    try sandbox.editKeybagField("WPKY", ofClass: 11, in: "b") { $0[0] ^= 1 }
    let damagedBackup: [JSONCase] = [
      ("plan b/ --to new-phone --password-file .bp --json", 3, "migration-plan/1"),
      ("inspect b/ --password-file .bp --json", 3, "backup-inspection/1"),
      ("restore b/ --to new-phone --password-file .bp --json --yes", 13, nil),
      ("restore b/ --to new-phone --password-file .bp --json --yes --accept-damage", 3, "restore-result/1"),
    ]
    for jsonCase in damagedBackup { try checkStreams(of: jsonCase, in: sandbox) }
  }

  private func checkStreams(of jsonCase: JSONCase, in sandbox: PhoneSandbox) throws {
    let (line, status, format) = jsonCase
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == status, "\(line): \(outcome)")
    let messages = try outcome.errors.split(separator: "\n").map { try sandbox.object(String($0)) }
    #expect(messages.allSatisfy { $0["message_type"] is String }, "\(line)")
    if let format {
      #expect(try sandbox.object(outcome.output)["format"] as? String == format, "\(line)")
    } else {
      #expect(outcome.output == "", "\(line)")
    }
    // The exit codes up to 4 are results, not errors.
    guard status > 4 else { return }
    let last = try #require(messages.last, "\(line)")
    #expect(last["message_type"] as? String == "exit_error", "\(line)")
    #expect(last["code"] as? Int == Int(status), "\(line)")
    #expect(last["id"] is String && last["message"] is String, "\(line)")
  }

  @Test("An inspection document has everything that needs no password, and null for the rest")
  func inspection() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar.gz")
    let withoutPassword = try sandbox.object(sandbox.succeed("inspect b.tar.gz --json"))
    let withPassword = try sandbox.object(sandbox.succeed("inspect b.tar.gz --json --password-file .bp"))
    for (document, isUnlocked) in [(withoutPassword, false), (withPassword, true)] {
      let device = try #require(document["device"] as? [String: Any])
      #expect(
        Set(device.keys) == [
          "udid", "name", "product_type", "product_version", "model_name", "build_version", "serial_number",
        ])
      #expect(device["name"] as? String == "old-phone" && device["product_type"] as? String == "iPhone15,2")
      #expect(document["encrypted"] as? Bool == true && document["layout"] as? String == "manifest-db")
      #expect(document["files"] as? Int == 1)
      #expect(
        document["domains"] as? Int == (isUnlocked ? 1 : nil) && document["missing"] as? Int == (isUnlocked ? 0 : nil))
      let keybag = try #require(document["keybag"] as? [String: Any])
      // The count that the backup was made with, and the count of the second derivation.
      #expect(keybag["rounds"] as? [Int] == [1, 10_000] && keybag["version"] as? Int == 4)
      #expect(keybag["type"] as? Int == 1)
      let classes = try #require(keybag["classes"] as? [[String: Any]])
      #expect(classes.map { $0["class"] as? Int } == (1...11).reversed().map { $0 })
      // 2 is a key wrapped with the password's key, and 3 a key also wrapped with the device key.
      #expect(classes.map { $0["wrap"] as? Int } == [3, 3, 3, 2, 2, 2, 3, 2, 2, 2, 2])
      #expect(
        classes.map { $0["protection"] as? String } == ["dku", "cku", "aku", "dk", "ck", "ak", nil, nil, nil, nil, nil])
      #expect(classes.allSatisfy { $0["generation"] as? Int == 0 })
      let keychain = try #require(document["keychain"] as? [String: Any])
      #expect(keychain["present"] as? Bool == true)
      let items = keychain["items"] as? [String: Int]
      #expect(items == (isUnlocked ? ["genp": 10, "inet": 5, "cert": 2, "keys": 1] : nil))
      let protections = keychain["by_protection"] as? [String: Int]
      #expect(protections?.values.reduce(0, +) == (isUnlocked ? 18 : nil))
      #expect(isUnlocked || (keychain["items"] is NSNull && keychain["by_protection"] is NSNull))
    }
  }

  @Test("A restore document has the plan's results and the new revision. A backup document lists the omitted items")
  func results() throws {
    let sandbox = try PhoneSandbox()
    let backup = try sandbox.object(
      sandbox.succeed("backup old-phone -o b.tar --password-file .bp --rounds 1 --json"))
    #expect(backup["items"] as? Int == 18 && backup["total"] as? Int == 22 && backup["encrypted"] as? Bool == true)
    let size =
      try FileManager.default.attributesOfItem(atPath: sandbox.home.appending(path: "b.tar").path)[.size] as? Int
    #expect(backup["bytes"] as? Int == size)
    #expect((backup["deleted"] as? [Any])?.isEmpty == true)
    let omissions = try #require(backup["left_out"] as? [[String: Any]])
    #expect(
      Set(omissions.compactMap { $0["reason"] as? String })
        == ["passcode-only", "hardware-key", "system-bound", "needs-authentication"])
    let plan = try sandbox.plan("b.tar")
    let result = try sandbox.object(sandbox.succeed("restore b.tar --to new-phone --password-file .bp --json --yes"))
    #expect(
      Set(result.keys) == [
        "format", "summary", "restored", "overwritten", "overwritten_newer", "items", "removed", "revision",
      ])
    // One of the 14 items is already on new-phone, and another of them replaces an older item.
    #expect(result["restored"] as? Int == 13 && result["overwritten"] as? Int == 1)
    #expect(result["overwritten_newer"] as? Int == 0)
    #expect(PlannedItems(result) == PlannedItems(plan))
    #expect(result["summary"] as? NSDictionary == plan["summary"] as? NSDictionary)
    let shown = try sandbox.object(sandbox.succeed("device show new-phone --json"))
    #expect(result["revision"] as? String == shown["revision"] as? String)
    #expect(shown["items"] as? Int == 14)
  }

  @Test("-q keeps results and errors, -v adds every item, and -vv does not change results")
  func detail() throws {
    let sandbox = try PhoneSandbox()
    let quiet = try sandbox.keyhaul("backup old-phone -o a.tar --password-file .bp --rounds 1 -q")
    let normal = try sandbox.keyhaul("backup old-phone -o a.tar --password-file .bp --rounds 1 --yes")
    let verbose = try sandbox.keyhaul("backup old-phone -o a.tar --password-file .bp --rounds 1 --yes -v")
    let veryVerbose = try sandbox.keyhaul("backup old-phone -o a.tar --password-file .bp --rounds 1 --yes -vv")
    #expect(quiet.errors == "" && quiet.output == normal.output)
    #expect(verbose.output.split(separator: "\n").count { $0.hasPrefix("  + ") } == 18)
    #expect(verbose.output == veryVerbose.output)
    #expect(
      try sandbox.keyhaul("plan a.tar --to new-phone --password-file .bp").output.contains("… 4 more (-v shows all)"))
    let verbosePlan = try sandbox.keyhaul("plan a.tar --to new-phone --password-file .bp -v").output
    #expect(!verbosePlan.contains("more (-v") && verbosePlan.contains("ftp.example.net · upload"))
    let dryRun = try sandbox.keyhaul("restore a.tar --to new-phone --password-file .bp -n -q")
    #expect(dryRun.errors == "" && dryRun.output.contains("\n\nPlan: "))
    #expect(try sandbox.succeed("device list").contains("new-phone  unlocked  yes           2"))
    let contradiction = try sandbox.keyhaul("plan a.tar --to new-phone -q -v")
    #expect(contradiction.status == 64)
    #expect(contradiction.errors.hasPrefix("error: --quiet and --verbose cannot be used together"))
  }

  @Test(
    "A backup without --rounds uses the iteration counts of a real device",
    .enabled(if: Cases.isExhaustive, "it derives a key with ten million iterations, which a quick run leaves out"))
  func standardIterations() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b.tar --password-file .bp")
    let inspection = try sandbox.object(sandbox.succeed("inspect b.tar --json"))
    #expect((inspection["keybag"] as? [String: Any])?["rounds"] as? [Int] == [10_000_000, 10_000])
    let refused = try sandbox.keyhaul("plan b.tar --to new-phone --max-rounds 1000000")
    #expect(refused.status == 14 && refused.errors.contains("over the limit of 1,000,000"))
  }
}
