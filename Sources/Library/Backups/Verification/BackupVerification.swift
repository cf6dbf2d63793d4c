import Basics
package import KeychainCrypto
import KeychainFormats

/// What checking a backup found out: every check that was made, every fault with its place, and what it comes to.
public struct BackupVerification: Sendable, Equatable {
  /// In the order in which they were made. What could not be checked stands in `unchecked` instead.
  public internal(set) var checks: [Check] = []
  /// The checks that were not made, and why: without a password most of them.
  public internal(set) var unchecked: [Unchecked] = []
  /// The faults by their check; of each, no more than `maximumFaultCount` are named.
  public internal(set) var faults: [Fault] = []
  /// How many faults each check found.
  public internal(set) var faultCount: [CheckID: Int] = [:]
  /// What of the backup is not as a device leaves it and was gone around, each also a fault or a note.
  public internal(set) var found: [ArchiveFinding] = []
  /// What was unusual, and is no fault.
  public internal(set) var notes: [String] = []
  /// `nil` if the items could not be tried.
  public internal(set) var items: ItemCounts?
  /// `nil` if payloads were not read.
  public internal(set) var files: FileCounts?
  /// What the items prove about the device key at hand.
  public internal(set) var hardware = HardwareProof()
  /// Whether the password was left out on purpose.
  public internal(set) var isQuick: Bool

  /// The most faults of one check that are named; beyond them only the count goes on.
  public static let maximumFaultCount = 1_000

  init(isQuick: Bool) { self.isQuick = isQuick }

  /// Whether something was found that no device writes, such as a path that leads out of its directory, a link in a
  /// file's place, or a list of files in which something runs: then the whole is not to be trusted.
  public internal(set) var isHostile = false

