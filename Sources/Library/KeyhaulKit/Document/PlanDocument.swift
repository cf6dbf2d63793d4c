public import Backups
import Basics
import KeychainFormats
public import KeychainRules

/// A plan as a document: what `plan --json` prints and what a saved plan holds (format `migration-plan/1`). `PlanFile`
/// is the document with its checksum.
///
/// The planner never sees the identities in here; they are added for people, and for finding out later whether the
/// archive and the device are still the ones the plan was made for.
public struct PlanDocument: Sendable, Equatable {
  /// The format's name, as the document and its schema spell it.
  public static let formatName = "migration-plan/1"

  /// The format of this document.
  public var format = Self.formatName
  /// RFC 3339, UTC.
  public var made: String
  /// The archive or the device that would be restored from.
  public var source: Source
  /// The device that would be restored to, as it was when the plan was made.
  public var target: Target
  /// What happens to the target's own items.
  public var policy: ExistingItemPolicy
  /// The decisions, counted.
  public var summary: Summary
  /// One decision for each item of the archive, in its order.
  public var items: [Item]
  /// Items of the target that are gone afterwards.
  public var removed: [Identity]
  /// Of an archive: what no count in here includes. Plans that were saved before there was this field have none.
  public var cannotShow: CannotShow?
  /// Of an archive whose device was available: what that has besides.
  public var notInBackup: NotInBackup?
  /// Of a dump: in which form its items were, and what nobody can tell of them.
  public var dump: Dump?
  /// How many of the removed items may be the only good copies of what the archive has lost: of each kind no more than
  /// cannot be read in it, or all where items may be missing that nothing names.
  public var removedOnlyCopies = 0
  /// Of an archive: what of it is not as a device leaves it, and was gone around.
  public var findings: [Finding] = []
  /// The names are taken out; such a document is not a plan to carry out.
  public var redacted: Bool?

  /// What a backup cannot show, as the archive's document says it.
  public struct CannotShow: Sendable, Equatable {
    /// The sentence that the text and the page have once.
    public var sentence: String
    /// What such items may be for, and what to do; plans that were saved before there was this field have none.
    public var guidance: String?
    /// The reasons for which an item is in no backup, by their identifiers.
    public var reasons: [String]

    /// Creates what is said of every backup.
    public init(sentence: String, guidance: String?, reasons: [Reason]) {
      self.sentence = sentence
      self.guidance = guidance
      self.reasons = reasons.map(\.rawValue)
    }
  }

  /// The archive, or the device of which a backup is only thought.
  public struct Source: Sendable, Equatable {
    /// A backup, or a device or a dump that was asked what a backup would hold.
    public enum Kind: String, Sendable {
      /// A backup that was opened.
      case archive
      /// A device, by the forecast of a backup.
      case device
      /// Another tool's dump, by the forecast of a backup of the device that it is of.
      case dump
    }

    /// Which of them it is.
    public var kind: Kind
    /// As the person named it.
    public var name: String
    /// UDID of the device that made it, as the archive claims.
    public var device: String?
    /// When the backup was made, in RFC 3339 and UTC; `nil` where it doesn't say.
    public var made: String?
    /// The name that its owner gave the device; `nil` where the archive doesn't say.
    public var deviceName: String?
    /// Whether the backup has a password.
    public var encrypted: Bool
    /// `sha256:` and 64 hexadecimal digits.
    public var digest: String

    /// Creates a source as it stands in the document.
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

  /// The device that would be restored to.
  public struct Target: Sendable, Equatable {
    /// The name of the virtual device.
    public var name: String
    /// Whether its hardware is that of the archive's device, proven class by class; `nil` where nothing proves it or
    /// not all.
    public var sameDevice: Bool?
    /// Whether both name the same identifier, which decides nothing.
    public var claimsSameDevice: Bool
    /// The lock state, as `device show` says it.
    public var state: String
    /// Whether a passcode is set.
    public var passcodeSet: Bool
    /// How many rows its keychain has.
    public var items: Int
    /// The revision, which a restore compares to tell whether the plan is stale.
    public var revision: String
    /// Whether there is no such device: one is only thought of, and the document is not a plan to carry out.
    public var isImagined: Bool

    /// To show to others: without a name that somebody gave it.
    package var redacted: Target {
      var target = self
      if !isImagined { target.name = "target" }
      return target
    }

