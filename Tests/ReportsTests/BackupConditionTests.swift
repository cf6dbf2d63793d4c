import Backups
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Conditions of backups")
struct BackupConditionTests {
  @Test("The damage and the findings of a backup determine its condition")
  func kinds() {
    let falseClaim = BackupFinding.falseClaim(reason: "")
    let table: [(damage: [BackupDamage], findings: [BackupFinding], condition: BackupCondition)] = [
      ([], [], .usable),
      // A keychain file in XML can be read, and loses nothing.
      ([], [.keychainInXML], .usable),
      ([.statusMissing], [], .unconfirmed), ([.statusMissing], [.stateMissing], .unconfirmed),
      ([], [.decryptedCopy], .decryptedCopy),
      ([.finding(falseClaim)], [falseClaim], .changed), ([], [falseClaim, .decryptedCopy], .changed),
      ([.statusMissing], [falseClaim], .damaged), ([.keychainChanged], [], .damaged), ([.classKeys("")], [], .damaged),
      ([.statusMissing, .keychainChanged], [], .damaged), ([.statusMissing], [.decryptedCopy], .damaged),
      ([], [.listUnreadable(name: "Manifest.db", reason: "")], .damaged),
    ]
    for (damage, findings, condition) in table {
      #expect(
        BackupCondition(damage: damage, findings: findings.map(PlanDocument.Finding.init)) == condition,
        "\(damage) \(findings)")
    }
  }

  @Test(
    "A verdict has at most 15 words and 100 characters with any device name",
    arguments: [BackupCondition.unconfirmed, .changed, .damaged, .decryptedCopy])
  func verdictLength(condition: BackupCondition) throws {
    for name in ["phone", "a phone with a name of many words", String(repeating: "x", count: 300)] {
      let verdict = try #require(condition.verdict(deviceNames: [name, "the source device"]))
      #expect(verdict.split(separator: " ").count <= 15 && verdict.count <= 100, "\(verdict)")
      // Only a short name fits in the verdict. The verdict about a decrypted copy names no device.
      let isShort = name == "phone"
      #expect(condition == .decryptedCopy || verdict.contains(name) == isShort, "\(verdict)")
    }
    #expect(BackupCondition.usable.verdict(deviceNames: ["phone"]) == nil)
  }

  @Test(
    "The sentence about an unusable backup counts its items. It says that others may be missing, except in a decrypted copy"
  )
  func itemsSentence() {
    func sentence(_ condition: BackupCondition, count: Int, moving: Int, needsPassword: Bool = false) -> String? {
      condition.itemsSentence(count: count, moving: moving, to: "a new iPhone", needsPassword: needsPassword)
    }
    #expect(sentence(.usable, count: 3, moving: 2) == nil)
    #expect(sentence(.damaged, count: 0, moving: 0) == "No keychain item could be read in it.")
    #expect(
      sentence(.damaged, count: 3, moving: 2)
        == "2 of the 3 items in it could move to a new iPhone; others may be missing.")
    #expect(
      sentence(.damaged, count: 3, moving: 3)
        == "All 3 items in it could move to a new iPhone; others may be missing.")
    #expect(
      sentence(.damaged, count: 3, moving: 0)
        == "None of the 3 items in it could move to a new iPhone; others may be missing.")
    #expect(
      sentence(.decryptedCopy, count: 1, moving: 1) == "The only item in it could move to a new iPhone.")
    #expect(
      sentence(.unconfirmed, count: 3, moving: 0, needsPassword: true)
        == "None of the 3 items in it could move to a new iPhone, because it has no password; others may be missing.")
  }
}
