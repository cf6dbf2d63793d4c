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
    let stored = try archive.storedFiles()
    var totals = FileCheckTotals()
    var index = FileIndex()
    var listing: FileList.Listing?
    var payloadFiles: PayloadFiles?
    do throws(KeyhaulError) {
      listing = try list.listing(against: stored) { (file, location) throws(KeyhaulError) in
        guard file.kind == .file else { return }
        checkPresence(of: file, in: stored, isKeychainCheckedSeparately: keys != nil, &totals)
        if stored.byteCount(of: file.fileIdentifier) != nil {
          if !archive.canReadPayloads {
            checkRecord(of: file, with: keys, isAlreadyListed: index.contains(file), &totals)
          }
          index.add(file, at: location)
        }
        guard progress(0, stored.byteCount) else { throw Self.cancelled }
      }
      if archive.canReadPayloads {
        let files = PayloadFiles(list, index)
        payloadFiles = files
        try checkPayloads(stored, as: files, with: keys, &totals, progress: progress)
      }
    } catch {
      try addFault(error, isListError: listing == nil || payloadFiles?.failure != nil)
    }
    verification.add(totals.faults)
    conclude(totals, unlistedCount: stored.count - totals.stored)
    return listing
  }

  /// Adds a fault for an error that ended the check of files.
  ///
  /// - Parameter isListError: Whether the list caused the error. If not, a container file did.
  /// - Throws: The error if it is not a fault of the backup.
  private mutating func addFault(_ error: KeyhaulError, isListError: Bool) throws(KeyhaulError) {
    if error == Self.cancelled { throw Self.cancelledBeforeLastFile }
    if error.isResourceShortage || isListError && error.category == .failed { throw error }
    let fault: BackupVerification.Fault =
      isListError
      ? .init(.database, .databaseDamaged, file: archive.layout.listName, error.reason)
      : .init(.files, .payloadUnreadable, error.reason)
    verification.add(fault, because: error)
  }

  private static var cancelledBeforeLastFile: KeyhaulError {
    KeyhaulError(DataProtectionError(.cancelled, "it was stopped before the last file"))
  }

  /// Records the result of the check of files.
  private mutating func conclude(_ totals: FileCheckTotals, unlistedCount: Int) {
    noteUnlisted(unlistedCount)
    guard archive.canReadPayloads else {
      // The payloads of a stream cannot be read again, but missing ones and invalid records are known.
      let missingCount = verification.missingCount
      let damagedCount = verification.faultCount[.files, default: 0] - missingCount
      let parts = [
        missingCount > 0 ? "\(HumanReadable.count(missingCount, "listed file")) not stored" : nil,
        damagedCount > 0 ? "\(HumanReadable.grouped(damagedCount)) damaged" : nil,
      ].compactMap(\.self)
      if !parts.isEmpty { verification.conclude(.files, parts.joined(separator: ", ")) }
      verification.skip(.files, reason: Self.streamReason)
      return
    }
    verification.notes += totals.otherSizeNotes.sorted()
    verification.files = BackupVerification.FileCounts(
      listed: totals.listed, present: totals.present, unstored: totals.unstored,
      missing: verification.missingCount + (totals.isKeychainMissing ? 1 : 0),
      unlisted: unlistedCount, withMatchingDigest: totals.withMatchingDigest, withoutDigest: totals.withoutDigest,
      withValidPadding: totals.withValidPadding, otherSize: totals.otherSize, unread: totals.withoutKey)
    // The check of the keychain reports the fault.
    verification.conclude(.files, detail(of: totals), failsForOtherCheck: totals.isKeychainMissing)
  }

  private static let streamReason = "a stream can be read only once: verify a file or folder to check every payload"

  /// Checks that a file is stored.
  ///
  /// - Parameter isKeychainCheckedSeparately: Whether the keychain file has its own check, which requires keys.
  private mutating func checkPresence(
    of file: ListedFile, in stored: StoredPayloads, isKeychainCheckedSeparately: Bool, _ totals: inout FileCheckTotals
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
    let isSeparateKeychain = isKeychainCheckedSeparately && file.fileIdentifier == KeychainPayload.fileIdentifier
    do throws(KeyhaulError) {
      if try file.record()?.needsPayload == false {
        totals.present += 1
        totals.unstored += 1
      } else if isSeparateKeychain {
        totals.isKeychainMissing = true
      } else {
        verification.add(.init(.files, .payloadMissing, file: Self.name(of: file), "it is listed but not stored"))
      }
    } catch {
      if !isSeparateKeychain { add(error, of: file, &totals) }
    }
  }

  /// Checks the record and the key of a stored payload that cannot be read again. Also checks that it is listed only
  /// once.
  ///
  /// - Parameter isAlreadyListed: Whether an earlier row lists the same payload.
  private mutating func checkRecord(
    of file: ListedFile, with keys: ClassKeys?, isAlreadyListed: Bool, _ totals: inout FileCheckTotals
  ) {
    if isAlreadyListed {
      totals.faults.add(.init(.files, .recordMalformed, file: Self.name(of: file), "it is listed more than once"))
      return
    }
    do throws(KeyhaulError) {
      switch keys {
      case .none: _ = try PayloadScanner(storedBytesOf: file, in: archive)
      case .some(let keys): _ = try PayloadScanner(of: file, in: archive, with: keys)
      }
    } catch {
      // With keys, the check of the keychain reports an error of its file.
      let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
      if !isKeychain || keys == nil { add(error, of: file, &totals) }
    }
  }

  /// Adds the fault for an error of reading a file, or counts the file if its key requires the device.
  mutating func add(_ error: KeyhaulError, of file: ListedFile, _ totals: inout FileCheckTotals) {
    let kind: BackupVerification.Fault.Kind
    switch error.code {
    // The payload was removed after the files were listed.
    case .payloadMissing: kind = .payloadMissing
    case .keyUnavailable:
      totals.withoutKey += 1
      return
    case .unreadable, .hostile: kind = .payloadUnreadable
    case .truncated: kind = .payloadCut
    default: kind = .recordMalformed
    }
    verification.recordHostility(of: error)
    totals.faults.add(
      .init(
        .files, kind, file: Self.name(of: file),
        kind == .payloadMissing ? "it is listed but not stored" : error.reason))
  }

  private func detail(of totals: FileCheckTotals) -> String {
    var parts = ["\(HumanReadable.grouped(totals.present)) of \(HumanReadable.grouped(totals.listed)) present"]
    if totals.unstored > 0 { parts.append("\(HumanReadable.grouped(totals.unstored)) of them empty and not stored") }
    if totals.isKeychainMissing { parts.append("the keychain's is not") }
    if totals.withMatchingDigest > 0 {
      let count = HumanReadable.grouped(totals.withMatchingDigest)
      parts.append(totals.withMatchingDigest == 1 ? "1 digest matches" : "\(count) digests match")
    }
    if totals.withoutDigest > 0 { parts.append("\(HumanReadable.grouped(totals.withoutDigest)) without a digest") }
    if totals.withValidPadding > 0 {
      let count = HumanReadable.grouped(totals.withValidPadding)
      let text = totals.withValidPadding == 1 ? "1 padding valid" : "\(count) paddings valid"
      parts.append(totals.isKeychainRead ? "\(text) apart from the keychain's" : text)
    }
    if totals.otherSize > 0 {
      parts.append("\(HumanReadable.grouped(totals.otherSize)) with a size that differs from the record")
    }
    if totals.withoutKey > 0 {
      parts.append("\(HumanReadable.grouped(totals.withoutKey)) encrypted with a key that needs the device")
    }
    let damagedCount = verification.faultCount[.files, default: 0] - verification.missingCount
    if damagedCount > 0 { parts.append("\(HumanReadable.grouped(damagedCount)) damaged") }
    return parts.joined(separator: ", ")
  }

  private mutating func noteUnlisted(_ count: Int) {
    guard count > 0 else { return }
    verification.notes.append(
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
      verification.add(
        .init(
          .files, .payloadCut, file: identifier,
          byteCount: stored.byteCount(of: identifier).flatMap(Int.init(exactly:)),
          "its size is not valid for an encrypted file"))
    }
    let faultCount = verification.faultCount[.files, default: 0]
    let total = "\(HumanReadable.count(stored.count, "file")) stored"
    verification.conclude(
      .files,
      faultCount == 0 ? "\(total), each of whole blocks" : "\(total), \(HumanReadable.grouped(faultCount)) cut short")
  }
}

