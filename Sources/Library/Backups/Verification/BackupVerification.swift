import Basics
package import KeychainCrypto
import KeychainFormats

/// The result of verifying a backup: its checks, faults, and verdict.
public struct BackupVerification: Sendable, Equatable {
  /// The completed checks in order. Omitted checks are in `unchecked`.
  public internal(set) var checks: [Check] = []
  /// The omitted checks with the reasons. Without a password, most checks are omitted.
  public internal(set) var unchecked: [SkippedCheck] = []
  /// The faults by check, at most 1,000 for each.
  public internal(set) var faults: [Fault] = []
  /// The number of faults of each check.
  public internal(set) var faultCount: [CheckID: Int] = [:]
  /// The findings. Each is also a fault or a note.
  public internal(set) var findings: [BackupFinding] = []
  /// Anomalies that are not faults.
  public internal(set) var notes: [String] = []
  /// The counts of items, or `nil` if they could not be decrypted.
  public internal(set) var items: ItemCounts?
  /// The counts of files, or `nil` if payloads were not read.
  public internal(set) var files: FileCounts?
  /// The evidence from the items about the device key.
  public internal(set) var hardware = DeviceKeyEvidence()
  /// Whether the password was deliberately omitted.
  package internal(set) var isQuick: Bool

  /// The maximum number of faults in the list for each check. Further faults are only counted.
  package static let maximumFaultCount = 1_000

  init(isQuick: Bool) { self.isQuick = isQuick }

  /// Whether the backup contains something that no device writes, such as a path that leaves the directory, a link
  /// instead of a file, or a file list that executes code. The backup should not be trusted.
  package internal(set) var isHostile = false

  /// The checks in their order. Machine-readable reports contain the raw values.
  public enum CheckID: String, Sendable, CaseIterable {
    /// The property lists.
    case structure
    /// The payloads: presence, digest, and padding.
    case files
    /// The keybag and its class keys.
    case keybag
    /// The file list.
    case database
    /// The keychain file: its encryption, property list, and keybag.
    case keychain
    /// The authentication tag of each item.
    case items
    /// All files, compared with `Keyhaul.seal`.
    case seal
  }

  /// A completed check.
  public struct Check: Sendable, Equatable {
    /// The identifier of the check.
    package let id: CheckID
    /// Whether the check found no fault.
    package let isOK: Bool
    /// The result as a sentence. It may contain the untrusted device name.
    package let detail: String
  }

  /// An omitted check with the reason.
  public struct SkippedCheck: Sendable, Equatable {
    /// The identifier of the check.
    package let id: CheckID
    /// The reason as a sentence.
    public let reason: String
  }

  /// The verdict of a verification. Machine-readable reports divide `damaged` into `incomplete`, `damaged` and
  /// `refused`.
  public enum Verdict: String, Sendable {
    /// All checks are complete without a fault, and each file matches its recorded digest.
    case whole
    /// There is no fault, but a check was omitted, or some files have no digest or were not read. A change in these files
    /// could not be detected.
    case unproven
    /// There is at least one fault.
    case damaged
    /// There is no fault, but all keychain items require the source device's key, so that none could be checked.
    case foreign
    /// There is no fault, but it is unknown whether the device finished the backup, so that files may be missing.
    case unconfirmed
  }

  /// The verdict, by the worst result.
  public var verdict: Verdict {
    if !faultCount.isEmpty { return .damaged }
    if !statesSnapshotState { return .unconfirmed }
    if let items, items.deviceBound > 0, items.readable == 0 { return .foreign }
    return verifiedAllFiles && ranAllChecks ? .whole : .unproven
  }

  /// Whether all applicable checks are complete. The seal check may be omitted, because a backup needs no seal. If an
  /// existing seal could not be checked, another check was omitted as well.
  private var ranAllChecks: Bool { unchecked.allSatisfy { $0.id == .seal } }

  /// Whether each stored file was compared with a digest in the file list or in a seal.
  package var verifiedAllFiles: Bool { isEachFileSealed || files.map { $0.unproven == 0 } ?? false }

  /// Whether each file matches the seal. Without the password, the seal itself may have been changed.
  package internal(set) var isEachFileSealed = false

  /// Whether the backup has a seal, readable or not, or `nil` if it could not be opened.
  package internal(set) var hasSeal: Bool?

  /// The result of checking a seal. Machine-readable reports contain the raw values.
  public enum SealState: String, Sendable {
    /// All files match the seal, and the code of a keyed seal is correct.
    case intact
    /// A file does not match the seal, or the seal itself was changed.
    case broken
    /// The backup has no seal.
    case missing
    /// The backup has a seal that was not compared in full.
    case unchecked
  }

