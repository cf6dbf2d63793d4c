import Backups
import KeychainFormats
import KeychainRules

@testable import KeyhaulKit

extension MigrationPlan.Decision {
  static func sample(
    _ index: Int, _ item: KeychainItem?, _ outcome: MigrationPlan.Outcome, _ detail: String? = nil,
    warning: ArrivalWarning? = nil
  ) -> MigrationPlan.Decision {
    MigrationPlan.Decision(
      index: index, identity: item.map(ItemDescriptor.init) ?? ItemDescriptor(undecryptable: .key),
      protection: item?.protection,
      outcome: outcome, detail: detail, warning: warning)
  }
}

extension PlanDocument {
  /// Returns a plan of four items with different outcomes.
  static func sample(
    sameDevice: Bool? = false, policy: ExistingItemPolicy = .replace, revision: String = "r17",
    name: String = "new-phone",
    digest: String = "sha256:" + String(repeating: "4f", count: 32), _ decisions: [MigrationPlan.Decision]? = nil,
    removed: [ItemDescriptor] = [ItemDescriptor(KeychainItem.password("gone"))]
  ) -> PlanDocument {
    let standard = [
      MigrationPlan.Decision.sample(0, .password("anna"), .migrates(.new), warning: .migratesButUnusable),
      MigrationPlan.Decision.sample(
        1, .password("b", .always), .migrates(.keepsExisting), "on the target: 2020-01-01; in the backup: 2021-01-01"),
      MigrationPlan.Decision.sample(2, .password("c", .whenUnlockedThisDeviceOnly), .staysBehind(.deviceBound)),
      MigrationPlan.Decision.sample(3, nil, .unreadable(.tagMismatch), "312 bytes at 7994"),
    ]
    return PlanDocument(
      planTime: "2026-11-21T09:12:44Z",
      source: .init(
        kind: .archive, name: "family.backup", device: "4C1F0A2B-9D3E5F60718293A4", backupDate: "2026-11-20T18:04:10Z",
        deviceName: "old-phone", encrypted: true, digest: digest),
      target: .init(
        name: name, sameDevice: sameDevice, claimsSameDevice: false, state: "unlocked", isPasscodeSet: true,
        itemCount: 2, revision: revision),
      plan: MigrationPlan(
        decisions: decisions ?? standard, removed: removed, policy: policy, isSameDevice: sameDevice, imports: [],
        removedRowCount: 0),
      limitation: PlanDocument.BackupLimitation(
        sentence: "A backup cannot show everything.", guidance: "Look.", reasons: [.passcodeOnly, .appClip]),
      notInBackup: PlanDocument.NotInBackup(
        SourceDeviceItems(
          device: "old-phone", revision: "r3", isProven: true,
          absent: [
            .init(identity: ItemDescriptor(.password("card")), protection: .whenUnlocked, reason: .appClip),
            .init(identity: ItemDescriptor(undecryptable: .key), protection: nil, reason: nil),
          ], includedCount: 4)))
  }
}
