package import Basics
import KeychainFormats
import KeychainRules

// Encodes a plan's document as JSON, and decodes it. The members have the names of format 1; some properties have clearer
// names. To reject unknown members, `PlanFile` encodes the decoded document again and compares both
// (`JSONCursor.requireNothing(beyond:)`). The members are therefore listed only here.

extension PlanDocument {
  /// The document as it is printed and saved, without its checksum.
  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("format", .string(format)), ("made", .string(planTime)), ("source", source.json), ("target", target.json),
      ("policy", .string(policy.rawValue)), ("summary", summary.json), ("items", .each(items) { $0.json }),
      ("removed", .each(removed) { $0.json }),
    ]
    if let limitation { fields.append(("cannot_show", limitation.json)) }
    if let notInBackup { fields.append(("not_in_backup", notInBackup.json)) }
    if let dump { fields.append(("dump", dump.json)) }
    if removedOnlyCopyCount > 0 { fields.append(("removed_only_copies", .count(removedOnlyCopyCount))) }
    if !findings.isEmpty { fields.append(("findings", .array(findings.map(\.json)))) }
    if let redacted { fields.append(("redacted", .boolean(redacted))) }
    return .object(fields)
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    format = try node.member("format").string()
    planTime = try node.member("made").string()
    source = try Source(node.member("source"))
    target = try Target(node.member("target"))
    let policyNode = try node.member("policy")
    guard let policy = ExistingItemPolicy(rawValue: try policyNode.string()) else {
      throw policyNode.fault("is not known")
    }
    self.policy = policy
    summary = try Summary(node.member("summary"))
    items = []
    for item in try node.member("items").elements() { items.append(try Item(item)) }
    removed = []
    for identity in try node.member("removed").elements() { removed.append(try Identity(identity)) }
    if let node = try node.optional("cannot_show") { limitation = try BackupLimitation(node) }
    if let node = try node.optional("not_in_backup") { notInBackup = try NotInBackup(node) }
    if let node = try node.optional("dump") { dump = try Dump(node) }
    removedOnlyCopyCount = try node.optional("removed_only_copies")?.count(atLeast: 1) ?? 0
    findings = []
    for finding in try node.optionalElements("findings") { findings.append(try Finding(finding)) }
    redacted = try node.optional("redacted")?.boolean()
  }
}

extension PlanDocument.BackupLimitation {
  package var json: JSONValue {
    .object(
      [("sentence", .string(sentence))] + (guidance.map { [("guidance", .string($0))] } ?? [])
        + [("reasons", .array(reasons.map { .string($0) }))])
  }

  fileprivate init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    sentence = try node.member("sentence").string()
    guidance = try node.optional("guidance")?.string()
    reasons = []
    for reason in try node.member("reasons").elements() { reasons.append(try reason.string()) }
  }
}

extension PlanDocument.Source {
  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [("kind", .string(kind.rawValue)), ("name", .string(name))]
    if let device { fields.append(("device", .string(device))) }
    if let deviceName { fields.append(("device_name", .string(deviceName))) }
    if let backupDate { fields.append(("made", .string(backupDate))) }
    return .object(fields + [("encrypted", .boolean(encrypted)), ("digest", .string(digest))])
  }

  fileprivate init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    let kindNode = try node.member("kind")
    guard let kind = Kind(rawValue: try kindNode.string()) else { throw kindNode.fault("is not known") }
    self.init(
      kind: kind, name: try node.member("name").string(), device: try node.optional("device")?.string(),
      backupDate: try node.optional("made")?.string(), deviceName: try node.optional("device_name")?.string(),
      encrypted: try node.member("encrypted").boolean(), digest: try node.member("digest").string())
  }
}

extension PlanDocument.Target {
  package var json: JSONValue {
    let target: JSONValue = [
      "name": .string(name), "same_device": sameDevice.map { .boolean($0) } ?? .null,
      "claims_same_device": .boolean(claimsSameDevice), "state": .string(state),
      "passcode_set": .boolean(isPasscodeSet), "items": .count(itemCount), "revision": .string(revision),
    ]
    return isHypothetical ? target.adding([("imagined", .boolean(true))]) : target
  }

  fileprivate init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    let sameDevice = try node.member("same_device")
    self.init(
      name: try node.member("name").string(),
      sameDevice: sameDevice.value == .null ? nil : try sameDevice.boolean(),
      claimsSameDevice: try node.member("claims_same_device").boolean(), state: try node.member("state").string(),
      isPasscodeSet: try node.member("passcode_set").boolean(),
      itemCount: try node.member("items").count(atLeast: 0),
      revision: try node.member("revision").string(), isHypothetical: try node.optional("imagined")?.boolean() == true)
  }
}

