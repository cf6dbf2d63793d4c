package import Backups
package import Basics
import KeychainFormats
package import KeychainRules

/// A plan as a document: what `plan --json` prints and what a saved plan holds (format `migration-plan/1`). `PlanFile`
/// is the document with its checksum.
///
/// The planner never sees the identities in here; they are added for people, and for finding out later whether the
/// archive and the device are still the ones the plan was made for.
public struct PlanDocument: Sendable, Equatable {
  /// The format's name, as the document and its schema spell it.
  package static let formatName = "migration-plan/1"

  /// The format of this document.
  package var format = Self.formatName
  /// RFC 3339, UTC.
  package var made: String
  /// The archive or the device that would be restored from.
  package var source: Source
  /// The device that would be restored to, as it was when the plan was made.
  package var target: Target
  /// What happens to the target's own items.
  package var policy: ExistingItemPolicy
  /// The decisions, counted.
  public var summary: Summary
  /// One decision for each item of the archive, in its order.
  public var items: [Item]
  /// Items of the target that are gone afterwards.
  package var removed: [Identity]
  /// Of an archive: what no count in here includes. Plans that were saved before there was this field have none.
  package var limitation: BackupLimitation?
  /// Of an archive whose device was available: what that has besides.
  package var notInBackup: NotInBackup?
  /// Of a dump: in which form its items were, and what nobody can tell of them.
  package var dump: Dump?
  /// How many of the removed items may be the only good copies of what the archive has lost: of each kind no more than
  /// cannot be read in it, or all where items may be missing that nothing names.
  package var removedOnlyCopies = 0
  /// Of an archive: what of it is not as a device leaves it, and was gone around.
  package var findings: [Finding] = []
  /// The names are taken out; such a document is not a plan to carry out.
  package var redacted: Bool?

  /// What a backup cannot show, as the archive's document says it.
  package struct BackupLimitation: Sendable, Equatable {
    /// The sentence that the text and the page have once.
    package var sentence: String
    /// What such items may be for, and what to do; plans that were saved before there was this field have none.
    package var guidance: String?
    /// The reasons for which an item is in no backup, by their identifiers.
    package var reasons: [String]

    /// Creates what is said of every backup.
    package init(sentence: String, guidance: String?, reasons: [Reason]) {
      self.sentence = sentence
      self.guidance = guidance
      self.reasons = reasons.map(\.rawValue)
    }
  }

  /// The archive, or the device of which a backup is only thought.
  public struct Source: Sendable, Equatable {
    /// A backup, or a device or a dump that was asked what a backup would hold.
    package enum Kind: String, Sendable {
      /// A backup that was opened.
      case archive
      /// A device, by the forecast of a backup.
      case device
      /// Another tool's dump, by the forecast of a backup of the device that it is of.
      case dump
    }

    /// Which of them it is.
    package var kind: Kind
    /// As the person named it.
    public var name: String
    /// UDID of the device that made it, as the archive claims.
    public var device: String?
    /// When the backup was made, in RFC 3339 and UTC; `nil` if it doesn't say.
    package var made: String?
    /// The name that its owner gave the device; `nil` if the archive doesn't say.
    package var deviceName: String?
    /// Whether the backup has a password.
    public var encrypted: Bool
    /// `sha256:` and 64 hexadecimal digits.
    package var digest: String

