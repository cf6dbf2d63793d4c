import ArchivedKeychain
import Foundation
import KeychainFormats
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
    let data = try JSONEncoder().encode(document)
    return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test("has the members that its format asks for, and no others")
  func members() throws {
    let root = try json(document())
    #expect(
      Set(root.keys) == ["format", "made", "source", "target", "policy", "summary", "items", "removed"])
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
    let back = try JSONDecoder().decode(PlanDocument.self, from: JSONEncoder().encode(original))
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
      #expect(throws: DecodingError.self) { try JSONDecoder().decode(PlanDocument.self, from: data) }
      root[member] = kept
    }
  }
}

@Suite("A saved plan's checksum")
struct PlanChecksums {
  @Test("is there only once the plan is saved, survives JSON, and fits")
  func fits() throws {
    #expect(document().checksum == nil)
    let saved = try document().checksummed()
    let back = try JSONDecoder().decode(PlanDocument.self, from: JSONEncoder().encode(saved))
    #expect(try back.obstacle() == nil)
    #expect(saved.checksum?.wholeMatch(of: /sha256:[0-9a-f]{64}/) != nil)
    #expect(try document().obstacle() == "it has no checksum")
  }

  @Test("does not fit after any edit, also of what decides nothing by itself")
  func edits() throws {
    let saved = try document().checksummed()
    let edits: [(inout PlanDocument) -> Void] = [
      { $0.policy = .merge }, { $0.made = "2020-01-01T00:00:00Z" }, { $0.source.name = "x" },
      { $0.source.kind = .device }, { $0.source.device = nil }, { $0.source.made = nil }, { $0.source.deviceName = "" },
      { $0.source.encrypted = false }, { $0.source.digest += "0" }, { $0.target.name = "x" },
      { $0.target.sameDevice = nil }, { $0.target.claimsSameDevice = true }, { $0.target.state = "locked" },
      { $0.target.passcodeSet = false }, { $0.target.items = 3 }, { $0.target.revision = "r1" },
      { $0.summary.total = 5 }, { $0.summary.byReason["deleted"] = 0 }, { $0.summary.byReason = [:] },
      { $0.items.swapAt(0, 1) }, { $0.items.removeLast() }, { $0.items[0].detail = "" },
      { $0.items[0].identity.label = "" }, { $0.items[1].identity.account = nil }, { $0.items[3].protection = "ak" },
      { $0.removed = [] }, { $0.removed[0].service = nil }, { $0.format = "migration-plan/2" },
      { $0.checksum = "sha256:" + String(repeating: "0", count: 64) },
    ]
    for (number, edit) in edits.enumerated() {
      var edited = saved
      edit(&edited)
      #expect(try edited.obstacle() == "it was edited after it was saved", "edit \(number)")
    }
  }

  @Test("does not make a plan out of a redacted one, or of one of a device")
  func others() throws {
    let redacted = try document().redactingNames().checksummed()
    #expect(try redacted.obstacle() == "it was made with --redact, to be shown and not to be carried out")
    #expect(redacted.source.device == nil && redacted.source.deviceName == nil && redacted.target.name == "target")
    var device = document()
    device.source.kind = .device
    #expect(
      try device.checksummed().obstacle() == "it was made of family.backup itself, of which there was no backup yet")
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