extension PlanDocument.Summary {
  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("total", .count(total)), ("migrates", .count(migrates)), ("stays_behind", .count(staysBehind)),
      ("unreadable", .count(unreadable)), ("removed", .count(removed)), ("by_reason", Self.json(byReason)),
    ]
    if !byWarning.isEmpty { fields.append(("by_warning", Self.json(byWarning))) }
    return .object(fields)
  }

  private static func json(_ counts: [String: Int]) -> JSONValue {
    .object(counts.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.count($0.value)) })
  }

  fileprivate init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    total = try node.member("total").count(atLeast: 0)
    migrates = try node.member("migrates").count(atLeast: 0)
    staysBehind = try node.member("stays_behind").count(atLeast: 0)
    unreadable = try node.member("unreadable").count(atLeast: 0)
    removed = try node.member("removed").count(atLeast: 0)
    byReason = [:]
    for (reason, count) in try node.member("by_reason").members() { byReason[reason] = try count.count(atLeast: 0) }
    byWarning = [:]
    for (warning, count) in try node.optional("by_warning")?.members() ?? [] {
      byWarning[warning] = try count.count(atLeast: 0)
    }
  }
}

extension PlanDocument.Identity {
  package var json: JSONValue { .object(fields) }

  var fields: [(String, JSONValue)] {
    [
      ("kind", .string(kind)), ("label", .text(label)), ("account", .text(account)), ("service", .text(service)),
      ("server", .text(server)), ("access_group", .text(accessGroup)),
    ]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    self.init(kind: try node.member("kind").string())
    label = try node.member("label").optionalString()
    account = try node.member("account").optionalString()
    service = try node.member("service").optionalString()
    server = try node.member("server").optionalString()
    accessGroup = try node.member("access_group").optionalString()
  }
}

extension PlanDocument.Item {
  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [("index", .count(index))]
    fields += identity.fields + [("protection", .text(protection)), ("outcome", .string(outcome.rawValue))]
    for (name, value) in [("change", change), ("reason", reason), ("detail", detail), ("warning", warning)] {
      if let value { fields.append((name, .string(value))) }
    }
    return .object(fields)
  }

  fileprivate init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    index = try node.member("index").count(atLeast: 0)
    identity = try PlanDocument.Identity(node)
    protection = try node.member("protection").optionalString()
    let outcomeNode = try node.member("outcome")
    guard let outcome = ItemFate(rawValue: try outcomeNode.string()) else { throw outcomeNode.fault("is not known") }
    self.outcome = outcome
    change = try node.optional("change")?.string()
    reason = try node.optional("reason")?.string()
    detail = try node.optional("detail")?.string()
    warning = try node.optional("warning")?.string()
  }
}

extension PlanDocument.Dump {
  package var json: JSONValue {
    [
      "form": .string(format), "sentence": .string(sentence),
      "unknown": .array(unknownProperties.map { .string($0) }),
    ]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    format = try node.member("form").string()
    sentence = try node.member("sentence").string()
    unknownProperties = []
    for element in try node.member("unknown").elements() { unknownProperties.append(try element.string()) }
  }
}

extension PlanDocument.Finding {
  package var json: JSONValue {
    [
      "id": .string(id), "place": .string(file), "detail": .string(detail), "lost": .boolean(isLoss),
      "restorable": .boolean(isRestorable),
    ]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    id = try node.member("id").string()
    file = try node.member("place").string()
    detail = try node.member("detail").string()
    isLoss = try node.member("lost").boolean()
    isRestorable = try node.member("restorable").boolean()
  }
}

extension PlanDocument.NotInBackup {
  package var json: JSONValue {
    [
      "device": .string(device), "revision": .string(revision), "proven": .boolean(isProven), "total": .count(total),
      "in_backup": .count(includedCount), "changed": .count(changedCount), "doubtful": .count(possiblyIncludedCount),
      "gone": .count(removedCount), "never": .count(neverIncludedCount), "unreadable": .count(unreadableCount),
      "since": .count(addedCount),
      "items": .each(items) { item in
        .object(item.identity.fields + [("protection", .text(item.protection)), ("reason", .text(item.reason))])
      },
    ]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    device = try node.member("device").string()
    revision = try node.member("revision").string()
    isProven = try node.member("proven").boolean()
    total = try node.member("total").count(atLeast: 0)
    includedCount = try node.member("in_backup").count(atLeast: 0)
    changedCount = try node.member("changed").count(atLeast: 0)
    possiblyIncludedCount = try node.member("doubtful").count(atLeast: 0)
    removedCount = try node.member("gone").count(atLeast: 0)
    neverIncludedCount = try node.member("never").count(atLeast: 0)
    unreadableCount = try node.member("unreadable").count(atLeast: 0)
    addedCount = try node.member("since").count(atLeast: 0)
    items = []
    for element in try node.member("items").elements() {
      items.append(
        Item(
          identity: try PlanDocument.Identity(element),
          protection: try element.member("protection").optionalString(),
          reason: try element.member("reason").optionalString()))
    }
  }
}