    /// Creates a source as it stands in the document.
    package init(
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
  package struct Target: Sendable, Equatable {
    /// The name of the virtual device.
    package var name: String
    /// Whether its hardware is that of the archive's device, proven class by class; `nil` if nothing proves it or
    /// not all.
    package var sameDevice: Bool?
    /// Whether both name the same identifier, which decides nothing.
    package var claimsSameDevice: Bool
    /// The lock state, as `device show` says it.
    package var state: String
    /// Whether a passcode is set.
    package var passcodeSet: Bool
    /// How many rows its keychain has.
    package var items: Int
    /// The revision, which a restore compares to tell whether the plan is stale.
    package var revision: String
    /// Whether there is no such device: one is only thought of, and the document is not a plan to carry out.
    package var isHypothetical: Bool

    /// To show to others: without a name that somebody gave it.
    package var redacted: Target {
      var target = self
      if !isHypothetical { target.name = "target" }
      return target
    }

    /// Creates a target as it stands in the document.
    package init(
      name: String, sameDevice: Bool?, claimsSameDevice: Bool, state: String, passcodeSet: Bool, items: Int,
      revision: String, isHypothetical: Bool = false
    ) {
      self.isHypothetical = isHypothetical
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
    package var total: Int
    /// Items that arrive, or are there already as they are or newer.
    public var migrates: Int
    /// Items that a rule or a key leaves out.
    public var staysBehind: Int
    /// Items that are damaged in this copy.
    package var unreadable: Int
    /// Items of the target that are gone afterwards.
    package var removed: Int
    /// What stays behind or is unreadable, by the identifier of its reason.
    package var byReason: [String: Int]
    /// What arrives and is warned of, by the word of the warning.
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

  /// One decision.
  public struct Item: Sendable, Equatable {
    /// The item's position in the archive, from 0.
    public var index: Int
    /// The item's names.
    package var identity: Identity
    /// The code of the protection class; `nil` if the blob doesn't say.
    public var protection: String?
    /// `migrates`, `stays-behind` or `unreadable`.
    package var outcome: ItemFate
    /// What it does on the target, where it arrives.
    package var change: String?
    /// Why it does not arrive, where it doesn't.
    public var reason: String?
    /// A fact worth showing with it; never a value of the item.
    package var detail: String?
    /// What is known against its use there, where it arrives.
    package var warning: String?

    /// Creates a decision as the document has it.
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
  ///   - limitation: Of a plan of an archive; a device shows all that it has.
  ///   - notInBackup: What the device that made the archive has besides, where it was available.
  ///   - dump: Of a plan of a dump, what is said of it.
  ///   - findings: What of the archive was gone around.
  package init(
    made: String, source: Source, target: Target, plan: MigrationPlan, limitation: BackupLimitation?,
    notInBackup: NotInBackup? = nil, dump: Dump? = nil, findings: [BackupFinding] = []
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
    self.limitation = limitation
    self.notInBackup = notInBackup
    self.dump = dump
  }

  /// A copy to show to others: without the names of the devices and the archive. The items' own names are taken out of
  /// the plan before (`MigrationPlan.redacted`).
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
  /// What differs between a saved plan and one made now, as one sentence; `nil` if they are the same plan.
  ///
  /// Compares every item, change and removal, not only the counts, so that an edited plan is refused as well.
  package func difference(from now: PlanDocument) -> String? {
    if format != now.format { return "its format is \(format), not \(now.format)" }
    if source.digest != now.source.digest { return "it was made from another backup, or the backup has changed" }
    if target.name != now.target.name { return "it was made for \(target.name)" }
    if target.revision != now.target.revision {
      return "\(target.name) has changed since (revision \(target.revision), now \(now.target.revision))"
    }
    if policy != now.policy {
      return "it was made for a restore that \(policy == .replace ? "replaces" : "merges with") the existing items"
    }
    if target.sameDevice != now.target.sameDevice { return "it was made for another device" }
    guard let difference = decisionDifference(from: now) else { return nil }
    guard target.state != now.target.state else { return difference }
    return "it was made while \(target.name) was \(Self.words(ofState: target.state)): \(difference)"
  }

  private static func words(ofState state: String) -> String {
    state == "before-first-unlock" ? "not yet unlocked" : state
  }

  /// What is decided otherwise of the items, or of those that would be removed.
  private func decisionDifference(from now: PlanDocument) -> String? {
    if items.count != now.items.count { return "it lists \(items.count) items, but the backup has \(now.items.count)" }
    if let index = items.indices.first(where: { !items[$0].decides(as: now.items[$0]) }) {
      return "the decision on item \(index) is different now"
    }
    if removed != now.removed {
      let isNamedAnew = removed.count == now.removed.count && removed.contains(where: \.isSealed)
      return isNamedAnew
        ? "it does not name all items that would be removed" : "different items would be removed now"
    }
    if summary != now.summary { return "its summary does not match its items" }
    return nil
  }
}

extension PlanDocument {
  /// What is said of a plan whose items come from another tool's dump.
  package struct Dump: Sendable, Equatable {
    /// The form that was recognized (`DumpFormat`).
    package var form: String
    /// That its items were in clear.
    package var sentence: String
    /// What is not known of the items, or was assumed, one sentence each.
    package var unknown: [String]

    /// Creates what is said of a dump.
    package init(form: String, sentence: String, unknown: [String]) {
      self.form = form
      self.sentence = sentence
      self.unknown = unknown
    }
  }
}

extension PlanDocument.Dump {
  package var json: JSONValue {
    ["form": .string(form), "sentence": .string(sentence), "unknown": .array(unknown.map { .string($0) })]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    form = try node.member("form").string()
    sentence = try node.member("sentence").string()
    unknown = []
    for sentence in try node.member("unknown").elements() { unknown.append(try sentence.string()) }
  }
}

extension PlanDocument {
  /// A part of the archive that is not as a device leaves it.
  package struct Finding: Sendable, Equatable {
    /// What it is, for a program to switch on (`BackupFinding.Kind`).
    package var id: String
    /// The file that it is in.
    package var place: String
    /// The fact found.
    package var detail: String
    /// Whether something of the archive cannot be had for it.
    package var isLoss: Bool
    /// Whether a restore takes an archive with it.
    package var isRestorable: Bool

    /// Creates what the document says of a finding.
    package init(_ finding: BackupFinding) {
      id = finding.kind.rawValue
      place = finding.place
      detail = finding.fact
      isLoss = finding.isLoss
      isRestorable = !finding.blocks(.restoring)
    }
  }
}

extension PlanDocument.Finding {
  /// The same to show to others: what was found may be told with a name out of the archive.
  package var redacted: PlanDocument.Finding {
    var shown = self
    shown.detail = id
    return shown
  }

  package var json: JSONValue {
    [
      "id": .string(id), "place": .string(place), "detail": .string(detail), "lost": .boolean(isLoss),
      "restorable": .boolean(isRestorable),
    ]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    id = try node.member("id").string()
    place = try node.member("place").string()
    detail = try node.member("detail").string()
    isLoss = try node.member("lost").boolean()
    isRestorable = try node.member("restorable").boolean()
  }
}

extension PlanDocument {
  /// The names of an item, each absent where it is sealed or has none.
  package struct Identity: Sendable, Equatable {
    /// The kind, as reports name it: `generic-password`, `internet-password`, `certificate` or `key`.
    package var kind: String
    /// The plan's own, of which no name is copied. What kind it says, and whether it is sealed, count for nothing here.
    private var names: ItemDescriptor

    /// Creates the names as the document has them.
    package init(_ identity: ItemDescriptor) {
      kind = identity.kind.reportName
      names = identity
    }

    /// None yet of an item of a kind.
    init(kind: String) {
      self.kind = kind
      names = ItemDescriptor(undecryptable: .genericPassword)
    }

    /// The label.
    package var label: String? {
      get { names.label }
      set { names.label = newValue }
    }
    /// The account.
    package var account: String? {
      get { names.account }
      set { names.account = newValue }
    }
    /// The service.
    package var service: String? {
      get { names.service }
      set { names.service = newValue }
    }
    /// The server.
    package var server: String? {
      get { names.server }
      set { names.server = newValue }
    }
    /// The access group.
    package var accessGroup: String? {
      get { names.accessGroup }
      set { names.accessGroup = newValue }
    }

    var isSealed: Bool { label == nil && account == nil && service == nil && server == nil }

    /// Whether both have the same kind and the same names.
    package static func == (left: Self, right: Self) -> Bool {
      left.kind == right.kind && left.label == right.label && left.account == right.account
        && left.service == right.service && left.server == right.server && left.accessGroup == right.accessGroup
    }
  }
}

extension PlanDocument {
  /// What the device that made the archive has and the archive has not, where the device was available.
  package struct NotInBackup: Sendable, Equatable {
    /// An item of the device.
    package struct Item: Sendable, Equatable {
      /// The item's names.
      package var identity: Identity
      /// The code of the protection class; `nil` if nothing says it.
      package var protection: String?
      /// Why no backup holds it; `nil` if one made now would.
      package var reason: String?
    }

    /// The name of the device.
    package var device: String
    /// Its revision when it was asked.
    package var revision: String
    /// Whether the archive's items prove that it made the archive.
    package var isProven: Bool
    /// How many items it has.
    package var total: Int
    /// How many of them the archive has.
    package var held: Int
    /// How many of these differ.
    package var changed: Int
    /// How many may be among the archive's items that do not open.
    package var doubtful: Int
    /// How many items of the archive it has no more.
    package var gone: Int
    /// How many of its items no backup holds, by a rule.
    package var never: Int
    /// How many of its rows are damaged.
    package var unreadable: Int
    /// How many of its items came after the archive was made.
    package var since: Int
    /// The items that the archive has not.
    package var items: [Item]

    /// Creates what the document says of the device's items.
    package init(_ sourceDeviceItems: SourceDeviceItems) {
      device = sourceDeviceItems.device
      revision = sourceDeviceItems.revision
      isProven = sourceDeviceItems.isProven
      (total, held, changed) = (
        sourceDeviceItems.total, sourceDeviceItems.includedCount, sourceDeviceItems.changedCount
      )
      (doubtful, gone) = (sourceDeviceItems.possiblyIncludedCount, sourceDeviceItems.removedCount)
      (never, unreadable, since) = (
        sourceDeviceItems.never.count, sourceDeviceItems.unreadable.count, sourceDeviceItems.since.count
      )
      items = sourceDeviceItems.absent.map {
        Item(identity: Identity($0.identity), protection: $0.protection?.rawValue, reason: $0.reason?.rawValue)
      }
    }
  }
}

extension PlanDocument.NotInBackup {
  package var json: JSONValue {
    [
      "device": .string(device), "revision": .string(revision), "proven": .boolean(isProven), "total": .count(total),
      "in_backup": .count(held), "changed": .count(changed), "doubtful": .count(doubtful), "gone": .count(gone),
      "never": .count(never), "unreadable": .count(unreadable), "since": .count(since),
      "items": .each(items) { item in
        .object(item.identity.fields + [("protection", .text(item.protection)), ("reason", .text(item.reason))])
      },
    ]
  }

  init(_ node: JSONCursor) throws(JSONCursor.Fault) {
    device = try node.member("device").string()
    revision = try node.member("revision").string()
    isProven = try node.member("proven").boolean()
    total = try node.member("total").count(from: 0)
    held = try node.member("in_backup").count(from: 0)
    changed = try node.member("changed").count(from: 0)
    doubtful = try node.member("doubtful").count(from: 0)
    gone = try node.member("gone").count(from: 0)
    never = try node.member("never").count(from: 0)
    unreadable = try node.member("unreadable").count(from: 0)
    since = try node.member("since").count(from: 0)
    items = []
    for element in try node.member("items").elements() {
      items.append(
        Item(
          identity: try PlanDocument.Identity(element),
          protection: try element.member("protection").optionalString(),
          reason: try element.member("reason").optionalString()))
    }
  }
}