  /// The result of checking the seal, or `nil` if the backup could not be opened.
  public var sealState: SealState? {
    guard let hasSeal else { return nil }
    guard hasSeal else { return .missing }
    guard faultCount[.seal] == nil else { return .broken }
    return checks.contains { $0.id == .seal } ? .intact : .unchecked
  }

  /// Whether the completed checks found no fault, and it is known that the device finished the backup.
  package var isFaultless: Bool {
    switch verdict {
    case .whole, .foreign, .unproven: true
    case .damaged, .unconfirmed: false
    }
  }

  /// Whether nothing is damaged or missing, and each file was compared with a digest.
  public var isWhole: Bool {
    switch verdict {
    case .whole: true
    case .foreign: verifiedAllFiles
    case .damaged, .unconfirmed, .unproven: false
    }
  }

  /// Whether `Status.plist` states whether the device finished the backup.
  package internal(set) var statesSnapshotState = true

  /// Whether the only faults are missing payloads, other than the keychain file. The seal may report the same payloads.
  package var isOnlyIncomplete: Bool {
    var counts = faultCount
    if counts[.seal] == sealedMissingCount { counts[.seal] = nil }
    return missingCount > 0 && counts == [.files: missingCount]
  }

  /// Whether the files are stored under their original names, in a layout that Keyhaul does not read.
  package internal(set) var hasFilesByDomain = false

  /// The number of sealed files that are missing.
  var sealedMissingCount = 0

  /// Whether the backup was too damaged to be opened.
  package var isUnopened: Bool { checks.count == 1 && faultCount[.structure] != nil }

  /// Whether no item can be read from the keychain file. A wrong digest does not affect items, because each is
  /// authenticated separately.
  package var isKeychainLost: Bool {
    faults.contains { $0.check == .keychain && $0.kind != .digestMismatch && $0.kind != .keybagMismatch }
  }

  /// Whether the keychain refers to a different keybag, so that no device accepts it.
  package var isKeychainRefused: Bool { faults.contains { $0.kind == .keybagMismatch } }

  /// The number of listed payloads that are not stored. If keys are available, the keychain file does not count, because
  /// its own check reports it.
  public internal(set) var missingCount = 0
}

extension BackupVerification {
  /// A fault with its location.
  public struct Fault: Sendable, Equatable {
    /// The check that found it.
    public let check: CheckID
    /// The kind of fault.
    public let kind: Kind
    /// The file: a metadata file, or a domain and path from the list. Untrusted.
    public var file: String?
    /// The offset in the stored file in bytes, or in the decrypted keychain file for an item.
    public var offset: Int?
    /// The size of the affected data in bytes.
    public var byteCount: Int?
    /// The item's index in the keychain.
    public var item: Int?
    /// The fault as a clause.
    public let reason: String

    /// The kinds of faults. Machine-readable reports contain the raw values.
    public enum Kind: String, Sendable, CaseIterable {
      /// A listed payload is not stored.
      case payloadMissing = "payload-missing"
      /// A payload ends too early.
      case payloadCut = "payload-cut"
      /// The payload cannot be read from the system or the container.
      case payloadUnreadable = "payload-unreadable"
      /// The digest of the stored bytes differs from the recorded one.
      case digestMismatch = "digest-mismatch"
      /// The padding of a decrypted payload is invalid, so that the key or the bytes are wrong.
      case paddingInvalid = "padding-invalid"
      /// A record in the file list is invalid.
      case recordMalformed = "record-malformed"
      /// A required property list is missing or unreadable.
      case structureDamaged = "structure-damaged"
      /// The device did not finish the backup.
      case unfinished
      /// The manifest claims a password, but the content is unencrypted.
      case falseClaim = "false-claim"
      /// The manifest claims that there is no password, but its content was created with one.
      case passwordDenied = "password-denied"
      /// A class key is wrapped in a way that no device uses.
      case wrapsUnusual = "wraps-unusual"
      /// The keybag is inconsistent, or a class key cannot be unwrapped.
      case keybagDamaged = "keybag-damaged"
      /// A class key is not bound to the device, although it should be.
      case hardwareLayerMissing = "hardware-layer-missing"
      /// The keychain was encrypted for a different keybag.
      case keybagMismatch = "keybag-mismatch"
      /// The file list cannot be read completely.
      case databaseDamaged = "database-damaged"
      /// The keychain file is unreadable.
      case keychainDamaged = "keychain-damaged"
      /// An item cannot be decrypted with a proven key.
      case itemDamaged = "item-damaged"
      /// A file does not match the seal, or the seal is invalid.
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

  /// Adds a fault for a failed read.
  mutating func add(_ fault: Fault, because error: KeyhaulError) {
    recordHostility(of: error)
    add(fault)
  }

  /// Sets `isHostile` if an error is about content that no device writes.
  mutating func recordHostility(of error: KeyhaulError) {
    switch error.code {
    case .hostile, .overLimit, .unsupported: isHostile = true
    default: break
    }
  }

