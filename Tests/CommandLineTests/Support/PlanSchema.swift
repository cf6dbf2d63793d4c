import Foundation

/// Checks documents of the format `migration-plan/1`: their structure, allowed values and sums.
struct PlanSchema {
  private var problems: [String] = []

  /// Returns a text for each problem of a document.
  static func problems(in text: String) throws -> [String] {
    guard let plan = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] else {
      return ["no object"]
    }
    var schema = PlanSchema()
    schema.checkPlan(plan)
    schema.checkSource(plan["source"] as? [String: Any] ?? [:])
    schema.checkTarget(plan["target"] as? [String: Any] ?? [:])
    schema.checkItems(of: plan)
    return schema.problems
  }

  private mutating func check(_ condition: Bool, _ problem: String) { if !condition { problems.append(problem) } }

  private mutating func checkMembers(
    of object: [String: Any], required: Set<String>, optional: Set<String>, _ name: String
  ) {
    check(required.isSubset(of: object.keys), "\(name) lacks \(required.subtracting(object.keys))")
    let unknownMembers = Set(object.keys).subtracting(required.union(optional))
    check(unknownMembers.isEmpty, "\(name) has \(unknownMembers)")
  }

  private mutating func checkPlan(_ plan: [String: Any]) {
    checkMembers(
      of: plan, required: ["format", "made", "source", "target", "policy", "summary", "items"],
      optional: ["removed", "cannot_show", "not_in_backup", "redacted", "checksum"], "plan")
    check(plan["format"] as? String == "migration-plan/1", "format")
    check(Self.isDate(plan["made"]), "made")
    check(["merge", "replace"].contains(plan["policy"] as? String), "policy")
    check((plan["checksum"] as? String)?.wholeMatch(of: /sha256:[0-9a-f]{64}/) != nil, "checksum")
  }

  private mutating func checkSource(_ source: [String: Any]) {
    checkMembers(
      of: source, required: ["kind", "name", "encrypted", "digest"], optional: ["device", "made", "device_name"],
      "source")
    check(["archive", "device"].contains(source["kind"] as? String), "source.kind")
    check((source["digest"] as? String)?.wholeMatch(of: /sha256:[0-9a-f]{64}/) != nil, "source.digest")
    check(source["made"] == nil || Self.isDate(source["made"]), "source.made")
  }

  private mutating func checkTarget(_ target: [String: Any]) {
    checkMembers(
      of: target, required: ["name", "same_device", "state", "revision"],
      optional: ["claims_same_device", "passcode_set", "items"], "target")
    check(target["same_device"] is Bool || target["same_device"] is NSNull, "target.same_device")
    check(["unlocked", "locked", "before-first-unlock"].contains(target["state"] as? String), "target.state")
  }

  /// Checks the items, the removed items and their summary.
  private mutating func checkItems(of plan: [String: Any]) {
    let items = plan["items"] as? [[String: Any]] ?? []
    let removed = plan["removed"] as? [[String: Any]] ?? []
    for (index, item) in items.enumerated() { checkItem(item, at: index) }
    for item in removed {
      checkMembers(of: item, required: ["kind"], optional: Self.identity, "removed")
      checkIdentity(of: item)
    }
    let outcomes = items.map { $0["outcome"] as? String ?? "" }
    let reasons: [String: Int] = items.filter { $0["outcome"] as? String != "migrates" }
      .reduce(into: [:]) { $0[$1["reason"] as? String ?? "", default: 0] += 1 }
    let summary = plan["summary"] as? [String: Any] ?? [:]
    checkMembers(
      of: summary, required: ["total", "migrates", "stays_behind", "unreadable", "removed"], optional: ["by_reason"],
      "summary")
    check(summary["total"] as? Int == items.count, "summary.total")
    check(summary["migrates"] as? Int == outcomes.count { $0 == "migrates" }, "summary.migrates")
    check(summary["stays_behind"] as? Int == outcomes.count { $0 == "stays-behind" }, "summary.stays_behind")
    check(summary["unreadable"] as? Int == outcomes.count { $0 == "unreadable" }, "summary.unreadable")
    check(summary["removed"] as? Int == removed.count, "summary.removed")
    check(summary["by_reason"] as? [String: Int] == reasons, "summary.by_reason")
  }

  private mutating func checkItem(_ item: [String: Any], at index: Int) {
    checkMembers(
      of: item, required: ["index", "kind", "protection", "outcome"],
      optional: Self.identity.union(["change", "reason", "detail"]), "item \(index)")
    checkIdentity(of: item)
    check(item["index"] as? Int == index, "item \(index): index")
    check(
      item["protection"] is NSNull || Self.protections.contains(item["protection"] as? String ?? ""), "protection")
    let outcome = item["outcome"] as? String ?? ""
    if outcome == "migrates" {
      check(item["reason"] == nil && Self.changes.contains(item["change"] as? String ?? ""), "item \(index): change")
    } else {
      check(["stays-behind", "unreadable"].contains(outcome), "item \(index): outcome")
      check(Self.reasons.contains(item["reason"] as? String ?? "") && item["change"] == nil, "item \(index): reason")
    }
  }

  private mutating func checkIdentity(of item: [String: Any]) {
    let kinds = ["generic-password", "internet-password", "certificate", "key"]
    check(kinds.contains(item["kind"] as? String ?? ""), "kind")
    for key in Self.identity.subtracting(["kind"]) {
      check(item[key] == nil || item[key] is String || item[key] is NSNull, key)
    }
  }

  private static let identity: Set<String> = ["kind", "label", "account", "service", "server", "access_group"]
  private static let protections: Set<String> = ["ak", "ck", "dk", "aku", "cku", "dku", "akpu"]
  private static let changes: Set<String> = ["new", "replaces", "keeps-existing", "identical"]
  private static let reasons: Set<String> = [
    "device-bound", "backup-not-encrypted", "passcode-only", "hardware-key", "system-bound", "needs-authentication",
    "shared-group", "app-clip", "deleted", "no-class-key", "tag-mismatch", "malformed", "unsupported-version",
  ]

  private static func isDate(_ value: Any?) -> Bool {
    (value as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/) != nil
  }
}
