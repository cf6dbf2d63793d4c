import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// Holds the list against what is stored, in one pass over the list, and reads every payload that it names, in one pass
  /// over what is stored: a payload is held against its digest and its padding as it comes by.
  ///
  /// - Parameter keys: `nil` for what the stored bytes alone say.
  /// - Returns: The list counted; `nil` if it cannot be read to its end.
  mutating func checkFiles(
    of list: FileList, with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) -> FileList.Listing? {
    let stored: StoredPayloads
    stored = try archive.storedFiles()
    var tally = FileTally()
    var index = FileIndex()
    var listing: FileList.Listing?
    var files: PayloadFiles?
    do throws(KeyhaulError) {
      listing = try list.listing(against: stored) { (file, place) throws(KeyhaulError) in
        guard file.kind == .file else { return }
        checkPresence(of: file, in: stored, keychainIsApart: keys != nil, &tally)
        if stored.byteCount(of: file.fileIdentifier) != nil {
          if !archive.canReadPayloads { checkRecord(of: file, with: keys, isListed: index.holds(file), &tally) }
          index.add(file, at: place)
        }
        guard progress(0, stored.byteCount) else { throw Self.cancelled }
      }
      if archive.canReadPayloads {
        let listed = PayloadFiles(list, index)
        files = listed
        try checkPayloads(stored, as: listed, with: keys, &tally, progress: progress)
      }
    } catch {
      if error == Self.cancelled {
        throw KeyhaulError(DataProtectionError(.cancelled, "it was stopped before the last file"))
      }
      // Otherwise it is the one file that holds the payloads.
      let isOfList = listing == nil || files?.failure != nil
      if error.isShortage || isOfList && error.category == .failed { throw error }
      findings.add(
        .init(
          isOfList ? .database : .files, isOfList ? .databaseDamaged : .payloadUnreadable,
          file: isOfList ? archive.layout.listName : nil, error.reason), because: error)
    }
    findings.add(tally.faults)
    conclude(tally, unlisted: stored.count - tally.stored, withoutKeys: keys == nil)
    return listing
  }

  private mutating func conclude(_ tally: FileTally, unlisted: Int, withoutKeys: Bool) {
    noteUnlisted(unlisted)
    guard archive.canReadPayloads else {
      // A stream cannot be read again, but its content and its entries in the list are known.
      let (missing, all) = (findings.missingCount, findings.faultCount[.files, default: 0])
      let parts = [
        missing > 0 ? "\(HumanReadable.count(missing, "listed file")) not stored" : nil,
        all > missing ? "\(HumanReadable.grouped(all - missing)) damaged" : nil,
      ].compactMap(\.self)
      if !parts.isEmpty { findings.conclude(.files, parts.joined(separator: ", ")) }
      findings.leaveOut(.files, "a stream can be read only once: verify a file or folder to check every payload")
      return
    }
    findings.notes += tally.otherSizeNotes.sorted()
    findings.files = BackupVerification.FileCounts(
      listed: tally.listed, present: tally.present, unstored: tally.unstored,
      missing: findings.missingCount + (tally.isKeychainMissing ? 1 : 0),
      surplus: unlisted, digestsRight: tally.digests, withoutDigest: tally.undigested, paddingRight: tally.paddings,
      otherSize: tally.otherSizes, unread: tally.sealed)
    // The keychain's own check has the fault.
    findings.conclude(.files, detail(of: tally, withoutKeys: withoutKeys), fails: tally.isKeychainMissing)
  }

  /// - Parameter keychainIsApart: With keys at hand the keychain's file has a check of its own.
  private mutating func checkPresence(
    of file: ListedFile, in stored: StoredPayloads, keychainIsApart: Bool, _ tally: inout FileTally
  ) {
    tally.listed += 1
    if stored.byteCount(of: file.fileIdentifier) != nil {
      tally.present += 1
      tally.stored += 1
      return
    }
    if stored.isIrregular(file.fileIdentifier) {
      return add(KeyhaulError(.hostile, "a link, a pipe or a folder is in its place"), of: file, &tally)
    }
    let isKeychain = keychainIsApart && file.fileIdentifier == KeychainPayload.fileIdentifier
    do throws(KeyhaulError) {
      if try file.record()?.needsPayload == false {
        tally.present += 1
        tally.unstored += 1
      } else if isKeychain {
        tally.isKeychainMissing = true
      } else {
        findings.add(.init(.files, .payloadMissing, file: Self.name(of: file), "it is listed but not stored"))
      }
    } catch {
      if !isKeychain { add(error, of: file, &tally) }
    }
  }

  /// Checks the list's entry for a stored payload that cannot be read again: its record, its key, and that it is listed
  /// only once.
  ///
  /// - Parameter isListed: Whether the list has already named the payload.
  private mutating func checkRecord(
    of file: ListedFile, with keys: ClassKeys?, isListed: Bool, _ tally: inout FileTally
  ) {
    if isListed {
      tally.faults.add(.init(.files, .recordMalformed, file: Self.name(of: file), "it is listed more than once"))
      return
    }
    do throws(KeyhaulError) {
      switch keys {
      case .none: _ = try PayloadPass(storedBytesOf: file, in: archive)
      case .some(let keys): _ = try PayloadPass(of: file, in: archive, with: keys)
      }
    } catch {
      // With keys, the keychain check reports it.
      let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
      if !isKeychain || keys == nil { add(error, of: file, &tally) }
    }
  }

  mutating func add(_ error: KeyhaulError, of file: ListedFile, _ tally: inout FileTally) {
    let kind: BackupVerification.Fault.Kind
    switch error.code {
    // Gone since it was seen.
    case .payloadMissing: kind = .payloadMissing
    case .keyUnavailable:
      tally.sealed += 1
      return
    case .unreadable, .hostile: kind = .payloadUnreadable
    case .truncated: kind = .payloadCut
    default: kind = .recordMalformed
    }
    findings.note(error)
    tally.faults.add(
      .init(
        .files, kind, file: Self.name(of: file),
        kind == .payloadMissing ? "it is listed but not stored" : error.reason))
  }

  private func detail(of tally: FileTally, withoutKeys: Bool) -> String {
    let missing = findings.missingCount
    var parts = ["\(HumanReadable.grouped(tally.present)) of \(HumanReadable.grouped(tally.listed)) present"]
    if tally.unstored > 0 { parts.append("\(HumanReadable.grouped(tally.unstored)) of them empty and not stored") }
    if tally.isKeychainMissing { parts.append("the keychain's is not") }
    if tally.digests > 0 {
      parts.append(tally.digests == 1 ? "1 digest matches" : "\(HumanReadable.grouped(tally.digests)) digests match")
    }
    if tally.undigested > 0 { parts.append("\(HumanReadable.grouped(tally.undigested)) without a digest") }
    if tally.paddings > 0 {
      let words = tally.paddings == 1 ? "1 padding valid" : "\(HumanReadable.grouped(tally.paddings)) paddings valid"
      parts.append(tally.isKeychainRead ? "\(words) apart from the keychain's" : words)
    }
    if tally.otherSizes > 0 {
      parts.append(
        "\(HumanReadable.grouped(tally.otherSizes)) with a size that differs from the record")
    }
    if tally.sealed > 0 {
      parts.append("\(HumanReadable.grouped(tally.sealed)) encrypted with a key that needs the device")
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

  /// Domain and path as people know them; what has none goes by the name under which it is stored.
  static func name(of file: ListedFile) -> String {
    guard let domain = file.domain, let path = file.relativePath else { return file.fileIdentifier }
    return "\(domain)/\(path)"
  }

  // MARK: Without reading

  /// Every payload of an encrypted backup is whole blocks, the last of them padding.
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
  /// Begins to hold the backup's files against its seal; nothing where it has none.
  mutating func beginSeal() throws(KeyhaulError) {
    sealCheck = try SealCheck(archive)
  }

  /// Reads what no other check has read: where the list of files stays closed, every payload.
  ///
  /// - Throws: `.interrupted` where `progress` says so.
  mutating func checkSealedPayloads(progress: BackupVerification.Progress) throws(KeyhaulError) {
    guard let sealCheck, archive.canReadPayloads else { return }
    let examiner = try PayloadExaminer(archive, isSealed: true, keys: nil)
    let stored = try archive.storedFiles()
    var readByteCount: Int64 = 0
    try archive.forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
      if let entry = try examiner.examine(payload, as: []).sealEntry { sealCheck.take(entry) }
      readByteCount += stored.byteCount(of: payload.fileIdentifier) ?? 0
      guard progress(readByteCount, stored.byteCount) else { throw Self.cancelled }
    }
    arePayloadsSealChecked = true
  }

  /// Says what the seal shows: which files are not what was sealed, and whether it is the one that was made.
  mutating func checkSeal(
    with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    guard let seal = archive.seal else { return findings.leaveOut(.seal, unsealedText) }
    if !arePayloadsSealChecked { try readPayloads(progress) }
    // A seal that was changed comes first: what it says of the files proves nothing then.
    let reason = try authenticate(with: keys)
    for fault in seal.breaks { addBreak(fault) }
    if arePayloadsSealChecked, let sealCheck {
      sealCheck.finish()
      for fault in sealCheck.breaks { addBreak(fault) }
    }
    let rightCount = sealCheck?.rightCount ?? 0
    let right = "\(HumanReadable.count(rightCount, "file")) \(rightCount == 1 ? "matches" : "match") the seal"
    guard findings.faultCount[.seal] == nil else {
      return findings.conclude(.seal, sealCheck == nil ? "the seal cannot be read" : right)
    }
    guard archive.canReadPayloads else {
      return findings.leaveOut(
        .seal, "a stream can be read only once: verify a file or folder to check every payload")
    }
    findings.isEachFileSealed = arePayloadsSealChecked
    if let reason {
      findings.leaveOut(.seal, "\(right); \(reason)")
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

  /// Checks the authentication code of a keyed seal.
  ///
  /// If the code cannot be checked although the keys are available, the seal counts as broken: no seal is written like
  /// that.
  ///
  /// - Returns: The reason why a keyed seal is not authenticated; `nil` if a check of its code was attempted, or the
  ///   seal is not keyed.
  private mutating func authenticate(with keys: ClassKeys?) throws(KeyhaulError) -> String? {
    guard archive.seal?.isKeyed == true else { return nil }
    switch keys {
    case .none: return "the password is needed to check whether the seal is genuine"
    case .some(let keys):
      do throws(KeyhaulError) {
        if let fault = try archive.sealBreak(with: keys) {
          findings.found.append(.sealBroken(fault))
          addBreak(fault)
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

  private mutating func addBreak(_ fault: SealBreak) {
    findings.add(.init(.seal, .sealBroken, file: fault.file, fault.reason))
    if fault.isNotFound { findings.sealedMissingCount += 1 }
  }

  private var unsealedText: String {
    let count = findings.files?.unproven ?? 0
    guard count > 0 else { return "there is none" }
    return "there is none, so changes in \(HumanReadable.count(count, "file")) could not be detected"
  }
}

/// What the passes over the list and over the payloads have seen.
struct FileTally {
  var listed = 0
  /// Those that are stored, or empty and need no payload.
  var present = 0
  var stored = 0
  /// Those that are empty and have no payload.
  var unstored = 0
  /// Whether the keychain's file, which has a check of its own, is listed and not stored.
  var isKeychainMissing = false
  var digests = 0
  /// Files of which the list has no digest, so that a changed byte in them cannot be seen.
  var undigested = 0
  /// Encrypted files that end in their padding, but for the keychain's.
  var paddings = 0
  /// Whether the keychain's file, whose padding its own check looks at, was among those that were read.
  var isKeychainRead = false
  var otherSizes = 0
  /// The first of them, with both sizes.
  var otherSizeNotes: [String] = []
  /// Files whose class key needs hardware that is not available.
  var sealed = 0
  var readByteCount: Int64 = 0
  /// What is wrong with payloads, in whatever order they came by.
  var faults = SortedFaults(limit: BackupVerification.maximumFaultCount)

  mutating func addOtherSize(of name: String, recorded: Int64, found: Int64) {
    otherSizes += 1
    guard otherSizeNotes.count < BackupVerification.maximumFaultCount else { return }
    otherSizeNotes.append(
      "\(name) has \(HumanReadable.grouped(found)) bytes, but the manifest records \(HumanReadable.grouped(recorded))")
  }
}

/// The first faults by their files' names, whatever order they are found in: a directory and one file that hold the
/// same backup give their payloads in different orders, and get the same report.
struct SortedFaults {
  private let limit: Int
  private var kept: [BackupVerification.Fault] = []
  private(set) var count = 0

  /// - Parameter limit: The most that are wanted.
  init(limit: Int) { self.limit = limit }

  mutating func add(_ fault: BackupVerification.Fault) {
    count += 1
    kept.append(fault)
    // Sorted once for as many as are wanted, and never more than twice as many at hand.
    if kept.count > 2 * limit { kept = first }
  }

  /// Sorted, no more than are wanted.
  var first: [BackupVerification.Fault] {
    Array(
      kept.sorted { ($0.file ?? "", $0.kind.rawValue) < ($1.file ?? "", $1.kind.rawValue) }.prefix(limit))
  }
}
