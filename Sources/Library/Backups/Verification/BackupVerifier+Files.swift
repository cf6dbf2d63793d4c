import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// Compares the list with the stored payloads in one pass, then reads all listed payloads in one pass, with their
  /// digests and padding.
  ///
  /// - Parameter keys: The class keys, or `nil` to check only the stored bytes.
  /// - Returns: The counts of the list, or `nil` if it cannot be read completely.
  mutating func checkFiles(
    of list: FileList, with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) -> FileList.Listing? {
    let stored: StoredPayloads
    stored = try archive.storedFiles()
    var totals = FileCheckTotals()
    var index = FileIndex()
    var listing: FileList.Listing?
    var files: PayloadFiles?
    do throws(KeyhaulError) {
      listing = try list.listing(against: stored) { (file, place) throws(KeyhaulError) in
        guard file.kind == .file else { return }
        checkPresence(of: file, in: stored, keychainIsApart: keys != nil, &totals)
        if stored.byteCount(of: file.fileIdentifier) != nil {
          if !archive.canReadPayloads { checkRecord(of: file, with: keys, isListed: index.contains(file), &totals) }
          index.add(file, at: place)
        }
        guard progress(0, stored.byteCount) else { throw Self.cancelled }
      }
      if archive.canReadPayloads {
        let listed = PayloadFiles(list, index)
        files = listed
        try checkPayloads(stored, as: listed, with: keys, &totals, progress: progress)
      }
    } catch {
      if error == Self.cancelled {
        throw KeyhaulError(DataProtectionError(.cancelled, "it was stopped before the last file"))
      }
      // Otherwise, the error is one of the container file.
      let isOfList = listing == nil || files?.failure != nil
      if error.isResourceShortage || isOfList && error.category == .failed { throw error }
      findings.add(
        .init(
          isOfList ? .database : .files, isOfList ? .databaseDamaged : .payloadUnreadable,
          file: isOfList ? archive.layout.listName : nil, error.reason), because: error)
    }
    findings.add(totals.faults)
    conclude(totals, unlisted: stored.count - totals.stored, withoutKeys: keys == nil)
    return listing
  }

  private mutating func conclude(_ totals: FileCheckTotals, unlisted: Int, withoutKeys: Bool) {
    noteUnlisted(unlisted)
    guard archive.canReadPayloads else {
      // A stream cannot be read again, but its content and its entries in the list are known.
      let (missing, all) = (findings.missingCount, findings.faultCount[.files, default: 0])
      let parts = [
        missing > 0 ? "\(HumanReadable.count(missing, "listed file")) not stored" : nil,
        all > missing ? "\(HumanReadable.grouped(all - missing)) damaged" : nil,
      ].compactMap(\.self)
      if !parts.isEmpty { findings.conclude(.files, parts.joined(separator: ", ")) }
      findings.skip(.files, reason: "a stream can be read only once: verify a file or folder to check every payload")
      return
    }
    findings.notes += totals.otherSizeNotes.sorted()
    findings.files = BackupVerification.FileCounts(
      listed: totals.listed, present: totals.present, unstored: totals.unstored,
      missing: findings.missingCount + (totals.isKeychainMissing ? 1 : 0),
      surplus: unlisted, digestsRight: totals.digests, withoutDigest: totals.undigested, paddingRight: totals.paddings,
      otherSize: totals.otherSizes, unread: totals.sealed)
    // The check of the keychain reports the fault.
    findings.conclude(.files, detail(of: totals, withoutKeys: withoutKeys), fails: totals.isKeychainMissing)
  }

  /// Checks that a file is stored.
  ///
  /// - Parameter keychainIsApart: Whether the keychain file has its own check, which requires keys.
  private mutating func checkPresence(
    of file: ListedFile, in stored: StoredPayloads, keychainIsApart: Bool, _ totals: inout FileCheckTotals
  ) {
    totals.listed += 1
    if stored.byteCount(of: file.fileIdentifier) != nil {
      totals.present += 1
      totals.stored += 1
      return
    }
    if stored.isIrregular(file.fileIdentifier) {
      return add(KeyhaulError(.hostile, "a link, a pipe or a folder is in its place"), of: file, &totals)
    }
    let isKeychain = keychainIsApart && file.fileIdentifier == KeychainPayload.fileIdentifier
    do throws(KeyhaulError) {
      if try file.record()?.needsPayload == false {
        totals.present += 1
        totals.unstored += 1
      } else if isKeychain {
        totals.isKeychainMissing = true
      } else {
        findings.add(.init(.files, .payloadMissing, file: Self.name(of: file), "it is listed but not stored"))
      }
    } catch {
      if !isKeychain { add(error, of: file, &totals) }
    }
  }

  /// Checks the record and the key of a stored payload that cannot be read again, and that it is listed only once.
  ///
  /// - Parameter isListed: Whether the payload was already listed.
  private mutating func checkRecord(
    of file: ListedFile, with keys: ClassKeys?, isListed: Bool, _ totals: inout FileCheckTotals
  ) {
    if isListed {
      totals.faults.add(.init(.files, .recordMalformed, file: Self.name(of: file), "it is listed more than once"))
      return
    }
    do throws(KeyhaulError) {
      switch keys {
      case .none: _ = try PayloadScanner(storedBytesOf: file, in: archive)
      case .some(let keys): _ = try PayloadScanner(of: file, in: archive, with: keys)
      }
    } catch {
      // With keys, the keychain check reports it.
      let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
      if !isKeychain || keys == nil { add(error, of: file, &totals) }
    }
  }

  mutating func add(_ error: KeyhaulError, of file: ListedFile, _ totals: inout FileCheckTotals) {
    let kind: BackupVerification.Fault.Kind
    switch error.code {
    // The payload has disappeared since.
    case .payloadMissing: kind = .payloadMissing
    case .keyUnavailable:
      totals.sealed += 1
      return
    case .unreadable, .hostile: kind = .payloadUnreadable
    case .truncated: kind = .payloadCut
    default: kind = .recordMalformed
    }
    findings.note(error)
    totals.faults.add(
      .init(
        .files, kind, file: Self.name(of: file),
        kind == .payloadMissing ? "it is listed but not stored" : error.reason))
  }

  private func detail(of totals: FileCheckTotals, withoutKeys: Bool) -> String {
    let missing = findings.missingCount
    var parts = ["\(HumanReadable.grouped(totals.present)) of \(HumanReadable.grouped(totals.listed)) present"]
    if totals.unstored > 0 { parts.append("\(HumanReadable.grouped(totals.unstored)) of them empty and not stored") }
    if totals.isKeychainMissing { parts.append("the keychain's is not") }
    if totals.digests > 0 {
      parts.append(totals.digests == 1 ? "1 digest matches" : "\(HumanReadable.grouped(totals.digests)) digests match")
    }
    if totals.undigested > 0 { parts.append("\(HumanReadable.grouped(totals.undigested)) without a digest") }
    if totals.paddings > 0 {
      let words = totals.paddings == 1 ? "1 padding valid" : "\(HumanReadable.grouped(totals.paddings)) paddings valid"
      parts.append(totals.isKeychainRead ? "\(words) apart from the keychain's" : words)
    }
    if totals.otherSizes > 0 {
      parts.append(
        "\(HumanReadable.grouped(totals.otherSizes)) with a size that differs from the record")
    }
    if totals.sealed > 0 {
      parts.append("\(HumanReadable.grouped(totals.sealed)) encrypted with a key that needs the device")
    }
    let damaged = findings.faultCount[.files, default: 0] - missing
    if damaged > 0 { parts.append("\(HumanReadable.grouped(damaged)) damaged") }
    return parts.joined(separator: ", ")
  }

  private mutating func noteUnlisted(_ count: Int) {
    guard count > 0 else { return }
    findings.notes.append(
      "\(HumanReadable.count(count, "stored file")) \(count == 1 ? "is" : "are") not in the manifest")
  }

  /// Returns the domain and path of a file, or its stored name if it has none.
  static func name(of file: ListedFile) -> String {
    guard let domain = file.domain, let path = file.relativePath else { return file.fileIdentifier }
    return "\(domain)/\(path)"
  }

  // MARK: Without keys

  /// Checks that the sizes of all payloads of an encrypted backup are multiples of the block size, including padding.
  ///
  /// Source: iphone_backup_decrypt and other readers; AES-CBC with PKCS #7.
  mutating func checkStoredSizes() throws(KeyhaulError) {
    let stored = try archive.storedFiles()
    for identifier in stored.fileIdentifiers(whereByteCount: { $0 == 0 || !$0.isMultiple(of: 16) }) {
      findings.add(
        .init(
          .files, .payloadCut, file: identifier,
          byteCount: stored.byteCount(of: identifier).flatMap(Int.init(exactly:)),
          "its size is not valid for an encrypted file"))
    }
    let faults = findings.faultCount[.files, default: 0]
    let sum = "\(HumanReadable.count(stored.count, "file")) stored"
    findings.conclude(
      .files, faults == 0 ? "\(sum), each of whole blocks" : "\(sum), \(HumanReadable.grouped(faults)) cut short")
  }
}

