package import Backups
import Basics
import KeychainFormats
package import KeychainRules

/// A plan as a document: the output of `plan --json` and the content of a saved plan (format `migration-plan/1`).
/// A saved plan also has a checksum of the document.
///
/// The planner does not use the names, identifiers and digests of the source and the target. They tell people what the
/// plan was made for, and a restore with the plan checks that it has the same backup and device.
public struct PlanDocument: Sendable, Equatable {
  /// The name of the format.
  package static let formatName = "migration-plan/1"

  /// The format of this document.
  package var format = Self.formatName
  /// The time of the plan, in RFC 3339 and UTC.
  package var planTime: String
  /// The backup or the device to restore from.
  package var source: Source
  /// The device to restore to, as it was when the plan was made.
  package var target: Target
  /// The treatment of the target's own items.
  package var policy: ExistingItemPolicy
  /// The number of items with each outcome.
  public var summary: Summary
  /// The decision for each item of the backup, in its order.
  public var items: [Item]
  /// The items of the target that the restore removes.
  package var removed: [Identity]
  /// The statement that every backup lacks some items of its device. No count of this document includes them. `nil` if
  /// the source is not a backup, and in plans of versions without this member.
  package var limitation: BackupLimitation?
  /// The items of the source device that are not in the backup; `nil` if the source is not a backup or its device was
  /// not available.
  package var notInBackup: NotInBackup?
  /// The remarks about a dump and its items; `nil` if the source is not a dump.
  package var dump: Dump?
  /// The maximum number of removed items that may be the last intact copies of items that the backup has lost. Each
  /// kind adds the number of its removed items or of its unreadable items, whichever is smaller. If the backup may have
  /// lost items without a trace, all removed items count.
  package var removedOnlyCopyCount = 0
  /// For a backup: anomalies that did not prevent the plan.
  package var findings: [Finding] = []
  /// Whether the names were removed. A redacted document cannot be restored from.
  package var redacted: Bool?

  /// The statement that every backup lacks some items of its device.
  package struct BackupLimitation: Sendable, Equatable {
    /// The sentence that also appears once in text reports and on pages.
    package var sentence: String
    /// The possible uses of the missing items, and what the user can do. `nil` in plans of versions without this member.
    package var guidance: String?
    /// The identifiers of all reasons why an item is in no backup.
    package var reasons: [String]

    /// Creates the statement.
    package init(sentence: String, guidance: String?, reasons: [Reason]) {
      self.sentence = sentence
      self.guidance = guidance
      self.reasons = reasons.map(\.rawValue)
    }
  }

  /// The source of the items: a backup, or a device or dump for which a backup is simulated.
  public struct Source: Sendable, Equatable {
    /// The kind of a plan's source.
    package enum Kind: String, Sendable {
      /// A backup.
      case archive
      /// A device, with a simulated backup.
      case device
      /// A dump of another tool, with a simulated backup of its device.
      case dump
    }

    /// The kind of the source.
    package var kind: Kind
    /// The name that the user typed.
    public var name: String
    /// The UDID of the source device, according to the backup.
    public var device: String?
    /// The date of the backup, in RFC 3339 and UTC; `nil` if the backup has none.
    package var backupDate: String?
    /// The name that the owner gave the device; `nil` if the backup does not contain a name.
    package var deviceName: String?
    /// Whether the backup has a password.
    public var encrypted: Bool
    /// The digest of the source, which shows whether it has changed: `sha256:` and 64 hexadecimal digits.
    package var digest: String

    /// Creates a source.
    package init(
      kind: Kind, name: String, device: String?, backupDate: String?, deviceName: String?, encrypted: Bool,
      digest: String
    ) {
      self.kind = kind
      self.name = name
      self.device = device
      self.backupDate = backupDate
      self.deviceName = deviceName
      self.encrypted = encrypted
      self.digest = digest
    }
  }

