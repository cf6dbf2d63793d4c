import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import KeyhaulKit

@Suite("Checksums of saved plans")
struct PlanChecksumTests {
  private func text(_ document: PlanDocument) throws -> String {
    String(decoding: try PlanFile.bytes(of: document), as: UTF8.self)
  }

  private func file(_ text: String) throws -> PlanFile { try PlanFile(parsing: Array(text.utf8)) }

  /// Returns the text with its checksum, which this test computes without the library.
  private func withChecksum(_ text: String) throws -> String {
    let digits = try #require(text.matches(of: /sha256:([0-9a-f]{64})"\n}\n$/).last?.output.1)
    let covered = Array(text[..<digits.startIndex].utf8) + Array(text[digits.endIndex...].utf8)
    return try text.replacingCharacters(in: digits.startIndex..<digits.endIndex, with: Digest.sha256(covered).hex)
  }

  @Test("The checksum is the last member and covers every byte except its own digits")
  func matches() throws {
    let saved = try text(PlanDocument.sample())
    #expect(PlanDocument.sample().json["checksum"] == nil)
    #expect(saved.contains(/,\n  "checksum": "sha256:[0-9a-f]{64}"\n}\n$/))
    #expect(try file(saved).obstacle == nil && file(saved).document == PlanDocument.sample())
    #expect(try withChecksum(saved) == saved)
    #expect(try file("\u{FEFF}" + saved).obstacle == nil, "a byte order mark does not change the plan")
    #expect(try file(PlanDocument.sample().json.text()).obstacle == "it has no checksum")
  }

  @Test("The checksum matches a plan that is written in many chunks")
  func chunks() throws {
    var plan = PlanDocument.sample()
    plan.items = Array(repeating: plan.items, count: 500).flatMap(\.self)
    for removed in [[], Array(repeating: plan.removed, count: 700).flatMap(\.self)] {
      plan.removed = removed
      var chunks: [[UInt8]] = []
      try PlanFile.forEachChunk(of: plan, translating: \.self) { (chunk) throws(KeyhaulError) in
        chunks.append(Array(chunk))
      }
      let saved = String(decoding: chunks.joined(), as: UTF8.self)
      #expect(chunks.count > 4 && chunks.allSatisfy { $0.count < 50_000 })
      #expect(try withChecksum(saved) == saved && saved == text(plan))
      #expect(try file(saved).document == plan && file(saved).obstacle == nil)
    }
  }

  @Test("The checksum matches a plan with findings and a count of only copies")
  func findings() throws {
    var plan = PlanDocument.sample()
    plan.findings = [
      .init(.listDamaged(readable: 3, lost: nil, reason: "a page is garbled")), .init(.versionMissing),
    ]
    plan.removedOnlyCopyCount = 2
    let saved = try text(plan)
    #expect(saved.contains(#""removed_only_copies": 2"#) && saved.contains(#""id": "list-damaged""#))
    #expect(try file(saved).document == plan && file(saved).obstacle == nil)
    #expect(plan.redactingNames().findings.map(\.detail) == ["list-damaged", "version-missing"])
  }

  @Test("The checksum does not match after any change of a value")
  func edits() throws {
    let saved = try text(PlanDocument.sample())
    let checksum = try #require(saved.firstMatch(of: /"checksum": "[^"]*"/))
    let edits: [(inout PlanDocument) -> Void] = [
      { $0.policy = .merge }, { $0.planTime = "2020-01-01T00:00:00Z" }, { $0.source.name = "x" },
      { $0.source.kind = .device }, { $0.source.device = nil }, { $0.source.backupDate = nil },
      { $0.source.deviceName = "" }, { $0.source.encrypted = false }, { $0.source.digest += "0" },
      { $0.target.name = "x" },
      { $0.target.sameDevice = nil }, { $0.target.claimsSameDevice = true }, { $0.target.state = "locked" },
      { $0.target.isPasscodeSet = false }, { $0.target.itemCount = 3 }, { $0.target.revision = "r1" },
      { $0.summary.total = 5 }, { $0.summary.byReason["deleted"] = 0 }, { $0.summary.byReason = [:] },
      { $0.items.swapAt(0, 1) }, { $0.items.removeLast() }, { $0.items[0].detail = "" },
      { $0.items[0].identity.label = "" }, { $0.items[1].identity.account = nil }, { $0.items[3].protection = "ak" },
      { $0.removed = [] }, { $0.removed[0].service = nil },
    ]
    for (number, edit) in edits.enumerated() {
      var edited = PlanDocument.sample()
      edit(&edited)
      let stale = try text(edited).replacing(/"checksum": "[^"]*"/, with: { _ in checksum.output })
      #expect(stale != saved)
      #expect(try file(stale).obstacle == PlanFile.wrongChecksum, "edit \(number)")
      #expect(try file(withChecksum(stale)).obstacle == nil || edited.source.kind == .device, "edit \(number)")
    }
  }

