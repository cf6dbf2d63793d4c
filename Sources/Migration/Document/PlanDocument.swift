public import ArchivedKeychain
import KeychainFormats
import KeychainRules

/// A plan as a document: what `plan --json` prints and what a saved plan holds (format `migration-plan/1`). `PlanFile`
/// is the document with its checksum.
///
/// The planner never sees the identities in here; they are added for people, and for finding out later whether the
/// archive and the device are still the ones the plan was made for.
public struct PlanDocument: Sendable, Equatable {
  public static let formatName = "migration-plan/1"

  public var format = Self.formatName
  /// RFC 3339, UTC.
  public var made: String
  public var source: Source
  public var target: Target
  public var policy: ExistingItemPolicy
  public var summary: Summary
  public var items: [Item]
  public var removed: [Identity]
  /// Of an archive: what no count in here includes. Plans that were saved before there was this field have none.
  public var cannotShow: CannotShow?
  /// The names are taken out; such a document is no plan to carry out.
  public var redacted: Bool?

  /// What a backup cannot show (`UnseenItems`), as the archive's document says it.
  public struct CannotShow: Sendable, Equatable {
    public var sentence: String
    public var reasons: [String]

    public init() {
      sentence = UnseenItems.sentence
      reasons = UnseenItems.reasons.map(\.rawValue)
    }
  }

  public struct Source: Sendable, Equatable {
    public enum Kind: String, Sendable { case archive, device }

    public var kind: Kind
    /// As the person named it.
    public var name: String
    /// UDID of the device that made it, as the archive claims.
    public var device: String?
    public var made: String?
    public var deviceName: String?
    public var encrypted: Bool
    /// `sha256:` and 64 hexadecimal digits.
    public var digest: String

    public init(
      kind: Kind, name: String, device: String?, made: String?, deviceName: String?, encrypted: Bool, digest: String
    ) {
      self.kind = kind
      self.name = name
      self.device = device
      self.made = made
      self.deviceName = deviceName
      self.encrypted = encrypted
      self.digest = digest
    }
  }

  public struct Target: Sendable, Equatable {
    public var name: String
    public var sameDevice: Bool?
    public var claimsSameDevice: Bool
    public var state: String
    public var passcodeSet: Bool
    public var items: Int
    public var revision: String

    public init(
      name: String, sameDevice: Bool?, claimsSameDevice: Bool, state: String, passcodeSet: Bool, items: Int,
      revision: String
    ) {
      self.name = name
      self.sameDevice = sameDevice
      self.claimsSameDevice = claimsSameDevice
      self.state = state
      self.passcodeSet = passcodeSet
      self.items = items
      self.revision = revision
    }
  }

  public struct Summary: Sendable, Equatable {
    public var total: Int
    public var migrates: Int
    public var staysBehind: Int
    public var unreadable: Int
    public var removed: Int
    public var byReason: [String: Int]

    public init(_ summary: MigrationPlan.Summary) {
      total = summary.total
      migrates = summary.migrates
      staysBehind = summary.staysBehind
      unreadable = summary.unreadable
      removed = summary.removed
      byReason = Dictionary(uniqueKeysWithValues: summary.byReason.map { ($0.key.rawValue, $0.value) })
    }
  }

  public struct Identity: Sendable, Equatable {
    public var kind: String
    public var label: String?
    public var account: String?
    public var service: String?
    public var server: String?
    public var accessGroup: String?

    public init(_ identity: ItemIdentity) {
      kind = identity.kind.reportName
      label = identity.label
      account = identity.account
      service = identity.service
      server = identity.server
      accessGroup = identity.accessGroup
    }

    var isSealed: Bool { label == nil && account == nil && service == nil && server == nil }
  }

  public struct Item: Sendable, Equatable {
    public var index: Int
    public var identity: Identity
    public var protection: String?
    public var outcome: String
    public var change: String?
    public var reason: String?
    public var detail: String?

    public init(_ decision: MigrationPlan.Decision) {
      index = decision.index
      identity = Identity(decision.identity)
      protection = decision.protection?.rawValue
      detail = decision.detail
      switch decision.outcome {
      case .migrates(let change):
        outcome = "migrates"
        self.change = change.rawValue
      case .staysBehind(let reason):
        outcome = "stays-behind"
        self.reason = reason.rawValue
      case .unreadable(let reason):
        outcome = "unreadable"
        self.reason = reason.rawValue
      }
    }

    /// Whether both say the same of an item. What stays behind sealed may have a name in one of them alone: it is known
    /// where the key of the device that made the archive is at hand.
    func decides(as other: Item) -> Bool {
      guard outcome != "migrates", identity.isSealed || other.identity.isSealed else { return self == other }
      var named = other
      named.identity = identity
      return self == named && identity.kind == other.identity.kind
    }
  }

  public init(made: String, source: Source, target: Target, plan: MigrationPlan) {
    self.made = made
    self.source = source
    self.target = target
    policy = plan.policy
    summary = Summary(plan.summary)
    items = plan.decisions.map(Item.init)
    removed = plan.removed.map(Identity.init)
    cannotShow = source.kind == .archive ? CannotShow() : nil
  }

  /// A copy to show to others: without the names of the devices and the archive. The items' own names are taken out of
  /// the plan before (`MigrationPlan.redacted`).
  public func redactingNames() -> PlanDocument {
    var document = self
    document.redacted = true
    document.source.name = document.source.kind.rawValue
    document.source.device = nil
    document.source.deviceName = nil
    document.target.name = "target"
    return document
  }

  /// What differs between a saved plan and one made now, as one sentence; `nil` where they are the same plan.
  ///
  /// Compares every item, change and removal, not only the counts, so that an edited plan is refused as well.
  public func difference(from now: PlanDocument) -> String? {
    if format != now.format { return "its format is \(format), not \(now.format)" }
    if source.digest != now.source.digest { return "the archive is another one or has changed" }
    if target.name != now.target.name { return "it was made for \(target.name)" }
    if target.revision != now.target.revision {
      return "\(target.name) has changed since (revision \(target.revision), now \(now.target.revision))"
    }
    if policy != now.policy { return "it was made with --existing \(policy.rawValue)" }
    if target.sameDevice != now.target.sameDevice { return "it was made for another device" }
    if items.count != now.items.count { return "it lists \(items.count) items, the archive has \(now.items.count)" }
    if let index = items.indices.first(where: { !items[$0].decides(as: now.items[$0]) }) {
      return "item \(index) is decided differently now"
    }
    if removed != now.removed { return "other items would be removed" }
    if summary != now.summary { return "its summary does not fit its items" }
    return nil
  }
}
