import ArchivedKeychain
import DataProtection
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Migration

private func decision(
  _ index: Int, _ item: KeychainItem?, _ outcome: MigrationPlan.Outcome, _ detail: String? = nil
) -> MigrationPlan.Decision {
  MigrationPlan.Decision(
    index: index, identity: item.map(ItemIdentity.init) ?? ItemIdentity(sealed: .key), protection: item?.protection,
    outcome: outcome, detail: detail)
}

private func document(
  sameDevice: Bool? = false, policy: ExistingItemPolicy = .replace, revision: String = "r17",
  name: String = "new-phone",
  digest: String = "sha256:" + String(repeating: "4f", count: 32), _ decisions: [MigrationPlan.Decision]? = nil,
  removed: [ItemIdentity] = [ItemIdentity(KeychainItem.password("gone"))]
) -> PlanDocument {
  let standard = [
    decision(0, .password("anna"), .migrates(.new)),
    decision(1, .password("b", .always), .migrates(.keepsExisting), "there 2020-01-01, in the backup 2021-01-01"),
    decision(2, .password("c", .whenUnlockedThisDeviceOnly), .staysBehind(.deviceBound)),
    decision(3, nil, .unreadable(.tagMismatch), "312 bytes at 7994"),
  ]
  return PlanDocument(
    made: "2026-11-21T09:12:44Z",
    source: .init(
      kind: .archive, name: "family.backup", device: "4C1F0A2B-9D3E5F60718293A4", made: "2026-11-20T18:04:10Z",
      deviceName: "old-phone", encrypted: true, digest: digest),
    target: .init(
      name: name, sameDevice: sameDevice, claimsSameDevice: false, state: "unlocked", passcodeSet: true, items: 2,
      revision: revision),
    plan: MigrationPlan(
      decisions: decisions ?? standard, removed: removed, policy: policy, isSameDevice: sameDevice, imports: [],
      clearedRowCount: 0))
}