  /// The device to restore to.
  package struct Target: Sendable, Equatable {
    /// The name of the virtual device.
    package var name: String
    /// Whether the target is the source device, according to its device key; `nil` if the items do not show it
    /// (`MigrationPlan.isSameDevice`).
    package var sameDevice: Bool?
    /// Whether the target has the identifier of the source device. Decisions do not depend on this.
    package var claimsSameDevice: Bool
    /// The lock state, as in `device show`.
    package var state: String
    /// Whether a passcode is set.
    package var isPasscodeSet: Bool
    /// The number of items in the target's keychain.
    package var itemCount: Int
    /// The revision, which a restore compares to detect a stale plan.
    package var revision: String
    /// Whether the device does not exist. Such a plan cannot be carried out.
    package var isHypothetical: Bool

    /// The target without the name that a user gave it.
    package var redacted: Target {
      var target = self
      if !isHypothetical { target.name = "target" }
      return target
    }

    /// Creates a target.
    package init(
      name: String, sameDevice: Bool?, claimsSameDevice: Bool, state: String, isPasscodeSet: Bool, itemCount: Int,
      revision: String, isHypothetical: Bool = false
    ) {
      self.isHypothetical = isHypothetical
      self.name = name
      self.sameDevice = sameDevice
      self.claimsSameDevice = claimsSameDevice
      self.state = state
      self.isPasscodeSet = isPasscodeSet
      self.itemCount = itemCount
      self.revision = revision
    }
  }

  /// The number of items with each outcome.
  public struct Summary: Sendable, Equatable {
    /// Items of the backup.
    package var total: Int
    /// Items that arrive, and items that the target already has in the same or a newer version.
    public var migrates: Int
    /// Items that a rule or a key excludes.
    public var staysBehind: Int
    /// Items that are damaged in this backup.
    package var unreadable: Int
    /// Items of the target that the restore removes.
    package var removed: Int
    /// Items that stay behind or are unreadable, by the identifier of the reason.
    package var byReason: [String: Int]
    /// Items that arrive with a warning, by the identifier of the warning.
    package var byWarning: [String: Int]

    /// Creates the counts of a plan.
    package init(_ summary: MigrationPlan.Summary) {
      total = summary.total
      migrates = summary.migrates
      staysBehind = summary.staysBehind
      unreadable = summary.unreadable
      removed = summary.removed
      byReason = Dictionary(uniqueKeysWithValues: summary.byReason.map { ($0.key.rawValue, $0.value) })
      byWarning = Dictionary(uniqueKeysWithValues: summary.byWarning.map { ($0.key.rawValue, $0.value) })
    }
  }

  /// The decision about an item.
  public struct Item: Sendable, Equatable {
    /// The item's index in the backup, from 0.
    public var index: Int
    /// The item's names.
    package var identity: Identity
    /// The code of the protection class; `nil` if it is unknown.
    public var protection: String?
    /// `migrates`, `stays-behind` or `unreadable`.
    package var outcome: ItemFate
    /// The item's effect on the target; `nil` if the item does not arrive.
    package var change: String?
    /// The reason why the item does not arrive; `nil` if it arrives.
    public var reason: String?
    /// An additional fact; never a value of the item.
    package var detail: String?
    /// A reason why the item may be unusable on the target; `nil` if there is none or the item does not arrive.
    package var warning: String?

    /// Creates the document's form of a decision.
    package init(_ decision: MigrationPlan.Decision) {
      index = decision.index
      identity = Identity(decision.identity)
      protection = decision.protection?.rawValue
      detail = decision.detail
      warning = decision.warning?.rawValue
      outcome = decision.outcome.fate
      change = decision.outcome.change?.rawValue
      reason = decision.outcome.reason?.rawValue
    }

