import Migration

extension PlanDocument {
  /// The document as it is printed and saved.
  var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("format", .string(format)), ("made", .string(made)), ("source", source.json), ("target", target.json),
      ("policy", .string(policy.rawValue)), ("summary", summary.json), ("items", .array(items.map(\.json))),
      ("removed", .array(removed.map { .object($0.fields) })),
    ]
    if let redacted { fields.append(("redacted", .boolean(redacted))) }
    if let checksum { fields.append(("checksum", .string(checksum))) }
    return .object(fields)
  }
}

extension PlanDocument.Source {
  var json: JSONValue {
    var fields: [(String, JSONValue)] = [("kind", .string(kind.rawValue)), ("name", .string(name))]
    if let device { fields.append(("device", .string(device))) }
    if let deviceName { fields.append(("device_name", .string(deviceName))) }
    if let made { fields.append(("made", .string(made))) }
    return .object(fields + [("encrypted", .boolean(encrypted)), ("digest", .string(digest))])
  }
}

extension PlanDocument.Target {
  var json: JSONValue {
    [
      "name": .string(name), "same_device": sameDevice.map { .boolean($0) } ?? .null,
      "claims_same_device": .boolean(claimsSameDevice), "state": .string(state), "passcode_set": .boolean(passcodeSet),
      "items": .count(items), "revision": .string(revision),
    ]
  }
}

extension PlanDocument.Summary {
  var json: JSONValue {
    let reasons = byReason.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.count($0.value)) }
    return [
      "total": .count(total), "migrates": .count(migrates), "stays_behind": .count(staysBehind),
      "unreadable": .count(unreadable), "removed": .count(removed), "by_reason": .object(reasons),
    ]
  }
}

extension PlanDocument.Identity {
  var fields: [(String, JSONValue)] {
    [
      ("kind", .string(kind)), ("label", .text(label)), ("account", .text(account)), ("service", .text(service)),
      ("server", .text(server)), ("access_group", .text(accessGroup)),
    ]
  }
}

extension PlanDocument.Item {
  var json: JSONValue {
    var fields: [(String, JSONValue)] = [("index", .count(index))]
    fields += identity.fields + [("protection", .text(protection)), ("outcome", .string(outcome))]
    for (name, value) in [("change", change), ("reason", reason), ("detail", detail)] {
      if let value { fields.append((name, .string(value))) }
    }
    return .object(fields)
  }
}