    /// Creates a target as it stands in the document.
    public init(
      name: String, sameDevice: Bool?, claimsSameDevice: Bool, state: String, passcodeSet: Bool, items: Int,
      revision: String, isImagined: Bool = false
    ) {
      self.isImagined = isImagined
      self.name = name
      self.sameDevice = sameDevice
      self.claimsSameDevice = claimsSameDevice
      self.state = state
      self.passcodeSet = passcodeSet
      self.items = items
      self.revision = revision
    }
  }

  /// How many items have which fate.
  public struct Summary: Sendable, Equatable {
    /// Items of the archive.
    public var total: Int
    /// Items that arrive, or are there already as they are or newer.
    public var migrates: Int
    /// Items that a rule or a key leaves out.
    public var staysBehind: Int
    /// Items that are damaged in this copy.
    public var unreadable: Int
    /// Items of the target that are gone afterwards.
    public var removed: Int
    /// What stays behind or is unreadable, by the identifier of its reason.
    public var byReason: [String: Int]
    /// What arrives and is warned of, by the word of the warning.
    public var byWarning: [String: Int]

    /// Creates the counts of a plan.
    public init(_ summary: MigrationPlan.Summary) {
      total = summary.total
      migrates = summary.migrates
      staysBehind = summary.staysBehind
      unreadable = summary.unreadable
      removed = summary.removed
      byReason = Dictionary(uniqueKeysWithValues: summary.byReason.map { ($0.key.rawValue, $0.value) })
      byWarning = Dictionary(uniqueKeysWithValues: summary.byWarning.map { ($0.key.rawValue, $0.value) })
    }
  }

  /// One decision.
  public struct Item: Sendable, Equatable {
    /// The item's position in the archive, from 0.
    public var index: Int
    /// The item's names.
    public var identity: Identity
    /// The code of the protection class; `nil` where the blob doesn't say.
    public var protection: String?
    /// `migrates`, `stays-behind` or `unreadable`.
    public var outcome: ItemFate
    /// What it does on the target, where it arrives.
    public var change: String?
    /// Why it does not arrive, where it doesn't.
    public var reason: String?
    /// A fact worth showing with it; never a value of the item.
    public var detail: String?
    /// What is known against its use there, where it arrives.
    public var warning: String?

    /// Creates a decision as the document has it.
    public init(_ decision: MigrationPlan.Decision) {
      index = decision.index
      identity = Identity(decision.identity)
      protection = decision.protection?.rawValue
      detail = decision.detail
      warning = decision.warning?.rawValue
      outcome = decision.outcome.fate
      change = decision.outcome.change?.rawValue
      reason = decision.outcome.reason?.rawValue
    }

    /// Whether both say the same of an item. What stays behind sealed may have a name in one of them alone: it is known
    /// where the key of the device that made the archive is available.
    func decides(as other: Item) -> Bool {
      guard outcome != .migrates, identity.isSealed || other.identity.isSealed else { return self == other }
      var named = other
      named.identity = identity
      return self == named && identity.kind == other.identity.kind
    }
  }

  /// Creates the document of a plan.
  ///
  /// - Parameters:
  ///   - made: The time of the plan, in RFC 3339 and UTC.
  ///   - source: The archive or the device that the plan was made of.
  ///   - target: The device that it was made for.
  ///   - plan: The decisions.
  ///   - cannotShow: Of a plan of an archive; a device shows all that it has.
  ///   - notInBackup: What the device that made the archive has besides, where it was available.
  ///   - dump: Of a plan of a dump, what is said of it.
  ///   - findings: What of the archive was gone around.
  public init(
    made: String, source: Source, target: Target, plan: MigrationPlan, cannotShow: CannotShow?,
    notInBackup: NotInBackup? = nil, dump: Dump? = nil, findings: [ArchiveFinding] = []
  ) {
    removedOnlyCopies = plan.removedOnlyCopies
    self.findings = findings.map(Finding.init)
    self.made = made
    self.source = source
    self.target = target
    policy = plan.policy
    summary = Summary(plan.summary)
    items = plan.decisions.map(Item.init)
    removed = plan.removed.map(Identity.init)
    self.cannotShow = cannotShow
    self.notInBackup = notInBackup
    self.dump = dump
  }

  /// A copy to show to others: without the names of the devices and the archive. The items' own names are taken out of
  /// the plan before (`MigrationPlan.redacted`).
  public func redactingNames() -> PlanDocument {
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
