import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import KeyhaulKit

@Suite("Plan documents")
struct PlanDocumentTests {
  private func json(_ document: PlanDocument) throws -> [String: Any] {
    let data = Data(document.json.text().utf8)
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test("A plan document has exactly the members of its format")
  func members() throws {
    let root = try json(PlanDocument.sample())
    #expect(
      Set(root.keys) == [
        "format", "made", "source", "target", "policy", "summary", "items", "removed", "cannot_show", "not_in_backup",
      ])
    #expect(root["format"] as? String == "migration-plan/1")
    #expect(root["policy"] as? String == "replace")
    let source = try #require(root["source"] as? [String: Any])
    #expect(Set(source.keys) == ["kind", "name", "device", "made", "device_name", "encrypted", "digest"])
    #expect(source["kind"] as? String == "archive")
    let target = try #require(root["target"] as? [String: Any])
    #expect(
      Set(target.keys) == ["name", "same_device", "claims_same_device", "state", "passcode_set", "items", "revision"])
    let summary = try #require(root["summary"] as? [String: Any])
    let counts: Set = ["total", "migrates", "stays_behind", "unreadable", "removed", "by_reason", "by_warning"]
    #expect(Set(summary.keys) == counts)
    #expect(summary["by_reason"] as? [String: Int] == ["device-bound": 1, "tag-mismatch": 1])
    #expect(summary["total"] as? Int == 4)
    #expect(summary["migrates"] as? Int == 2)
    #expect(summary["removed"] as? Int == 1)
  }

  @Test("An item has null for encrypted names, and either a change or a reason")
  func items() throws {
    let items = try #require(try json(PlanDocument.sample())["items"] as? [[String: Any]])
    let identity: Set = ["kind", "label", "account", "service", "server", "access_group"]
    #expect(Set(items[0].keys) == identity.union(["index", "protection", "outcome", "warning", "change"]))
    #expect(items[0]["account"] as? String == "anna")
    #expect(items[0]["label"] is NSNull)
    #expect(items[0]["kind"] as? String == "generic-password")
    #expect(items[0]["protection"] as? String == "ak")
    #expect(items[0]["change"] as? String == "new")
    #expect(items[1]["change"] as? String == "keeps-existing")
    #expect(items[1]["detail"] as? String == "on the target: 2020-01-01; in the backup: 2021-01-01")
    #expect(Set(items[2].keys) == identity.union(["index", "protection", "outcome", "reason"]))
    #expect(items[2]["outcome"] as? String == "stays-behind")
    #expect(items[2]["reason"] as? String == "device-bound")
    #expect(items[3]["outcome"] as? String == "unreadable")
    #expect(items[3]["protection"] is NSNull)
    #expect(items[3]["account"] is NSNull)
    let removed = try #require(try json(PlanDocument.sample())["removed"] as? [[String: Any]])
    #expect(Set(try #require(removed.first).keys) == identity)
  }

  @Test(
    "The member same_device is null if it is unknown whether the target is the source device",
    arguments: [true, false, nil])
  func sameDevice(_ value: Bool?) throws {
    let target = try #require(try json(PlanDocument.sample(sameDevice: value))["target"] as? [String: Any])
    if let value {
      #expect(target["same_device"] as? Bool == value)
    } else {
      #expect(target["same_device"] is NSNull)
    }
  }

  @Test("The document uses the identifiers of the published schema")
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

  @Test("A plan document survives encoding and decoding", arguments: [true, false, nil])
  func roundTrip(_ sameDevice: Bool?) throws {
    let original = PlanDocument.sample(sameDevice: sameDevice)
    let decoded = try PlanFile(parsing: PlanFile.bytes(of: original)).document
    #expect(decoded == original)
    #expect(decoded.difference(from: original) == nil)
  }

  @Test("A plan document with a missing member or an invalid value is refused")
  func damaged() throws {
    var root = try json(PlanDocument.sample())
    let changes: [(member: String, value: Any?)] = [
      ("items", nil), ("policy", "overwrite"), ("summary", nil), ("target", [:]),
    ]
    for (member, value) in changes {
      let original = root[member]
      root[member] = value
      let data = try JSONSerialization.data(withJSONObject: root)
      let error = #expect(throws: KeyhaulError.self) { try PlanFile(parsing: Array(data)) }
      #expect(error?.code == .malformedPlan)
      root[member] = original
    }
  }
}

@Suite("Schema of saved plans")
struct PlanSchemaTests {
  private typealias Object = [String: Any]

  private static let url = Repository.root.appending(path: "docs/schemas/migration-plan-1.schema.json")