extension BackupVerifier {
  /// Starts the check of the seal, if the backup has one.
  mutating func beginSeal() throws(KeyhaulError) {
    sealVerifier = try SealVerifier(archive)
  }

  /// Reads all payloads for the seal, if no other check has read them because the list of files cannot be decrypted.
  ///
  /// - Throws: `.interrupted` if `progress` returns `false`.
  mutating func checkSealedPayloads(progress: BackupVerification.Progress) throws(KeyhaulError) {
    guard let sealVerifier, archive.canReadPayloads else { return }
    let verifier = try PayloadVerifier(archive, measuresForSeal: true, keys: nil)
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
    guard let seal = archive.seal else { return verification.skip(.seal, reason: unsealedText) }
    if !arePayloadsSealChecked { try readSealedPayloads(progress) }
    // A changed seal is reported first, because it proves nothing about the files.
    let reason = try authenticate(with: keys)
    for violation in seal.violations { add(violation) }
    if arePayloadsSealChecked, let sealVerifier {
      sealVerifier.finish()
      for violation in sealVerifier.violations { add(violation) }
    }
    concludeSeal(isKeyed: seal.isKeyed, reasonForNoAuthentication: reason)
  }

  /// Records the result of the check of the seal.
  private mutating func concludeSeal(isKeyed: Bool, reasonForNoAuthentication reason: String?) {
    let matchingCount = sealVerifier?.matchingCount ?? 0
    let matches = "\(HumanReadable.count(matchingCount, "file")) \(matchingCount == 1 ? "matches" : "match") the seal"
    guard verification.faultCount[.seal] == nil else {
      return verification.conclude(.seal, sealVerifier == nil ? "the seal cannot be read" : matches)
    }
    guard archive.canReadPayloads else { return verification.skip(.seal, reason: Self.streamReason) }
    verification.isEachFileSealed = arePayloadsSealChecked
    if let reason {
      verification.skip(.seal, reason: "\(matches); \(reason)")
    } else {
      verification.conclude(
        .seal,
        isKeyed
          ? "\(matches), which was made with the backup's password"
          : "\(matches), which was made without a password: it detects accidents, but not attacks")
    }
  }

