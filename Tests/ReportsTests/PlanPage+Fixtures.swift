import Backups
import KeychainFormats
import KeychainRules

@testable import KeyhaulKit
@testable import Reports

typealias Decision = MigrationPlan.Decision

extension PlanPage {
  /// Creates the page of a plan, by default of a move to another phone.
  static func make(
    _ decisions: [Decision], removed: [ItemDescriptor] = [], policy: ExistingItemPolicy = .replace,
    from name: String = "family.backup", device: String? = "old-phone", to target: String = "new-phone",
    isEncrypted: Bool = true, isSameDevice: Bool? = false, kind: PlanDocument.Source.Kind = .archive,
    state: String = "unlocked", targetArgument: String? = nil, apps: AppDirectory = AppDirectory([]),
    findings: [BackupFinding] = [], isRedacted: Bool = false
  ) -> PlanPage {
    var plan = MigrationPlan(
      decisions: decisions, removed: removed, policy: policy, isSameDevice: isSameDevice, imports: [],
      removedRowCount: 0)
    if isRedacted { plan = plan.redacted }
    let document = PlanDocument(
      planTime: "2026-11-21T09:12:44Z",
      source: PlanDocument.Source(
        kind: kind, name: name, device: nil, backupDate: "2026-11-20T18:04:10Z", deviceName: device,
        encrypted: isEncrypted, digest: "sha256:" + String(repeating: "4f", count: 32)),
      target: PlanDocument.Target(
        name: target, sameDevice: isSameDevice, claimsSameDevice: false, state: state, isPasscodeSet: true,
        itemCount: 2, revision: "r17"),
      plan: plan, limitation: nil, findings: findings)
    return PlanPage(
      plan, as: isRedacted ? document.redactingNames() : document, apps: isRedacted ? AppDirectory([]) : apps,
      sourceArgument: name, targetArgument: targetArgument ?? target, program: "keyhaul 1.0")
  }
}

/// Creates a decision about a generic password.
func decision(
  _ index: Int, _ outcome: MigrationPlan.Outcome, service: String? = "chat.example", account: String? = "anna",
  group: String? = "ABCDE12345.org.example.chat", protection: ProtectionClass? = .whenUnlocked, detail: String? = nil
) -> Decision {
  var identity = ItemDescriptor(undecryptable: .genericPassword, accessGroup: group)
  identity.service = service
  identity.account = account
  return Decision(index: index, identity: identity, protection: protection, outcome: outcome, detail: detail)
}

/// Creates a decision about an encrypted item.
func encryptedDecision(
  _ index: Int, _ outcome: MigrationPlan.Outcome, _ protection: ProtectionClass? = nil
) -> Decision {
  decision(index, outcome, service: nil, account: nil, group: nil, protection: protection)
}

/// Creates the identity of a generic password.
func identity(_ service: String) -> ItemDescriptor {
  var identity = ItemDescriptor(undecryptable: .genericPassword)
  identity.service = service
  return identity
}

/// A decision for every possible outcome.
let allOutcomes: [Decision] =
  [MigrationPlan.Change.new, .replaces, .keepsExisting, .identical].enumerated().map { decision($0, .migrates($1)) }
  + Reason.allCases.enumerated().map { index, reason in
    decision(
      10 + index, reason.isDamage ? .unreadable(reason) : .staysBehind(reason), protection: .alwaysThisDeviceOnly,
      detail: "312 bytes at 7,994")
  } + [encryptedDecision(40, .staysBehind(.deviceBound)), encryptedDecision(41, .unreadable(.malformed))]