    /// Returns whether both decisions about an item are the same.
    ///
    /// The names of an encrypted item are known only if the source device's key is available. If they are in only one of
    /// the decisions, they are ignored. An item that migrates is decrypted, so its names must be the same.
    func isSameDecision(as other: Item) -> Bool {
      guard outcome != .migrates, identity.isNameless || other.identity.isNameless else { return self == other }
      var otherWithSameNames = other
      otherWithSameNames.identity = identity
      return self == otherWithSameNames && identity.kind == other.identity.kind
    }
  }

  /// Creates the document of a plan.
  ///
  /// - Parameters:
  ///   - planTime: The time of the plan, in RFC 3339 and UTC.
  ///   - source: The backup or the device that the plan was made from.
  ///   - target: The device that the plan was made for.
  ///   - plan: The decisions.
  ///   - limitation: The statement about items that are in no backup; `nil` if the source is not a backup.
  ///   - notInBackup: The items of the source device that are not in the backup; `nil` if the device was not available.
  ///   - dump: The remarks about a dump; `nil` if the source is not a dump.
  ///   - findings: Anomalies of the backup that did not prevent the plan.
  package init(
    planTime: String, source: Source, target: Target, plan: MigrationPlan, limitation: BackupLimitation?,
    notInBackup: NotInBackup? = nil, dump: Dump? = nil, findings: [BackupFinding] = []
  ) {
    removedOnlyCopyCount = plan.removedOnlyCopyCount
    self.findings = findings.map(Finding.init)
    self.planTime = planTime
    self.source = source
    self.target = target
    policy = plan.policy
    summary = Summary(plan.summary)
    items = plan.decisions.map(Item.init)
    removed = plan.removed.map(Identity.init)
    self.limitation = limitation
    self.notInBackup = notInBackup
    self.dump = dump
  }

  /// Returns a copy without the names of the devices and the backup. The items' names were already removed from the
  /// plan (`MigrationPlan.redacted`).
  package func redactingNames() -> PlanDocument {
    var document = self
    document.redacted = true
    document.findings = findings.map(\.redacted)
    document.source.name = document.source.kind.rawValue
    document.source.device = nil
    document.source.deviceName = nil
    document.target = target.redacted
    return document
  }
}

extension PlanDocument {
  /// Returns the difference between a saved plan and a current one as one sentence; `nil` if they are the same.
  ///
  /// Every item, change and removal is compared, not only the counts, so that an edited plan is refused as well.
  package func difference(from current: PlanDocument) -> String? {
    if format != current.format { return "its format is \(format), not \(current.format)" }
    if source.digest != current.source.digest { return "it was made from another backup, or the backup has changed" }
    if target.name != current.target.name { return "it was made for \(target.name)" }
    if target.revision != current.target.revision {
      return "\(target.name) has changed since (revision \(target.revision), now \(current.target.revision))"
    }
    if policy != current.policy {
      return "it was made for a restore that \(policy == .replace ? "replaces" : "merges with") the existing items"
    }
    if target.sameDevice != current.target.sameDevice { return "it was made for another device" }
    guard let difference = decisionDifference(from: current) else { return nil }
    guard target.state != current.target.state else { return difference }
    return "it was made while \(target.name) was \(Self.description(ofState: target.state)): \(difference)"
  }

  private static func description(ofState state: String) -> String {
    state == "before-first-unlock" ? "not yet unlocked" : state
  }

  /// Returns a difference between the decisions about items, or between the items to remove; `nil` if there is none.
  private func decisionDifference(from current: PlanDocument) -> String? {
    if items.count != current.items.count {
      return "it lists \(items.count) items, but the backup has \(current.items.count)"
    }
    if let index = items.indices.first(where: { !items[$0].isSameDecision(as: current.items[$0]) }) {
      return "the decision on item \(index) is different now"
    }
    if removed != current.removed {
      let lacksNames = removed.count == current.removed.count && removed.contains(where: \.isNameless)
      return lacksNames
        ? "it does not name all items that would be removed" : "different items would be removed now"
    }
    if summary != current.summary { return "its summary does not match its items" }
    return nil
  }
}