extension BackupVerifier {
  /// Starts the check of the seal, if the backup has one.
  mutating func beginSeal() throws(KeyhaulError) {
    sealVerifier = try SealVerifier(archive)
  }

  /// Reads the payloads that no other check has read: all of them, if the list of files cannot be decrypted.
  ///
  /// - Throws: `.interrupted` if `progress` returns `false`.
  mutating func checkSealedPayloads(progress: BackupVerification.Progress) throws(KeyhaulError) {
    guard let sealVerifier, archive.canReadPayloads else { return }
    let verifier = try PayloadVerifier(archive, isSealed: true, keys: nil)
    let stored = try archive.storedFiles()
    var readByteCount: Int64 = 0
    try archive.forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
      if let entry = try verifier.verify(payload, as: []).sealEntry { sealVerifier.compare(entry) }
      readByteCount += stored.byteCount(of: payload.fileIdentifier) ?? 0
      guard progress(readByteCount, stored.byteCount) else { throw Self.cancelled }
    }
    arePayloadsSealChecked = true
  }

  /// Reports the files that do not match the seal, and checks its code.
  mutating func checkSeal(
    with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    guard let seal = archive.seal else { return findings.skip(.seal, reason: unsealedText) }
    if !arePayloadsSealChecked { try readPayloads(progress) }
    // A changed seal is reported first, because it proves nothing about the files.
    let reason = try authenticate(with: keys)
    for fault in seal.violations { addViolation(fault) }
    if arePayloadsSealChecked, let sealVerifier {
      sealVerifier.finish()
      for fault in sealVerifier.violations { addViolation(fault) }
    }
    let rightCount = sealVerifier?.rightCount ?? 0
    let right = "\(HumanReadable.count(rightCount, "file")) \(rightCount == 1 ? "matches" : "match") the seal"
    guard findings.faultCount[.seal] == nil else {
      return findings.conclude(.seal, sealVerifier == nil ? "the seal cannot be read" : right)
    }
    guard archive.canReadPayloads else {
      return findings.skip(
        .seal, reason: "a stream can be read only once: verify a file or folder to check every payload")
    }
    findings.isEachFileSealed = arePayloadsSealChecked
    if let reason {
      findings.skip(.seal, reason: "\(right); \(reason)")
    } else {
      findings.conclude(
        .seal,
        seal.isKeyed
          ? "\(right), which was made with the backup's password"
          : "\(right), which was made without a password: it detects accidents, but not attacks")
    }
  }

  private mutating func readPayloads(_ progress: BackupVerification.Progress) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      try checkSealedPayloads(progress: progress)
    } catch {
      if error == Self.cancelled {
        throw KeyhaulError(DataProtectionError(.cancelled, "it was stopped before the last file"))
      }
      findings.add(.init(.seal, .sealBroken, file: "Keyhaul.seal", error.reason), because: error)
    }
  }

  /// Checks the code of a keyed seal.
  ///
  /// If the code cannot be checked although keys are available, the seal counts as broken, because no seal is written
  /// like that.
  ///
  /// - Returns: The reason why a keyed seal is not authenticated, or `nil` if its code was checked or it is unkeyed.
  private mutating func authenticate(with keys: ClassKeys?) throws(KeyhaulError) -> String? {
    guard archive.seal?.isKeyed == true else { return nil }
    switch keys {
    case .none: return "the password is needed to check whether the seal is genuine"
    case .some(let keys):
      do throws(KeyhaulError) {
        if let fault = try archive.sealViolation(with: keys) {
          findings.found.append(.sealBroken(fault))
          addViolation(fault)
        }
        return nil
      } catch {
        guard error.category != .failed else { throw error }
        findings.add(
          .init(
            .seal, .sealBroken, file: "Keyhaul.seal",
            "its authentication code cannot be checked: \(error.reason)"), because: error)
        return nil
      }
    }
  }

  private mutating func addViolation(_ fault: SealViolation) {
    findings.add(.init(.seal, .sealBroken, file: fault.file, fault.reason))
    if fault.isNotFound { findings.sealedMissingCount += 1 }
  }

  private var unsealedText: String {
    let count = findings.files?.unproven ?? 0
    guard count > 0 else { return "there is none" }
    return "there is none, so changes in \(HumanReadable.count(count, "file")) could not be detected"
  }
}