  /// Reads the payloads for the seal. An error becomes a fault, unless `progress` stopped the read.
  private mutating func readSealedPayloads(_ progress: BackupVerification.Progress) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      try checkSealedPayloads(progress: progress)
    } catch {
      if error == Self.cancelled { throw Self.cancelledBeforeLastFile }
      verification.add(.init(.seal, .sealBroken, file: MetadataFile.seal.path, error.reason), because: error)
    }
  }

  /// Checks the code of a keyed seal.
  ///
  /// If the code cannot be checked although keys are available, the seal counts as broken, because Keyhaul writes no
  /// such seal.
  ///
  /// - Returns: The reason why a keyed seal is not authenticated, or `nil` if its code was checked or it is unkeyed.
  private mutating func authenticate(with keys: ClassKeys?) throws(KeyhaulError) -> String? {
    guard archive.seal?.isKeyed == true else { return nil }
    switch keys {
    case .none: return "the password is needed to check whether the seal is genuine"
    case .some(let keys):
      do throws(KeyhaulError) {
        if let violation = try archive.sealViolation(with: keys) {
          verification.findings.append(.sealBroken(violation))
          add(violation)
        }
        return nil
      } catch {
        guard error.category != .failed else { throw error }
        verification.add(
          .init(
            .seal, .sealBroken, file: MetadataFile.seal.path,
            "its authentication code cannot be checked: \(error.reason)"), because: error)
        return nil
      }
    }
  }

  private mutating func add(_ violation: SealViolation) {
    verification.add(.init(.seal, .sealBroken, file: violation.file, violation.reason))
    if violation.isFileMissing { verification.sealedMissingCount += 1 }
  }

  private var unsealedText: String {
    let count = verification.files?.unproven ?? 0
    guard count > 0 else { return "there is none" }
    return "there is none, so changes in \(HumanReadable.count(count, "file")) could not be detected"
  }
}

/// The counts of files from the passes over the list and the payloads.
struct FileCheckTotals {
  var listed = 0
  /// The number of files that are stored, or empty without a payload.
  var present = 0
  /// The number of files with a payload.
  var stored = 0
  /// The number of empty files without a payload.
  var unstored = 0
  /// Whether the keychain file, which has its own check, is listed but not stored.
  var isKeychainMissing = false
  /// The number of files that match their recorded digest.
  var withMatchingDigest = 0
  /// The number of files without a recorded digest, in which changes cannot be detected.
  var withoutDigest = 0
  /// The number of encrypted files with valid padding, without the keychain file.
  var withValidPadding = 0
  /// Whether the keychain file, whose padding has its own check, was read.
  var isKeychainRead = false
  /// The number of files whose size differs from the recorded one.
  var otherSize = 0
  /// Notes about the first files whose size differs, with both sizes.
  var otherSizeNotes: [String] = []
  /// The number of files whose class key requires an unavailable device key.
  var withoutKey = 0
  var readByteCount: Int64 = 0
  /// The faults of payloads.
  var faults = SortedFaults(limit: BackupVerification.maximumFaultCount)

  mutating func addOtherSize(of name: String, recorded: Int64, found: Int64) {
    otherSize += 1
    guard otherSizeNotes.count < BackupVerification.maximumFaultCount else { return }
    otherSizeNotes.append(
      "\(name) has \(HumanReadable.grouped(found)) bytes, but the manifest records \(HumanReadable.grouped(recorded))")
  }
}

/// The first faults by file name. They do not depend on the order of additions, so that a directory and a container
/// file with the same backup have equal reports.
struct SortedFaults {
  private let limit: Int
  private var faults: [BackupVerification.Fault] = []
  /// The number of added faults, including those above the limit.
  private(set) var count = 0

  /// Creates an empty list.
  ///
  /// - Parameter limit: The maximum number of faults.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ fault: BackupVerification.Fault) {
    count += 1
    faults.append(fault)
    // At most twice the limit is kept, so that the faults are not sorted after each addition.
    if faults.count > 2 * limit { faults = first }
  }

  /// The sorted faults, up to the limit.
  var first: [BackupVerification.Fault] {
    Array(
      faults.sorted { ($0.file ?? "", $0.kind.rawValue) < ($1.file ?? "", $1.kind.rawValue) }.prefix(limit))
  }
}
