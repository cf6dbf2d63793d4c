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
    for archive in ["b.tar", "plain.tar"] {
      for device in ["new-phone", "old-phone"] {
        for policy in ["replace", "merge"] {
          let password = archive == "b.tar" ? "--password-file .bp" : ""
          let text = try sandbox.succeed("plan \(archive) --to \(device) --existing \(policy) \(password) --json")
          #expect(try PlanSchema.problems(in: text) == [], "\(archive) \(device) \(policy)")
          let plan = try sandbox.object(text)
          let source = try #require(plan["source"] as? [String: Any])
          let target = try #require(plan["target"] as? [String: Any])
          #expect(source["name"] as? String == archive && source["device_name"] as? String == "old-phone")
          #expect(source["encrypted"] as? Bool == (archive == "b.tar"))
          #expect(target["same_device"] as? Bool == (device == "old-phone"))
          #expect(target["claims_same_device"] as? Bool == (device == "old-phone"))
          let summary = try #require(plan["summary"] as? [String: Any])
          let expected = device == "old-phone" ? 18 : archive == "b.tar" ? 14 : 0
          #expect(summary["migrates"] as? Int == expected && summary["total"] as? Int == 18)
        }
      }
    }
  }

  /// The answer for a new phone and for the same one counts an item that is damaged in this copy on neither.
  private static func expectUnreadableOnBoth(_ sandbox: PhoneSandbox) throws {
    let line = "plan b/ --password-file .bp"
    let futures = try sandbox.keyhaul("\(line) --json")
    #expect(futures.status == 3)
    let both = try #require(try sandbox.object(futures.output)["futures"] as? [[String: Any]])
    for (future, arrives) in zip(both, [13, 17]) {
      func count(_ field: String) -> Int { future[field] as? Int ?? 0 }
      #expect(count("arrives") == arrives && count("unreadable") == 1 && count("never_in_backup") == 4, "\(future)")
      let parts = ["arrives", "stays_behind", "unreadable", "never_in_backup", "not_in_this_backup"].map(count)
      #expect(parts.reduce(0, +) == count("total"))
    }
    let text = try sandbox.keyhaul("\(line) -v").output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(text.contains("! cannot be read 1 1 "), "\(text)")
    let page = try sandbox.keyhaul("\(line) --format html -o -")
    #expect(page.status == 3 && page.output.components(separatedBy: "1 cannot be read · 4 never").count == 3)
  }

  @Test("A damaged item is in the plan with its reason, and the others are restored")
  func damagedItem() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    let payload = try #require(try sandbox.files(in: "b").first { $0.contains("/") })
    let whole = try sandbox.read("b/\(payload)")
    // The file is encrypted, so that nobody sees where in it an item begins; most of it is items.
    for offset in stride(from: 600, to: whole.count, by: 200) {
      var bytes = whole
      bytes[offset] ^= 1
      try sandbox.write(bytes, to: "b/\(payload)")
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
      try Self.expectUnreadableOnBoth(sandbox)
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
    for (good, bad) in [
      (#""format": "migration-plan/1""#, #""format": "migration-plan/2""#),
      (#""policy": "replace""#, #""policy": "swap""#), (#""outcome": "migrates""#, #""outcome": "moves""#),
      (#""reason": "device-bound""#, #""reason": "because""#), (#""digest": "sha256:"#, #""digest": "md5:"#),
      (#""index": 0"#, #""index": 1"#), (#""migrates": 14"#, #""migrates": 13"#),
      (#""change": "new""#, #""surprise": "new""#),
    ] {
      #expect(text.contains(good), "\(good)")
      let wrong = text.replacing(good, with: bad, maxReplacements: 1)
      #expect(try PlanSchema.problems(in: wrong) != [], "\(bad)")
    }
  }

  @Test("Standard output is one document with any exit code, and the last line of standard error states the reason")
  func streams() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    func check(_ line: String, _ status: Int32, _ format: String?, sourceLocation: SourceLocation = #_sourceLocation)
      throws
    {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)", sourceLocation: sourceLocation)
      for line in outcome.errors.split(separator: "\n") {
        let message = try sandbox.object(String(line))
        #expect(message["message_type"] is String, sourceLocation: sourceLocation)
      }
      if let format {
        #expect(try sandbox.object(outcome.output)["format"] as? String == format, sourceLocation: sourceLocation)
      } else {
        #expect(outcome.output == "", sourceLocation: sourceLocation)
      }
      if status > 4 {
        let last = try sandbox.object(String(try #require(outcome.errors.split(separator: "\n").last)))
        #expect(last["message_type"] as? String == "exit_error", sourceLocation: sourceLocation)
        #expect(last["code"] as? Int == Int(status), sourceLocation: sourceLocation)
        #expect(last["id"] is String && last["message"] is String, sourceLocation: sourceLocation)
      }
    }
    try check("plan b/ --to new-phone --password-file .bp --json", 0, "migration-plan/1")
    try check("plan b/ --to new-phone --password-file .bp --json --exit-code", 2, "migration-plan/1")
    // All of the backup comes back; the four items of the device that are in no backup do not.
    try check("plan b/ --to old-phone --password-file .bp --format json --exit-code", 2, "migration-plan/1")
    try check("plan b/ --password-file .bp --json", 0, "migration-futures/1")
    try check("plan b/ --to new-phone --json", 12, nil)
    try check("plan nothing --to new-phone --json", 10, nil)
    try check("restore b/ --to new-phone --password-file .bp --json -n", 0, "migration-plan/1")
    try check("restore b/ --to new-phone --password-file .bp --json -q --yes", 0, "restore-result/1")
    try check("restore b/ --to old-phone --password-file .bp --json", 64, nil)
    try check("backup old-phone -o c.zip --password-file .bp --rounds 1 --json", 0, "backup-result/1")
    try check("backup old-phone -o c.zip --password-file .bp --rounds 1 --json", 64, nil)
    try check("inspect b/ --json", 0, "backup-inspection/1")
    // One class key does not unwrap, which an item needs: the others are used, and the exit code says it.
    var manifest = try sandbox.read("b/Manifest.plist")
    let field = try #require(KeybagFields.inside(manifest).filter { $0.tag == "WPKY" }.first)
    manifest[field.range.lowerBound] ^= 1
    try sandbox.write(manifest, to: "b/Manifest.plist")
    try check("plan b/ --to new-phone --password-file .bp --json", 3, "migration-plan/1")
    try check("inspect b/ --password-file .bp --json", 3, "backup-inspection/1")
    try check("restore b/ --to new-phone --password-file .bp --json --yes", 13, nil)
    try check("restore b/ --to new-phone --password-file .bp --json --yes --accept-damage", 3, "restore-result/1")
  }

  @Test("An inspection document has everything that needs no password, and null for the rest")
  func inspection() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar.gz")
    let closed = try sandbox.object(sandbox.succeed("inspect b.tar.gz --json"))
    let open = try sandbox.object(sandbox.succeed("inspect b.tar.gz --json --password-file .bp"))
    for (document, isOpen) in [(closed, false), (open, true)] {
      let device = try #require(document["device"] as? [String: Any])
      #expect(
        Set(device.keys) == [
          "udid", "name", "product_type", "product_version", "model_name", "build_version", "serial_number",
        ])
      #expect(device["name"] as? String == "old-phone" && device["product_type"] as? String == "iPhone15,2")
      #expect(document["encrypted"] as? Bool == true && document["layout"] as? String == "manifest-db")
      #expect(document["files"] as? Int == 1)
      #expect(document["domains"] as? Int == (isOpen ? 1 : nil) && document["missing"] as? Int == (isOpen ? 0 : nil))
      let keybag = try #require(document["keybag"] as? [String: Any])
      #expect(keybag["rounds"] as? [Int] == [1, 10_000] && keybag["version"] as? Int == 4)
      #expect(keybag["type"] as? Int == 1)
      let classes = try #require(keybag["classes"] as? [[String: Any]])
      #expect(classes.map { $0["class"] as? Int } == (1...11).reversed().map { $0 })
      #expect(classes.map { $0["wrap"] as? Int } == [3, 3, 3, 2, 2, 2, 3, 2, 2, 2, 2])
      #expect(
        classes.map { $0["protection"] as? String } == ["dku", "cku", "aku", "dk", "ck", "ak", nil, nil, nil, nil, nil])
      #expect(classes.allSatisfy { $0["generation"] as? Int == 0 })
      let keychain = try #require(document["keychain"] as? [String: Any])
      #expect(keychain["present"] as? Bool == true)
      let items = keychain["items"] as? [String: Int]
      #expect(items == (isOpen ? ["genp": 10, "inet": 5, "cert": 2, "keys": 1] : nil))
      let protections = keychain["by_protection"] as? [String: Int]
      #expect(protections?.values.reduce(0, +) == (isOpen ? 18 : nil))
      #expect(isOpen || (keychain["items"] is NSNull && keychain["by_protection"] is NSNull))
    }
  }

  @Test("A restore document has the plan's results and the new revision, and a backup document the omitted items")
  func results() throws {
    let sandbox = try PhoneSandbox()
    let backup = try sandbox.object(
      sandbox.succeed("backup old-phone -o b.tar --password-file .bp --rounds 1 --json"))
    #expect(backup["items"] as? Int == 18 && backup["total"] as? Int == 22 && backup["encrypted"] as? Bool == true)
    let size =
      try FileManager.default.attributesOfItem(atPath: sandbox.home.appending(path: "b.tar").path)[.size] as? Int
    #expect(backup["bytes"] as? Int == size)
    #expect((backup["deleted"] as? [Any])?.isEmpty == true)
    let leftOut = try #require(backup["left_out"] as? [[String: Any]])
    #expect(
      Set(leftOut.compactMap { $0["reason"] as? String })
        == ["passcode-only", "hardware-key", "system-bound", "needs-authentication"])
    let plan = try sandbox.plan("b.tar")
    let result = try sandbox.object(sandbox.succeed("restore b.tar --to new-phone --password-file .bp --json --yes"))
    #expect(
      Set(result.keys) == [
        "format", "summary", "restored", "overwritten", "overwritten_newer", "items", "removed", "revision",
      ])
    // One of the 14 is there already, another takes the place of an older one.
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
    let loud = try sandbox.keyhaul("backup old-phone -o a.tar --password-file .bp --rounds 1 --yes -v")
    let loudest = try sandbox.keyhaul("backup old-phone -o a.tar --password-file .bp --rounds 1 --yes -vv")
    #expect(quiet.errors == "" && quiet.output == normal.output)
    #expect(loud.output.split(separator: "\n").count { $0.hasPrefix("  + ") } == 18)
    #expect(loud.output == loudest.output)
    #expect(
      try sandbox.keyhaul("plan a.tar --to new-phone --password-file .bp").output.contains("… 4 more (-v shows all)"))
    let all = try sandbox.keyhaul("plan a.tar --to new-phone --password-file .bp -v").output
    #expect(!all.contains("more (-v") && all.contains("ftp.example.net · upload"))
    let dry = try sandbox.keyhaul("restore a.tar --to new-phone --password-file .bp -n -q")
    #expect(dry.errors == "" && dry.output.contains("\n\nPlan: "))
    #expect(try sandbox.succeed("device list").contains("new-phone  unlocked  yes           2"))
    let both = try sandbox.keyhaul("plan a.tar --to new-phone -q -v")
    #expect(both.status == 64 && both.errors.hasPrefix("error: --quiet and --verbose cannot be used together"))
  }

  @Test(
    "A backup without --rounds uses the iteration counts of a real device",
    .enabled(if: Cases.areAllRun, "ten million rounds, which a quick run leaves out"))
  func standardRounds() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b.tar --password-file .bp")
    let inspection = try sandbox.object(sandbox.succeed("inspect b.tar --json"))
    #expect((inspection["keybag"] as? [String: Any])?["rounds"] as? [Int] == [10_000_000, 10_000])
    let refused = try sandbox.keyhaul("plan b.tar --to new-phone --max-rounds 1000000")
    #expect(refused.status == 14 && refused.errors.contains("over the limit of 1,000,000"))
  }
}