@Suite("A plan as a document")
struct PlanDocuments {
  private func json(_ document: PlanDocument) throws -> [String: Any] {
    let data = Data(document.json.text().utf8)
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test("has the members that its format asks for, and no others")
  func members() throws {
    let root = try json(document())
    #expect(
      Set(root.keys) == ["format", "made", "source", "target", "policy", "summary", "items", "removed", "cannot_show"])
    #expect(root["format"] as? String == "migration-plan/1")
    #expect(root["policy"] as? String == "replace")
    let source = try #require(root["source"] as? [String: Any])
    #expect(Set(source.keys) == ["kind", "name", "device", "made", "device_name", "encrypted", "digest"])
    #expect(source["kind"] as? String == "archive")
    let target = try #require(root["target"] as? [String: Any])
    #expect(
      Set(target.keys) == ["name", "same_device", "claims_same_device", "state", "passcode_set", "items", "revision"])
    let summary = try #require(root["summary"] as? [String: Any])
    #expect(Set(summary.keys) == ["total", "migrates", "stays_behind", "unreadable", "removed", "by_reason"])
    #expect(summary["by_reason"] as? [String: Int] == ["device-bound": 1, "tag-mismatch": 1])
    #expect(summary["total"] as? Int == 4)
    #expect(summary["migrates"] as? Int == 2)
    #expect(summary["removed"] as? Int == 1)
  }

  @Test("names an item flat, with null for what is sealed; a change where it migrates and a reason where not")
  func items() throws {
    let items = try #require(try json(document())["items"] as? [[String: Any]])
    let identity: Set = ["kind", "label", "account", "service", "server", "access_group"]
    #expect(Set(items[0].keys) == identity.union(["index", "protection", "outcome", "change"]))
    #expect(items[0]["account"] as? String == "anna")
    #expect(items[0]["label"] is NSNull)
    #expect(items[0]["kind"] as? String == "generic-password")
    #expect(items[0]["protection"] as? String == "ak")
    #expect(items[0]["change"] as? String == "new")
    #expect(items[1]["change"] as? String == "keeps-existing")
    #expect(items[1]["detail"] as? String == "there 2020-01-01, in the backup 2021-01-01")
    #expect(Set(items[2].keys) == identity.union(["index", "protection", "outcome", "reason"]))
    #expect(items[2]["outcome"] as? String == "stays-behind")
    #expect(items[2]["reason"] as? String == "device-bound")
    #expect(items[3]["outcome"] as? String == "unreadable")
    #expect(items[3]["protection"] is NSNull)
    #expect(items[3]["account"] is NSNull)
    let removed = try #require(try json(document())["removed"] as? [[String: Any]])
    #expect(Set(try #require(removed.first).keys) == identity)
  }

  @Test("says null where nothing can prove the device", arguments: [true, false, nil])
  func sameDevice(_ value: Bool?) throws {
    let target = try #require(try json(document(sameDevice: value))["target"] as? [String: Any])
    if let value {
      #expect(target["same_device"] as? Bool == value)
    } else {
      #expect(target["same_device"] is NSNull)
    }
  }

  @Test("uses the identifiers of the published schema")
  func identifiers() {
    #expect(
      Set(Reason.allCases.map(\.rawValue)) == [
        "device-bound", "backup-not-encrypted", "passcode-only", "hardware-key", "system-bound", "needs-authentication",
        "shared-group", "app-clip", "deleted", "no-class-key", "tag-mismatch", "malformed", "unsupported-version",
      ])
    #expect(MigrationPlan.Change.allCases.map(\.rawValue) == ["new", "replaces", "keeps-existing", "identical"])
    #expect(ExistingItemPolicy.allCases.map(\.rawValue) == ["replace", "merge"])
    #expect(ItemKind.allCases.map(\.reportName) == ["generic-password", "internet-password", "certificate", "key"])
  }

  @Test("comes back from JSON as it was", arguments: [true, false, nil])
  func roundTrip(_ sameDevice: Bool?) throws {
    let original = document(sameDevice: sameDevice)
    let back = try PlanFile(parsing: PlanFile.bytes(of: original)).document
    #expect(back == original)
    #expect(back.difference(from: original) == nil)
  }

  @Test("is refused by the reader where a member is missing or of another type")
  func damaged() throws {
    var root = try json(document())
    for (member, value) in [("items", nil), ("policy", "overwrite"), ("summary", nil), ("target", [:])]
      as [(String, Any?)]
    {
      let kept = root[member]
      root[member] = value
      let data = try JSONSerialization.data(withJSONObject: root)
      let error = #expect(throws: MigrationError.self) { try PlanFile(parsing: Array(data)) }
      #expect(error?.code == .malformedPlan)
      root[member] = kept
    }
  }
}

@Suite("A saved plan's checksum")
struct PlanChecksums {
  private func text(_ document: PlanDocument) throws -> String {
    String(decoding: try PlanFile.bytes(of: document), as: UTF8.self)
  }

  private func file(_ text: String) throws -> PlanFile { try PlanFile(parsing: Array(text.utf8)) }

  /// The text with the digits that fit it, computed here and not by the library.
  private func resealed(_ text: String) throws -> String {
    let place = try #require(text.ranges(of: /sha256:[0-9a-f]{64}"\n}\n$/).last)
    let digits = text.index(place.lowerBound, offsetBy: 7)..<text.index(place.upperBound, offsetBy: -4)
    let covered = Array(text[..<digits.lowerBound].utf8) + Array(text[digits.upperBound...].utf8)
    return try text.replacingCharacters(in: digits, with: Digest.sha256(covered).hex)
  }

  @Test("is the last member of what is saved, and of every byte but its own digits")
  func fits() throws {
    let saved = try text(document())
    #expect(document().json["checksum"] == nil)
    #expect(saved.contains(/,\n  "checksum": "sha256:[0-9a-f]{64}"\n}\n$/))
    #expect(try file(saved).obstacle == nil && file(saved).document == document())
    #expect(try resealed(saved) == saved)
    #expect(try file(document().json.text()).obstacle == "it has no checksum")
  }