  /// The checks in the order in which they are made. The raw value is what machine-readable reports say.
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
    /// Every file, held against `Keyhaul.seal`.
    case seal
  }

  /// A check that was made.
  public struct Check: Sendable, Equatable {
    /// Which check it is.
    package let id: CheckID
    /// True where it found no fault.
    package let isOK: Bool
    /// What was found, in a sentence. May hold the device's name, which is hostile.
    package let detail: String
  }

  /// A check that was not made, and why.
  public struct Unchecked: Sendable, Equatable {
    /// Which check it is.
    package let id: CheckID
    /// Why it was not made, in a sentence.
    public let reason: String
  }

  /// What the checks come to. The raw value is what machine-readable reports say.
  public enum Verdict: String, Sendable {
    /// Every check was made, no fault was found, and each file has the digest that the list records.
    case whole
    /// No fault was found, and a check was not made, or of some files a change could not be seen: the list has no digest of
    /// them, or they were not read.
    case unproven
    /// At least one fault was found.
    case damaged
    /// No fault was found, and every item of the keychain needs the hardware of the device that made the backup, so that
    /// none of them could be checked.
    case foreign
    /// No fault was found, and nothing says whether the device finished the backup: what it did not write, nobody misses.
    case unconfirmed
  }

  /// What the checks come to; the worst of what was found.
  public var verdict: Verdict {
    if !faultCount.isEmpty { return .damaged }
    if !statesSnapshotState { return .unconfirmed }
    if let items, items.deviceBound > 0, items.readable == 0 { return .foreign }
    return isEachFileProven && isEachCheckMade ? .whole : .unproven
  }

  /// Whether no check was left out of what there is. A seal may be missing; where it is there and could not be tried, other
  /// checks were left out too.
  private var isEachCheckMade: Bool { unchecked.allSatisfy { $0.id == .seal } }

  /// Whether every file that is there was held against a digest, of the list of files or of a seal.
  public var isEachFileProven: Bool { isEachFileSealed || files.map { $0.unproven == 0 } ?? false }

  /// Whether every file is what its seal lists, as far as that could be told: without its password that the list is the
  /// one that was made cannot.
  public internal(set) var isEachFileSealed = false

  /// Whether the backup has a seal, readable or not; `nil` if it could not be opened.
  public internal(set) var hasSeal: Bool?

  /// The result of checking a seal. The raw value appears in machine-readable reports.
  public enum SealState: String, Sendable {
    /// Every file matches the seal, and the seal's code is correct if it has one.
    case intact
    /// A file does not match the seal, or the seal itself was changed.
    case broken
    /// The backup has no seal.
    case missing
    /// The backup has a seal that was not compared in full.
    case unchecked
  }

  /// The result of checking the seal; `nil` if the backup could not be opened.
  public var sealState: SealState? {
    guard let hasSeal else { return nil }
    guard hasSeal else { return .missing }
    guard faultCount[.seal] == nil else { return .broken }
    return checks.contains { $0.id == .seal } ? .intact : .unchecked
  }

  /// Whether no fault was found, as far as it was checked.
  public var isFaultless: Bool {
    switch verdict {
    case .whole, .foreign, .unproven: true
    case .damaged, .unconfirmed: false
    }
  }

  /// Whether nothing is damaged or missing, and every file was held against a digest.
  public var isWhole: Bool {
    switch verdict {
    case .whole: true
    case .foreign: isEachFileProven
    case .damaged, .unconfirmed, .unproven: false
    }
  }

  /// Whether the backup says how far its device came, in `Status.plist`.
  public internal(set) var statesSnapshotState = true

  /// Whether the only faults are payloads that are not there, and the keychain's is: all that is there is right.
  public var isOnlyIncomplete: Bool {
    var others = faultCount
    if others[.seal] == sealedMissingCount { others[.seal] = nil }
    return missingCount > 0 && others == [.files: missingCount]
  }

  /// Whether the files are there under their own names, in a layout that Keyhaul does not read.
  package internal(set) var hasFilesByDomain = false

  /// How many files were sealed and are not there.
  var sealedMissingCount = 0

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
    /// The check that found it.
    public let check: CheckID
    /// What is wrong, for a program to switch on.
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
      /// A payload is listed and not stored.
      case payloadMissing = "payload-missing"
      /// A payload ends before its content does.
      case payloadCut = "payload-cut"
      /// The system, or the container, does not give the payload's bytes.
      case payloadUnreadable = "payload-unreadable"
      /// The stored bytes have another digest than the list records.
      case digestMismatch = "digest-mismatch"
      /// What a payload decrypts to does not end in valid padding, so that the key or its bytes are wrong.
      case paddingInvalid = "padding-invalid"
      /// A row of the list of files has a record that does not parse.
      case recordMalformed = "record-malformed"
      /// A property list that every backup has cannot be read, or is not there.
      case structureDamaged = "structure-damaged"
      /// The device did not come to the end of the backup.
      case unfinished
      /// The manifest says that there is a password, and everything is in clear.
      case falseClaim = "false-claim"
      /// The manifest says that there is no password, and its parts were made under one.
      case passwordDenied = "password-denied"
      /// A class key is wrapped otherwise than any device wraps it.
      case wrapsUnusual = "wraps-unusual"
      /// The keybag contradicts itself, or one of its keys does not unwrap.
      case keybagDamaged = "keybag-damaged"
      /// A class key is not wrapped with the device's hardware although every device wraps it so.
      case hardwareLayerMissing = "hardware-layer-missing"
      /// The keychain was sealed for another keybag.
      case keybagMismatch = "keybag-mismatch"
      /// The list of files cannot be read to its end.
      case databaseDamaged = "database-damaged"
      /// The keychain's file cannot be read.
      case keychainDamaged = "keychain-damaged"
      /// An item does not open with a key that is known to be right.
      case itemDamaged = "item-damaged"
      /// A file is not what was sealed, or the seal is not what was made.
      case sealBroken = "seal-broken"
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
    if count < Self.maximumFaultCount { faults.append(fault) }
  }

  /// A fault that reading gave as an error.
  mutating func add(_ fault: Fault, because error: KeyhaulError) {
    note(error)
    add(fault)
  }

  /// Takes in whether an error tells of what no device writes.
  mutating func note(_ error: KeyhaulError) {
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
    let isOK = faultCount[id] == nil && !fails
    checks.append(Check(id: id, isOK: isOK, detail: isOK ? detail : failing(id, detail)))
  }

  /// What a check that found a fault says: the fault, and what was right besides. Counts of files and of items have what is
  /// wrong among them.
  private func failing(_ id: CheckID, _ detail: String) -> String {
    guard let first = faults.first(where: { $0.check == id }), !detail.contains(first.reason) else { return detail }
    switch id {
    case .files, .items: return detail
    case .database: return first.placeText
    case .structure, .keybag, .keychain, .seal: return "\(first.placeText); also, \(detail)"
    }
  }

  mutating func leaveOut(_ id: CheckID, _ reason: String) {
    unchecked.append(Unchecked(id: id, reason: reason))
  }
}

