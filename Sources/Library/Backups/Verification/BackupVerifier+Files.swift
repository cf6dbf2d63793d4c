import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// Compares the file list with the stored payloads, and then reads all listed payloads to check their digests and
  /// padding. Each step is a single pass.
  ///
  /// - Parameter keys: The class keys, or `nil` to check only the stored bytes.
  /// - Returns: The counts of the file list, or `nil` if it cannot be read completely.
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

  /// The error if `progress` stopped the verification.
  static var cancelledBeforeLastFile: KeyhaulError {
    KeyhaulError(DataProtectionError(.cancelled, "it was stopped before the last file"))
  }

  /// Records the result of the file check.
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
    verification.notes += totals.sizeMismatchNotes.sorted()
    verification.files = BackupVerification.FileCounts(
      listed: totals.listed, present: totals.present, emptyWithoutPayload: totals.emptyWithoutPayload,
      missing: verification.missingCount + (totals.isKeychainMissing ? 1 : 0),
      unlisted: unlistedCount, withMatchingDigest: totals.withMatchingDigest, withoutDigest: totals.withoutDigest,
      withValidPadding: totals.withValidPadding, sizeMismatches: totals.sizeMismatches, unread: totals.withoutKey)
    // The check of the keychain reports the missing keychain file.
    verification.conclude(.files, detail(of: totals), failsForOtherCheck: totals.isKeychainMissing)
  }

  /// The reason why the payloads of a stream are not checked.
  static let streamReason = "a stream can be read only once: verify a file or folder to check every payload"

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
        totals.emptyWithoutPayload += 1
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
      _ = try PayloadScanner(of: file, in: archive, with: keys)
    } catch {
      // With keys, the check of the keychain reports an error of its file.
      let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
      if !isKeychain || keys == nil { add(error, of: file, &totals) }
    }
  }

  /// Adds the fault for a failed read of a file, or counts the file if its key requires the device.
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
    if totals.emptyWithoutPayload > 0 {
      parts.append("\(HumanReadable.grouped(totals.emptyWithoutPayload)) of them empty and not stored")
    }
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
    if totals.sizeMismatches > 0 {
      parts.append("\(HumanReadable.grouped(totals.sizeMismatches)) with a size that differs from the record")
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