  private func object(_ json: String) throws -> Object {
    try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? Object)
  }

  @Test("The schema has every member that the encoder writes, and requires no optional member")
  func members() throws {
    let schema = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: Self.url)) as? Object)
    let definitions = try #require(schema["$defs"] as? Object)
    var complete = PlanDocument.sample()
    complete.redacted = true
    complete.dump = .init(format: "objection", sentence: "not encrypted", unknownProperties: ["who"])
    complete.target.isHypothetical = true
    complete.removedOnlyCopyCount = 1
    complete.findings = [.init(.versionMissing)]
    var minimal = PlanDocument.sample()
    minimal.source = .init(
      kind: .device, name: "x", device: nil, backupDate: nil, deviceName: nil, encrypted: false, digest: "sha256:")
    let completeJSON = try object(String(decoding: PlanFile.bytes(of: complete), as: UTF8.self))
    let minimalJSON = try object(minimal.json.text())

    func check(_ name: String, _ definition: Object?, complete: [Object], minimal: [Object]) {
      let properties = Set((definition?["properties"] as? Object ?? [:]).keys)
      let required = Set(definition?["required"] as? [String] ?? [])
      #expect(!properties.isEmpty && properties == complete.reduce(into: Set()) { $0.formUnion($1.keys) }, "\(name)")
      for object in minimal { #expect(required.isSubset(of: object.keys), "\(name)") }
    }
    let items = try #require(completeJSON["items"] as? [Object])
    check("plan", schema, complete: [completeJSON], minimal: [minimalJSON])
    for name in ["source", "target", "summary"] {
      let completeMember = try #require(completeJSON[name] as? Object)
      let minimalMember = try #require(minimalJSON[name] as? Object)
      check(name, definitions[name] as? Object, complete: [completeMember], minimal: [minimalMember])
    }
    check("item", definitions["item"] as? Object, complete: items, minimal: items)
    let removed = try #require(completeJSON["removed"] as? [Object])
    check("identity", definitions["identity"] as? Object, complete: removed, minimal: removed)
  }
}

@Suite("Comparison of a saved plan with a new one")
struct PlanDifferenceTests {
  private let now = PlanDocument.sample()

  @Test("Plans are equal if only the date and the backup's name differ")
  func same() {
    var saved = PlanDocument.sample()
    saved.planTime = "2020-01-01T00:00:00Z"
    saved.source.name = "copy.backup"
    #expect(saved.difference(from: now) == nil)
  }

  @Test("Plans differ if the backup, phone, revision, policy, format or the member same_device differs")
  func circumstances() {
    #expect(
      PlanDocument.sample(digest: "sha256:00").difference(from: now)
        == "it was made from another backup, or the backup has changed")
    #expect(
      PlanDocument.sample(revision: "r16").difference(from: now)
        == "new-phone has changed since (revision r16, now r17)")
    #expect(PlanDocument.sample(name: "third-phone").difference(from: now) == "it was made for third-phone")
    #expect(
      PlanDocument.sample(policy: .merge).difference(from: now)
        == "it was made for a restore that merges with the existing items")
    #expect(PlanDocument.sample(sameDevice: true).difference(from: now) == "it was made for another device")
    #expect(PlanDocument.sample(sameDevice: nil).difference(from: now) == "it was made for another device")
    var saved = PlanDocument.sample()
    saved.format = "migration-plan/2"
    #expect(saved.difference(from: now) == "its format is migration-plan/2, not migration-plan/1")
  }

  @Test("Plans differ after any change of an item")
  func items() {
    let edits: [(inout PlanDocument.Item) -> Void] = [
      { $0.index = 9 }, { $0.outcome = .staysBehind }, { $0.change = "replaces" }, { $0.change = nil },
      { $0.reason = "deleted" }, { $0.detail = "x" }, { $0.protection = "dk" }, { $0.protection = nil },
      { $0.identity.kind = "key" }, { $0.identity.label = "x" }, { $0.identity.account = nil },
      { $0.identity.service = "x" }, { $0.identity.server = "x" }, { $0.identity.accessGroup = nil },
    ]
    for edit in edits {
      var saved = now
      edit(&saved.items[0])
      #expect(saved.difference(from: now) == "the decision on item 0 is different now")
    }
    var swapped = now
    swapped.items.swapAt(1, 2)
    #expect(swapped.difference(from: now) == "the decision on item 1 is different now")
    var shorter = now
    shorter.items.removeLast()
    #expect(shorter.difference(from: now) == "it lists 3 items, but the backup has 4")
  }

  @Test("Plans are equal if only one of them has the names of an encrypted item")
  func encryptedNames() {
    var encrypted = now
    for index in [2, 3] {
      encrypted.items[index].identity = PlanDocument.Identity(
        ItemDescriptor(undecryptable: index == 2 ? .genericPassword : .key))
    }
    #expect(encrypted.difference(from: now) == nil && now.difference(from: encrypted) == nil)
  }

  @Test("Plans differ if an encrypted item has another kind, or an item lacks only one of its names")
  func differentNames() {
    var otherKind = now
    otherKind.items[2].identity = PlanDocument.Identity(ItemDescriptor(undecryptable: .key))
    #expect(otherKind.difference(from: now) == "the decision on item 2 is different now")
    var unnamed = now
    unnamed.items[2].identity.account = nil
    #expect(unnamed.difference(from: now) == "the decision on item 2 is different now")
  }

  @Test("Plans differ after any change of the removed items")
  func removed() {
    let edits: [(inout [PlanDocument.Identity]) -> Void] = [
      { $0 = [] }, { $0.append($0[0]) }, { $0[0].account = "x" }, { $0[0].accessGroup = nil },
    ]
    for edit in edits {
      var saved = now
      edit(&saved.removed)
      #expect(saved.difference(from: now) == "different items would be removed now")
    }
  }

  @Test("Plans differ after any change of the summary")
  func summary() {
    let edits: [(inout PlanDocument.Summary) -> Void] = [
      { $0.total += 1 }, { $0.migrates += 1 }, { $0.staysBehind = 0 }, { $0.unreadable = 0 }, { $0.removed = 0 },
      { $0.byReason["deleted"] = 1 }, { $0.byReason["device-bound"] = nil },
    ]
    for edit in edits {
      var saved = now
      edit(&saved.summary)
      #expect(saved.difference(from: now) == "its summary does not match its items")
    }
  }
}