  @Test("does not fit after any edit of a value, also of what decides nothing by itself")
  func edits() throws {
    let saved = try text(document())
    let checksum = try #require(saved.firstMatch(of: /"checksum": "[^"]*"/))
    let edits: [(inout PlanDocument) -> Void] = [
      { $0.policy = .merge }, { $0.made = "2020-01-01T00:00:00Z" }, { $0.source.name = "x" },
      { $0.source.kind = .device }, { $0.source.device = nil }, { $0.source.made = nil }, { $0.source.deviceName = "" },
      { $0.source.encrypted = false }, { $0.source.digest += "0" }, { $0.target.name = "x" },
      { $0.target.sameDevice = nil }, { $0.target.claimsSameDevice = true }, { $0.target.state = "locked" },
      { $0.target.passcodeSet = false }, { $0.target.items = 3 }, { $0.target.revision = "r1" },
      { $0.summary.total = 5 }, { $0.summary.byReason["deleted"] = 0 }, { $0.summary.byReason = [:] },
      { $0.items.swapAt(0, 1) }, { $0.items.removeLast() }, { $0.items[0].detail = "" },
      { $0.items[0].identity.label = "" }, { $0.items[1].identity.account = nil }, { $0.items[3].protection = "ak" },
      { $0.removed = [] }, { $0.removed[0].service = nil },
    ]
    for (number, edit) in edits.enumerated() {
      var edited = document()
      edit(&edited)
      let other = try text(edited).replacing(/"checksum": "[^"]*"/, with: { _ in checksum.output })
      #expect(other != saved)
      #expect(try file(other).obstacle == PlanFile.edited, "edit \(number)")
      #expect(try file(resealed(other)).obstacle == nil || edited.source.kind == .device, "edit \(number)")
    }
  }