extension BackupVerification {
  /// What was found of the listed files, by kind.
  public struct FileCounts: Sendable, Equatable {
    /// Files that the list names.
    package var listed = 0
    /// Of these, those that are stored, or empty and need no payload.
    package var present = 0
    /// Of those that are present, empty ones without a payload.
    package var unstored = 0
    /// Those that are not present.
    package var missing = 0
    /// Payloads that are stored and not listed.
    package var surplus = 0
    /// Files whose bytes have the digest that the list records.
    package var digestsRight = 0
    /// Files of which the list has none: a change in them cannot be seen.
    package var withoutDigest = 0
    /// Encrypted files, that of the keychain apart, that end in their padding.
    package var paddingRight = 0
    /// Files that have another size than the list records, though nothing else is wrong with them.
    package var otherSize = 0
    /// Files whose key needs the hardware of the device, so that nothing was read of them.
    package var unread = 0

    /// Files in which a change could not be seen.
    package var unproven: Int { withoutDigest + unread }
  }

  /// How the items of the keychain answered to every key at hand.
  public struct ItemCounts: Sendable, Equatable {
    /// Items whose tag is right and whose content is an item.
    public var readable = 0
    /// Items that open only with other hardware than was available, as far as anybody can tell. Nothing tells whether their
    /// bytes are right.
    public var deviceBound = 0
    /// Items that a key known to be right does not open, or that follow no format.
    package var damaged = 0

    /// The items of all three counts.
    package var total: Int { readable + deviceBound + damaged }
  }

  /// What the seal shows, as a clause: "2 files are not what was sealed". What the list of files misses too is left out;
  /// `nil` if nothing else is wrong.
  public var sealClause: String? {
    guard !faults.contains(where: { $0.check == .seal && $0.file == "Keyhaul.seal" }) else {
      return "its seal has changed"
    }
    let count = faultCount[.seal, default: 0] - min(sealedMissingCount, missingCount)
    return count == 0
      ? nil
      : "\(HumanReadable.count(count, "file")) \(count == 1 ? "has" : "have") changed since the backup was "
        + "sealed"
  }
}

extension BackupArchive {
  /// What the backup has lost, as far as that can be seen without reading every file: for whoever changes a backup and
  /// does not check it. Clauses for a sentence, such as "2 listed files are not stored"; none where nothing is wrong.
  ///
  /// - Parameter keys: As `fileList(with:)` takes them.
  package func visibleLosses(with keys: ClassKeys) -> [String] {
    do throws(KeyhaulError) {
      let list = try fileList(with: keys)
      return try losses(listedIn: list, with: keys)
    } catch {
      return ["its manifest cannot be read: \(error.reason)"]
    }
  }

  private func losses(
    listedIn list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> [String] {
    var losses: [String] = []
    let missing = try list.listing(against: try storedFiles()).missingCount
    if missing > 0 {
      losses.append("\(HumanReadable.count(missing, "listed file")) \(missing == 1 ? "is" : "are") not stored")
    }
    do throws(KeyhaulError) {
      let reading = try KeychainReading(of: self, in: list, with: keys)
      if reading.notes.contains(.digestDiffers) { losses.append("its keychain file differs from what was written") }
    } catch {
      // A backup may be without a keychain.
      if error.code != .noKeychain { losses.append("its keychain cannot be read: \(error.reason)") }
    }
    return losses
  }
}
