import Backups
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Conditions of backups")
struct BackupConditionTests {
  private func condition(_ damage: [BackupDamage], _ findings: [BackupFinding] = []) -> BackupCondition {
    BackupCondition(damage: damage, findings: findings.map(PlanDocument.Finding.init))
  }

  @Test("A backup with several anomalies counts as damaged, unless they are all harmless changes")
  func kinds() {
    #expect(condition([]) == .usable)
    // A keychain file in XML can be read, and loses nothing.
    #expect(condition([], [.keychainInXML]) == .usable)
    #expect(condition([.statusMissing]) == .unconfirmed && condition([.statusMissing], [.stateMissing]) == .unconfirmed)
    #expect(condition([], [.decryptedCopy]) == .decryptedCopy)
    #expect(condition([.finding(.falseClaim(reason: ""))], [.falseClaim(reason: "")]) == .changed)
    #expect(condition([], [.falseClaim(reason: ""), .decryptedCopy]) == .changed)
    #expect(condition([.statusMissing], [.falseClaim(reason: "")]) == .damaged)
    #expect(condition([.keychainChanged]) == .damaged && condition([.classKeys("")]) == .damaged)
    #expect(condition([.statusMissing, .keychainChanged]) == .damaged)
    #expect(condition([.statusMissing], [.decryptedCopy]) == .damaged)
    #expect(condition([], [.listUnreadable(name: "Manifest.db", reason: "")]) == .damaged)
  }

  @Test(
    "A verdict has at most 15 words, regardless of the device's name",
    arguments: [BackupCondition.unconfirmed, .changed, .damaged, .decryptedCopy])
  func verdictLength(condition: BackupCondition) throws {
    for name in ["phone", "a phone with a name of many words", String(repeating: "x", count: 300)] {
      let verdict = try #require(condition.verdict(shortest: [name, "the source device"]))
      #expect(verdict.split(separator: " ").count <= 15 && verdict.count <= 100, "\(verdict)")
      #expect(condition == .decryptedCopy || verdict.contains(name) == (name == "phone"), "\(verdict)")
    }
    #expect(BackupCondition.usable.verdict(shortest: ["phone"]) == nil)
  }

  @Test("The sentence about a damaged backup counts only its items, and states that others may be missing")
  func itemsSentence() {
    func text(_ condition: BackupCondition, _ count: Int, _ moving: Int, needsPassword: Bool = false) -> String? {
      condition.itemsSentence(count: count, moving: moving, to: "a new iPhone", needsPassword: needsPassword)
    }
    #expect(text(.usable, 3, 2) == nil)
    #expect(text(.damaged, 0, 0) == "No keychain item could be read in it.")
    #expect(text(.damaged, 3, 2) == "2 of the 3 items in it could move to a new iPhone; others may be missing.")
    #expect(text(.damaged, 3, 3) == "All 3 items in it could move to a new iPhone; others may be missing.")
    #expect(text(.damaged, 3, 0) == "None of the 3 items in it could move to a new iPhone; others may be missing.")
    #expect(text(.decryptedCopy, 1, 1) == "The only item in it could move to a new iPhone.")
    #expect(
      text(.unconfirmed, 3, 0, needsPassword: true)
        == "None of the 3 items in it could move to a new iPhone, because it has no password; others may be missing.")
  }
}