  @Test("does not fit after any edit of the bytes: another layout, another order, one blank")
  func layout() throws {
    let saved = try text(document())
    let edits = [
      saved + "\n", " " + saved, String(saved.dropLast()), saved.replacing("\n", with: "\r\n"),
      saved.replacing("\"made\": ", with: "\"made\":"), saved.replacing("family", with: "f\\u0061mily"),
      saved.replacing(/(  "format": [^\n]*\n)(  "made": [^\n]*\n)/, with: { String($0.2 + $0.1) }),
      saved.replacing(/"sha256:[0-9a-f]{64}"\n}\n$/, with: "\"sha256:" + String(repeating: "0", count: 64) + "\"\n}\n"),
      saved.replacing("\n  \"checksum\"", with: "\n   \"checksum\""),
    ]
    for edited in edits {
      #expect(edited != saved)
      #expect(try file(edited).obstacle == PlanFile.edited, "\(edited)")
    }
    var bytes = Array(saved.utf8)
    for index in stride(from: 0, to: bytes.count, by: 7) {
      bytes[index] ^= 1
      defer { bytes[index] ^= 1 }
      guard let edited = try? PlanFile(parsing: bytes) else { continue }
      #expect(edited.obstacle != nil, "byte \(index)")
    }
  }

  static let additions: [(old: String, new: String, place: String)] = [
    ("{\n  \"format\"", "{\n  \"note\": \"mine\",\n  \"format\"", "note is not known"),
    ("\"index\": 0,", "\"index\": 0,\n      \"zzz\": 1,", "items[0].zzz is not known"),
    ("\"kind\": \"archive\",", "\"kind\": \"archive\", \"x\": {},", "source.x is not known"),
    ("\"same_device\": false,", "\"same_device\": false, \"x\": [],", "target.x is not known"),
    ("\"total\": 4,", "\"total\": 4, \"x\": 0,", "summary.x is not known"),
    ("\"account\": \"gone\",", "\"account\": \"gone\", \"\\u001b[2J\": 0,", "removed[0].\\u{1B}[2J is not known"),
    ("\"change\": \"new\"", "\"change\": \"new\", \"reason\": null", "items[0].reason should be a string, not null"),
    ("\"total\": 4,", "\"total\": 4.0,", "summary.total should be a whole number, not a fraction"),
    ("\"policy\": \"replace\",", "\"policy\": \"overwrite\",", "policy is not known"),
  ]

  @Test("does not fit where a member was added, and such a member is refused where the checksum was made to fit")
  func additions() throws {
    let saved = try text(document())
    for (old, new, place) in Self.additions {
      let edited = saved.replacing(old, with: new, maxReplacements: 1)
      #expect(edited != saved, "\(old)")
      let stale = #expect(throws: MigrationError.self) { try file(edited) }
      #expect(stale?.code == .stalePlan && stale?.reason == PlanFile.edited)
      let refused = #expect(throws: MigrationError.self) { try file(resealed(edited)) }
      #expect(refused?.code == .malformedPlan && refused?.reason == place, "\(refused?.reason ?? "read")")
    }
    let twice = saved.replacing("{\n  \"format\"", with: "{\n  \"made\": \"now\",\n  \"format\"", maxReplacements: 1)
    #expect(throws: MigrationError.self) { try file(resealed(twice)) }
  }

  @Test("of an earlier version does not fit, and it is said that this may be the reason")
  func earlier() throws {
    // Over the values alone, as the format had it before.
    let digits = String(repeating: "6a", count: 32)
    let old = try text(document()).replacing(/sha256:[0-9a-f]{64}"\n}\n$/, with: "sha256:\(digits)\"\n}\n")
    #expect(try file(old).obstacle == "it was edited after it was saved, or an earlier version saved it")
  }

  @Test("is not asked for where it is another format, and nothing else is taken for a plan")
  func otherFormats() throws {
    let later = try text(document()).replacing("migration-plan/1", with: "migration-plan/2")
    let error = #expect(throws: MigrationError.self) { try file(later) }
    #expect(error?.code == .otherPlanFormat && error?.reason == "it says migration-plan/2; migration-plan/1 is read")
    for text in ["", "{}", "[]", "x", "{\"format\": 1}", "{\"format\": \"migration-plan/1\"}"] {
      #expect(throws: MigrationError.self) { try file(text) }
    }
  }

  @Test("does not make a plan out of a redacted one, or of one of a device")
  func others() throws {
    let redacted = document().redactingNames()
    #expect(
      try file(text(redacted)).obstacle == "it was made with --redact, to be shown and not to be carried out")
    #expect(redacted.source.device == nil && redacted.source.deviceName == nil && redacted.target.name == "target")
    var device = document()
    device.source.kind = .device
    #expect(
      try file(text(device)).obstacle == "it was made of family.backup itself, of which there was no backup yet")
  }
}

@Suite("The schema of a saved plan")
struct PlanSchemas {
  private typealias Object = [String: Any]

  private static let url = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../docs/schemas/migration-plan-1.schema.json").standardizedFileURL