/// The format `migration-plan/1`, checked by hand: the structure, the words that are allowed, and that its sums are right.
enum PlanSchema {
  static func problems(in text: String) throws -> [String] {
    guard let plan = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
      return ["no object"]
    }
    var problems: [String] = []
    func check(_ condition: Bool, _ problem: String) { if !condition { problems.append(problem) } }
    func keys(_ object: [String: Any], _ required: Set<String>, _ optional: Set<String>, _ place: String) {
      check(required.isSubset(of: object.keys), "\(place) lacks \(required.subtracting(object.keys))")
      check(
        Set(object.keys).isSubset(of: required.union(optional)),
        "\(place) has \(Set(object.keys).subtracting(required.union(optional)))")
    }
    keys(
      plan, ["format", "made", "source", "target", "policy", "summary", "items"],
      ["removed", "cannot_show", "not_in_backup", "redacted", "checksum"], "plan")
    check(plan["format"] as? String == "migration-plan/1", "format")
    check(isDate(plan["made"]), "made")
    check(["merge", "replace"].contains(plan["policy"] as? String), "policy")
    check((plan["checksum"] as? String)?.wholeMatch(of: /sha256:[0-9a-f]{64}/) != nil, "checksum")
    let source = plan["source"] as? [String: Any] ?? [:]
    keys(source, ["kind", "name", "encrypted", "digest"], ["device", "made", "device_name"], "source")
    check(["archive", "device"].contains(source["kind"] as? String), "source.kind")
    check((source["digest"] as? String)?.wholeMatch(of: /sha256:[0-9a-f]{64}/) != nil, "source.digest")
    check(source["made"] == nil || isDate(source["made"]), "source.made")
    let target = plan["target"] as? [String: Any] ?? [:]
    keys(
      target, ["name", "same_device", "state", "revision"], ["claims_same_device", "passcode_set", "items"], "target")
    check(target["same_device"] is Bool || target["same_device"] is NSNull, "target.same_device")
    check(["unlocked", "locked", "before-first-unlock"].contains(target["state"] as? String), "target.state")
    let items = plan["items"] as? [[String: Any]] ?? []
    var counts: [String: Int] = [:]
    var reasons: [String: Int] = [:]
    for (index, item) in items.enumerated() {
      keys(
        item, ["index", "kind", "protection", "outcome"], identity.union(["change", "reason", "detail"]),
        "item \(index)")
      problems += identityProblems(item)
      check(item["index"] as? Int == index, "item \(index): index")
      check(item["protection"] is NSNull || protections.contains(item["protection"] as? String ?? ""), "protection")
      let outcome = item["outcome"] as? String ?? ""
      counts[outcome, default: 0] += 1
      if outcome == "migrates" {
        check(item["reason"] == nil && changes.contains(item["change"] as? String ?? ""), "item \(index): change")
      } else {
        check(["stays-behind", "unreadable"].contains(outcome), "item \(index): outcome")
        let reason = item["reason"] as? String ?? ""
        reasons[reason, default: 0] += 1
        check(allReasons.contains(reason) && item["change"] == nil, "item \(index): reason")
      }
    }
    let removed = plan["removed"] as? [[String: Any]] ?? []
    for item in removed {
      keys(item, ["kind"], identity, "removed")
      problems += identityProblems(item)
    }
    let summary = plan["summary"] as? [String: Any] ?? [:]
    keys(summary, ["total", "migrates", "stays_behind", "unreadable", "removed"], ["by_reason"], "summary")
    check(summary["total"] as? Int == items.count, "summary.total")
    check(summary["migrates"] as? Int == counts["migrates", default: 0], "summary.migrates")
    check(summary["stays_behind"] as? Int == counts["stays-behind", default: 0], "summary.stays_behind")
    check(summary["unreadable"] as? Int == counts["unreadable", default: 0], "summary.unreadable")
    check(summary["removed"] as? Int == removed.count, "summary.removed")
    check(summary["by_reason"] as? [String: Int] == reasons, "summary.by_reason")
    return problems
  }

  private static let identity: Set<String> = ["kind", "label", "account", "service", "server", "access_group"]
  private static let protections: Set<String> = ["ak", "ck", "dk", "aku", "cku", "dku", "akpu"]
  private static let changes: Set<String> = ["new", "replaces", "keeps-existing", "identical"]
  private static let allReasons: Set<String> = [
    "device-bound", "backup-not-encrypted", "passcode-only", "hardware-key", "system-bound", "needs-authentication",
    "shared-group", "app-clip", "deleted", "no-class-key", "tag-mismatch", "malformed", "unsupported-version",
  ]

  private static func identityProblems(_ item: [String: Any]) -> [String] {
    var problems: [String] = []
    if !["generic-password", "internet-password", "certificate", "key"].contains(item["kind"] as? String) {
      problems.append("kind")
    }
    for key in identity.subtracting(["kind"]) {
      if let value = item[key], !(value is String), !(value is NSNull) { problems.append(key) }
    }
    return problems
  }

  private static func isDate(_ value: Any?) -> Bool {
    (value as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/) != nil
  }
}