  @Test("The checksum does not match after any change of layout, order or white space")
  func layout() throws {
    let saved = try text(PlanDocument.sample())
    let edits = [
      saved + "\n", " " + saved, String(saved.dropLast()), saved.replacing("\n", with: "\r\n"),
      saved.replacing("\"made\": ", with: "\"made\":"), saved.replacing("family", with: "f\\u0061mily"),
      saved.replacing(/(  "format": [^\n]*\n)(  "made": [^\n]*\n)/, with: { String($0.2 + $0.1) }),
      saved.replacing(/"sha256:[0-9a-f]{64}"\n}\n$/, with: "\"sha256:" + String(repeating: "0", count: 64) + "\"\n}\n"),
      saved.replacing("\n  \"checksum\"", with: "\n   \"checksum\""),
    ]
    for edited in edits {
      #expect(edited != saved)
      #expect(try file(edited).obstacle == PlanFile.wrongChecksum, "\(edited)")
    }
    var bytes = Array(saved.utf8)
    for index in stride(from: 0, to: bytes.count, by: 7) {
      bytes[index] ^= 1
      defer { bytes[index] ^= 1 }
      guard let edited = try? PlanFile(parsing: bytes) else { continue }
      #expect(edited.obstacle != nil, "byte \(index)")
    }
  }

  static let additions: [(old: String, new: String, reason: String)] = [
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

  @Test("An added member breaks the checksum, and is refused even with a matching checksum")
  func additions() throws {
    let saved = try text(PlanDocument.sample())
    for (old, new, reason) in Self.additions {
      let edited = saved.replacing(old, with: new, maxReplacements: 1)
      #expect(edited != saved, "\(old)")
      let stale = #expect(throws: KeyhaulError.self) { try file(edited) }
      #expect(stale?.code == .stalePlan && stale?.reason == PlanFile.wrongChecksum)
      let refused = #expect(throws: KeyhaulError.self) { try file(withChecksum(edited)) }
      #expect(refused?.code == .malformedPlan && refused?.reason == reason, "\(refused?.reason ?? "read")")
    }
    let duplicate = saved.replacing(
      "{\n  \"format\"", with: "{\n  \"made\": \"now\",\n  \"format\"", maxReplacements: 1)
    #expect(throws: KeyhaulError.self) { try file(withChecksum(duplicate)) }
  }

  @Test("The checksum of an earlier version does not match, and the error explains it")
  func earlierVersion() throws {
    // The earlier format had a checksum of only the values.
    let digits = String(repeating: "6a", count: 32)
    let earlierPlan = try text(PlanDocument.sample())
      .replacing(/sha256:[0-9a-f]{64}"\n}\n$/, with: "sha256:\(digits)\"\n}\n")
    #expect(
      try file(earlierPlan).obstacle == "it was edited after it was saved, or an earlier version of Keyhaul saved it")
  }

  @Test("Other formats are not accepted as plans and need no checksum")
  func otherFormats() throws {
    let later = try text(PlanDocument.sample()).replacing("migration-plan/1", with: "migration-plan/2")
    let error = #expect(throws: KeyhaulError.self) { try file(later) }
    #expect(
      error?.code == .otherPlanFormat
        && error?.reason == "its format is migration-plan/2; Keyhaul reads migration-plan/1"
    )
    for text in ["", "{}", "[]", "x", "{\"format\": 1}", "{\"format\": \"migration-plan/1\"}"] {
      #expect(throws: KeyhaulError.self) { try file(text) }
    }
  }

  @Test("A redacted plan and a plan of a device cannot be carried out, even with a checksum")
  func notExecutable() throws {
    let redacted = PlanDocument.sample().redactingNames()
    #expect(
      try file(text(redacted)).obstacle == "its names were left out, so it can be shown but not carried out")
    #expect(redacted.source.device == nil && redacted.source.deviceName == nil && redacted.target.name == "target")
    var device = PlanDocument.sample()
    device.source.kind = .device
    #expect(
      try file(text(device)).obstacle == "it was made from family.backup itself, not from a backup")
  }
}