  private func object(_ json: String) throws -> Object {
    try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? Object)
  }

  @Test("names every member that the encoder writes, no other, and asks for none that it may leave out")
  func members() throws {
    let schema = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: Self.url)) as? Object)
    let definitions = try #require(schema["$defs"] as? Object)
    var full = document()
    full.redacted = true
    var bare = document()
    bare.source = .init(
      kind: .device, name: "x", device: nil, made: nil, deviceName: nil, encrypted: false, digest: "sha256:")
    let whole = try object(String(decoding: PlanFile.bytes(of: full), as: UTF8.self))
    let least = try object(bare.json.text())

    func check(_ definition: Object?, _ most: [Object], _ least: [Object], _ name: String) {
      let known = Set((definition?["properties"] as? Object ?? [:]).keys)
      let required = Set(definition?["required"] as? [String] ?? [])
      #expect(!known.isEmpty && known == most.reduce(into: Set()) { $0.formUnion($1.keys) }, "\(name)")
      for object in least { #expect(required.isSubset(of: object.keys), "\(name)") }
    }
    let items = try #require(whole["items"] as? [Object])
    check(schema, [whole], [least], "plan")
    for name in ["source", "target", "summary"] {
      let most = try #require(whole[name] as? Object)
      check(definitions[name] as? Object, [most], [try #require(least[name] as? Object)], name)
    }
    check(definitions["item"] as? Object, items, items, "item")
    let removed = try #require(whole["removed"] as? [Object])
    check(definitions["identity"] as? Object, removed, removed, "identity")
  }

}

@Suite("A saved plan beside one made now")
struct PlanDifferences {
  private let now = document()

  @Test("is the same plan where only its date and the archive's name differ")
  func same() {
    var saved = document()
    saved.made = "2020-01-01T00:00:00Z"
    saved.source.name = "copy.backup"
    #expect(saved.difference(from: now) == nil)
  }

  @Test("differs by archive, phone, revision, policy or proof")
  func circumstances() {
    #expect(document(digest: "sha256:00").difference(from: now) == "the archive is another one or has changed")
    #expect(
      document(revision: "r16").difference(from: now) == "new-phone has changed since (revision r16, now r17)")
    #expect(document(name: "third-phone").difference(from: now) == "it was made for third-phone")
    #expect(document(policy: .merge).difference(from: now) == "it was made with --existing merge")
    #expect(document(sameDevice: true).difference(from: now) == "it was made for another device")
    #expect(document(sameDevice: nil).difference(from: now) == "it was made for another device")
    var saved = document()
    saved.format = "migration-plan/2"
    #expect(saved.difference(from: now) == "its format is migration-plan/2, not migration-plan/1")
  }

  @Test("differs by every edit of an item")
  func items() {
    let edits: [(inout PlanDocument.Item) -> Void] = [
      { $0.index = 9 }, { $0.outcome = "stays-behind" }, { $0.change = "replaces" }, { $0.change = nil },
      { $0.reason = "deleted" }, { $0.detail = "x" }, { $0.protection = "dk" }, { $0.protection = nil },
      { $0.identity.kind = "key" }, { $0.identity.label = "x" }, { $0.identity.account = nil },
      { $0.identity.service = "x" }, { $0.identity.server = "x" }, { $0.identity.accessGroup = nil },
    ]
    for edit in edits {
      var saved = now
      edit(&saved.items[0])
      #expect(saved.difference(from: now) == "item 0 is decided differently now")
    }
    var swapped = now
    swapped.items.swapAt(1, 2)
    #expect(swapped.difference(from: now) == "item 1 is decided differently now")
    var shorter = now
    shorter.items.removeLast()
    #expect(shorter.difference(from: now) == "it lists 3 items, the archive has 4")
  }

  @Test("is the same plan where only one of the two knew the name of what stays sealed")
  func sealedNames() {
    var named = now
    named.items[2].identity.account = nil
    var sealed = now
    for index in [2, 3] {
      sealed.items[index].identity = PlanDocument.Identity(ItemIdentity(sealed: index == 2 ? .genericPassword : .key))
    }
    #expect(sealed.difference(from: now) == nil && now.difference(from: sealed) == nil)
    sealed.items[2].identity.kind = "key"
    #expect(sealed.difference(from: now) == "item 2 is decided differently now")
    #expect(named.difference(from: now) == "item 2 is decided differently now")
  }

  @Test("differs by every edit of what would be removed")
  func removed() {
    let edits: [(inout [PlanDocument.Identity]) -> Void] = [
      { $0 = [] }, { $0.append($0[0]) }, { $0[0].account = "x" }, { $0[0].accessGroup = nil },
    ]
    for edit in edits {
      var saved = now
      edit(&saved.removed)
      #expect(saved.difference(from: now) == "other items would be removed")
    }
  }

  @Test("differs by every edit of its summary")
  func summary() {
    let edits: [(inout PlanDocument.Summary) -> Void] = [
      { $0.total += 1 }, { $0.migrates += 1 }, { $0.staysBehind = 0 }, { $0.unreadable = 0 }, { $0.removed = 0 },
      { $0.byReason["deleted"] = 1 }, { $0.byReason["device-bound"] = nil },
    ]
    for edit in edits {
      var saved = now
      edit(&saved.summary)
      #expect(saved.difference(from: now) == "its summary does not fit its items")
    }
  }
}
