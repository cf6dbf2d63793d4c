import BackupArchive
import KeychainFormats

/// What checking a backup found out: every check that was made, every fault with its place, and what it comes to.
public struct BackupVerification: Sendable, Equatable {
  /// In the order in which they were made. What could not be checked stands in `unchecked` instead.
  public internal(set) var checks: [Check] = []
  public internal(set) var unchecked: [Unchecked] = []
  /// The faults by their check; of each, no more than `mostFaults` are named.
  public internal(set) var faults: [Fault] = []
  /// How many faults each check found.
  public internal(set) var faultCount: [CheckID: Int] = [:]
  /// What was unusual, and is no fault.
  public internal(set) var notes: [String] = []
  /// `nil` where the items could not be tried.
  public internal(set) var items: ItemCounts?
  /// What the items prove about the device key at hand.
  public internal(set) var hardware = HardwareProof()
  /// Whether the password was left out on purpose.
  public internal(set) var isQuick: Bool

  /// The most faults of one check that are named; beyond them only the count goes on.
  public static let mostFaults = 1_000

  init(isQuick: Bool) { self.isQuick = isQuick }

  /// Whether something was found that no device writes, such as a path that leads out of its folder, a link in a file's
  /// place, or a list of files in which something runs: then the whole is not to be trusted.
  public internal(set) var isHostile = false

  public enum CheckID: String, Sendable, CaseIterable {
    /// The property lists that every backup has.
    case structure
    /// The payloads: presence, digest, padding.
    case files
    /// The keybag and its class keys.
    case keybag
    /// The list of files.
    case database
    /// The keychain's file, as a file and as a property list for this keybag.
    case keychain
    /// The tag of every item.
    case items
  }

  public struct Check: Sendable, Equatable {
    public let id: CheckID
    public let isOK: Bool
    /// What was found, in a sentence. May hold the device's name, which is hostile.
    public let detail: String
  }

  /// A check that was not made, and why.
  public struct Unchecked: Sendable, Equatable {
    public let id: CheckID
    public let reason: String
  }

  public struct ItemCounts: Sendable, Equatable {
    public var readable = 0
    /// Items that open only with other hardware than was at hand, as far as anybody can tell. Nothing tells whether their
    /// bytes are right.
    public var deviceBound = 0
    public var damaged = 0

    public var total: Int { readable + deviceBound + damaged }
  }

  public enum Verdict: String, Sendable {
    /// No fault was found.
    case whole
    case damaged
    /// No fault was found, and every item of the keychain needs the hardware of the device that made the backup, so that
    /// none of them could be checked.
    case foreign
    /// No fault was found, and nothing says whether the device finished the backup: what it did not write, nobody misses.
    case unconfirmed
  }

  public var verdict: Verdict {
    if !faultCount.isEmpty { return .damaged }
    if !saysItsState { return .unconfirmed }
    guard let items, items.deviceBound > 0, items.readable == 0 else { return .whole }
    return .foreign
  }

  /// Whether nothing is damaged or missing, as far as it was checked.
  public var isWhole: Bool {
    switch verdict {
    case .whole, .foreign: true
    case .damaged, .unconfirmed: false
    }
  }

  /// Whether the backup says how far its device came, in `Status.plist`.
  public internal(set) var saysItsState = true

  /// Whether the only faults are payloads that are not there, and the keychain's is: all that is there is right.
  public var isMerelyIncomplete: Bool { missingCount > 0 && faultCount == [.files: missingCount] }

  /// Whether the backup was too damaged to look into at all.
  public var isUnopened: Bool { checks.count == 1 && faultCount[.structure] != nil }

  /// Whether no item can be had from the keychain's file. A digest that does not fit loses none: each item has a tag of its
  /// own, and what opens is what was written.
  public var isKeychainLost: Bool {
    faults.contains { $0.check == .keychain && $0.kind != .digestMismatch && $0.kind != .keybagMismatch }
  }

  /// Whether its keychain names another keybag than its own: whatever of it opens here, nothing takes it.
  public var isKeychainRefused: Bool { faults.contains { $0.kind == .keybagMismatch } }

  /// How many payloads are listed and not stored, the keychain's apart.
  public internal(set) var missingCount = 0
}

extension BackupVerification {
  /// One thing that is wrong, with its place.
  public struct Fault: Sendable, Equatable {
    public let check: CheckID
    public let kind: Kind
    /// The file it is in: a name of the backup's own, or domain and path as the list has them. Hostile.
    public var file: String?
    /// Where in that file, in bytes from its start, as it is stored or, for an item, decrypted.
    public var offset: Int?
    /// How many bytes it concerns.
    public var byteCount: Int?
    /// The item's position in the keychain.
    public var item: Int?
    /// The fact, in words.
    public let reason: String

    /// The raw value is what machine-readable reports say.
    public enum Kind: String, Sendable, CaseIterable {
      case payloadMissing = "payload-missing"
      case payloadCut = "payload-cut"
      case payloadUnreadable = "payload-unreadable"
      case digestMismatch = "digest-mismatch"
      case paddingInvalid = "padding-invalid"
      case recordMalformed = "record-malformed"
      case structureDamaged = "structure-damaged"
      case unfinished
      case falseClaim = "false-claim"
      case keybagDamaged = "keybag-damaged"
      case hardwareLayerMissing = "hardware-layer-missing"
      case keybagMismatch = "keybag-mismatch"
      case databaseDamaged = "database-damaged"
      case keychainDamaged = "keychain-damaged"
      case itemDamaged = "item-damaged"
    }

    init(
      _ check: CheckID, _ kind: Kind, file: String? = nil, offset: Int? = nil, byteCount: Int? = nil, item: Int? = nil,
      _ reason: String
    ) {
      self.check = check
      self.kind = kind
      self.file = file
      self.offset = offset
      self.byteCount = byteCount
      self.item = item
      self.reason = reason
    }
  }

  mutating func add(_ fault: Fault) {
    let count = faultCount[fault.check, default: 0]
    faultCount[fault.check] = count + 1
    if fault.check == .files, fault.kind == .payloadMissing { missingCount += 1 }
    if count < Self.mostFaults { faults.append(fault) }
  }

  /// A fault that reading gave as an error.
  mutating func add(_ fault: Fault, because error: BackupArchiveError) {
    note(error)
    add(fault)
  }

  /// Takes in whether an error tells of what no device writes.
  mutating func note(_ error: BackupArchiveError) {
    switch error.code {
    case .hostile, .overLimit, .unsupported: isHostile = true
    default: break
    }
  }

  /// The faults of payloads, of which not all may have been kept.
  mutating func add(_ sorted: SortedFaults) {
    let kept = sorted.first
    for fault in kept { add(fault) }
    if sorted.count > kept.count { faultCount[.files, default: 0] += sorted.count - kept.count }
  }

  /// - Parameter fails: Whether it fails for a fault that another check has.
  mutating func conclude(_ id: CheckID, _ detail: String, fails: Bool = false) {
    checks.append(Check(id: id, isOK: faultCount[id] == nil && !fails, detail: detail))
  }

  mutating func leaveOut(_ id: CheckID, _ reason: String) {
    unchecked.append(Unchecked(id: id, reason: reason))
  }
}