/// The counts of the passes over the list and the payloads.
struct FileCheckTotals {
  var listed = 0
  /// The number of files that are stored, or empty without a payload.
  var present = 0
  var stored = 0
  /// The number of empty files without a payload.
  var unstored = 0
  /// Whether the keychain file, which has its own check, is listed but not stored.
  var isKeychainMissing = false
  var digests = 0
  /// The number of files without a recorded digest, in which changes cannot be detected.
  var undigested = 0
  /// The number of encrypted files with valid padding, without the keychain file.
  var paddings = 0
  /// Whether the keychain file, whose padding has its own check, was read.
  var isKeychainRead = false
  var otherSizes = 0
  /// The first files with another size, with both sizes.
  var otherSizeNotes: [String] = []
  /// The number of files whose class key requires an unavailable device key.
  var sealed = 0
  var readByteCount: Int64 = 0
  /// The faults of payloads in any order.
  var faults = SortedFaults(limit: BackupVerification.maximumFaultCount)

  mutating func addOtherSize(of name: String, recorded: Int64, found: Int64) {
    otherSizes += 1
    guard otherSizeNotes.count < BackupVerification.maximumFaultCount else { return }
    otherSizeNotes.append(
      "\(name) has \(HumanReadable.grouped(found)) bytes, but the manifest records \(HumanReadable.grouped(recorded))")
  }
}

/// The first faults by file name, independent of their order, so that a directory and a container file with the same
/// backup have equal reports.
struct SortedFaults {
  private let limit: Int
  private var kept: [BackupVerification.Fault] = []
  private(set) var count = 0

  /// Creates an empty list.
  ///
  /// - Parameter limit: The maximum number of faults.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ fault: BackupVerification.Fault) {
    count += 1
    kept.append(fault)
    // Sorted after as many additions as the limit, so that at most twice as many are kept.
    if kept.count > 2 * limit { kept = first }
  }

  /// The sorted faults, up to the limit.
  var first: [BackupVerification.Fault] {
    Array(
      kept.sorted { ($0.file ?? "", $0.kind.rawValue) < ($1.file ?? "", $1.kind.rawValue) }.prefix(limit))
  }
}