  /// Adds the faults of payloads. Those above the limit are only counted.
  mutating func add(_ faults: SortedFaults) {
    let listedFaults = faults.firstFaults
    for fault in listedFaults { add(fault) }
    if faults.count > listedFaults.count { faultCount[.files, default: 0] += faults.count - listedFaults.count }
  }

  /// Records the result of a check.
  ///
  /// - Parameter failsForOtherCheck: Whether the check failed because of a fault that another check reports.
  mutating func conclude(_ id: CheckID, _ detail: String, failsForOtherCheck: Bool = false) {
    let isOK = faultCount[id] == nil && !failsForOtherCheck
    checks.append(Check(id: id, isOK: isOK, detail: isOK ? detail : failureDetail(id, detail)))
  }

  /// Returns the detail of a failed check: the first fault, then the given detail. For the database, it is only the
  /// first fault. A given detail that already contains the first fault or counts the faults stays unchanged.
  private func failureDetail(_ id: CheckID, _ detail: String) -> String {
    guard let first = faults.first(where: { $0.check == id }), !detail.contains(first.reason) else { return detail }
    switch id {
    case .files, .items: return detail
    case .database: return first.reasonWithLocation
    case .structure, .keybag, .keychain, .seal: return "\(first.reasonWithLocation); also, \(detail)"
    }
  }

  mutating func skip(_ id: CheckID, reason: String) {
    unchecked.append(SkippedCheck(id: id, reason: reason))
  }
}

extension BackupVerification {
  /// The counts of listed files.
  public struct FileCounts: Sendable, Equatable {
    /// The number of listed files.
    package var listed = 0
    /// The number of listed files that are complete: stored, or empty so that they need no payload.
    package var present = 0
    /// The number of present files that are empty and have no payload.
    package var emptyWithoutPayload = 0
    /// The number of missing files.
    package var missing = 0
    /// The number of stored payloads that are not listed.
    package var unlisted = 0
    /// The number of files that match their recorded digest.
    package var withMatchingDigest = 0
    /// The number of files without a recorded digest, in which changes cannot be detected.
    package var withoutDigest = 0
    /// The number of encrypted files with valid padding, without the keychain file.
    package var withValidPadding = 0
    /// The number of files whose size differs from the recorded one, and which have no other fault.
    package var sizeMismatches = 0
    /// The number of files that were not read because they require the device key.
    package var unread = 0

    /// The number of files in which a change could not be detected.
    package var unproven: Int { withoutDigest + unread }
  }

  /// The counts of keychain items.
  public struct ItemCounts: Sendable, Equatable {
    /// The number of items with a correct tag and valid content.
    public var readable = 0
    /// The number of items that seem to require another device key. Their bytes may be damaged as well.
    public var deviceBound = 0
    /// The number of items that a proven key cannot decrypt, or whose format is invalid.
    package var damaged = 0

    /// The number of items.
    package var total: Int { readable + deviceBound + damaged }
  }

  /// The violations of the seal as a clause, such as "2 files have changed since the backup was sealed", or `nil` if
  /// there are none. Missing files are not counted if the file list includes them.
  package var sealClause: String? {
    guard !faults.contains(where: { $0.check == .seal && $0.file == MetadataFile.seal.path }) else {
      return "its seal has changed"
    }
    let count = faultCount[.seal, default: 0] - min(sealedMissingCount, missingCount)
    guard count > 0 else { return nil }
    return "\(HumanReadable.count(count, "file")) \(count == 1 ? "has" : "have") changed since the backup was sealed"
  }
}

extension BackupArchive {
  /// Returns the damage that is visible without reading all files, for operations that change a backup without
  /// verifying it. The texts are clauses, such as "2 listed files are not stored".
  ///
  /// - Parameter keys: The keys for `fileList(with:)`.
  package func visibleDamage(with keys: ClassKeys) -> [String] {
    do throws(KeyhaulError) {
      let list = try fileList(with: keys)
      return try damage(listedIn: list, with: keys)
    } catch {
      return ["its manifest cannot be read: \(error.reason)"]
    }
  }

  private func damage(
    listedIn list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> [String] {
    var clauses: [String] = []
    let missingCount = try list.listing(against: try storedFiles()).missingCount
    if missingCount > 0 {
      clauses.append(
        "\(HumanReadable.count(missingCount, "listed file")) \(missingCount == 1 ? "is" : "are") not stored")
    }
    do throws(KeyhaulError) {
      let reading = try KeychainReading(of: self, in: list, with: keys)
      if reading.anomalies.contains(.digestDiffers) {
        clauses.append("its keychain file differs from what was written")
      }
    } catch {
      // A backup may have no keychain.
      if error.code != .noKeychain { clauses.append("its keychain cannot be read: \(error.reason)") }
    }
    return clauses
  }
}
