import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// Holds the list against what is stored, in one pass over the list, and reads every payload that it names, in one pass
  /// over what is stored: a payload is held against its digest and its padding as it comes by.
  ///
  /// - Parameter keys: `nil` for what the stored bytes alone say.
  /// - Returns: The list counted; `nil` where it cannot be read to its end.
  mutating func checkFiles(
    of list: FileList, with keys: borrowing ClassKeys?, progress: BackupVerification.Progress
  ) throws(ArchivedKeychainError) -> FileList.Listing? {
    let stored: StoredPayloads
    do throws(BackupArchiveError) {
      stored = try archive.storedFiles()
    } catch {
      throw ArchivedKeychainError(error)
    }
    var tally = FileTally()
    var index = FileIndex()
    var listing: FileList.Listing?
    var files: PayloadFiles?
    do throws(BackupArchiveError) {
      listing = try list.listing(against: stored) { (file, place) throws(BackupArchiveError) in
        guard file.kind == .file else { return }
        checkPresence(of: file, in: stored, keychainIsApart: keys != nil, &tally)
        if stored.byteCount(of: file.fileIdentifier) != nil { index.add(file, at: place) }
        guard progress(0, stored.byteCount) else { throw Self.cancelled }
      }
      if archive.canReadPayloads {
        let listed = PayloadFiles(list, index)
        files = listed
        try checkPayloads(stored, as: listed, with: keys, &tally, progress: progress)
      }
    } catch {
      if error == Self.cancelled {
        throw ArchivedKeychainError(DataProtectionError(.cancelled, "it was stopped before the last file"))
      }
      // Otherwise it is the one file that holds the payloads.
      let isOfList = listing == nil || files?.failure != nil
      if isOfList, error.category == .failed { throw ArchivedKeychainError(error) }
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
    guard archive.canReadPayloads else {
      // A stream is gone once it was read; that everything was in it is known.
      if findings.missingCount > 0 {
        findings.conclude(.files, "\(Amounts.count(findings.missingCount, "listed file")) not stored")
      }
      findings.leaveOut(.files, "a stream can be read only once: verify a file or folder to check every payload")
      return
    }
    noteUnlisted(unlisted)
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
      return add(BackupArchiveError(.hostile, "a link, a pipe or a folder is in its place"), of: file, &tally)
    }
    let isKeychain = keychainIsApart && file.fileIdentifier == KeychainPayload.fileIdentifier
    do throws(BackupArchiveError) {
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

  mutating func add(_ error: BackupArchiveError, of file: ListedFile, _ tally: inout FileTally) {
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
    var parts = ["\(Amounts.grouped(tally.present)) of \(Amounts.grouped(tally.listed)) present"]
    if tally.unstored > 0 { parts.append("\(Amounts.grouped(tally.unstored)) of them empty and not stored") }
    if tally.isKeychainMissing { parts.append("the keychain's is not") }
    if tally.digests > 0 {
      parts.append(tally.digests == 1 ? "1 digest right" : "\(Amounts.grouped(tally.digests)) digests right")
    }
    if tally.undigested > 0 { parts.append("\(Amounts.grouped(tally.undigested)) without a digest") }
    if tally.paddings > 0 {
      let words = tally.paddings == 1 ? "1 padding right" : "\(Amounts.grouped(tally.paddings)) paddings right"
      parts.append(tally.isKeychainRead ? "\(words) apart from the keychain's" : words)
    }
    if tally.otherSizes > 0 {
      parts.append(
        "\(Amounts.grouped(tally.otherSizes)) with a size that differs from the record")
    }
    if tally.sealed > 0 { parts.append("\(Amounts.grouped(tally.sealed)) under a key that needs the device") }
    let damaged = findings.faultCount[.files, default: 0] - missing
    if damaged > 0 { parts.append("\(Amounts.grouped(damaged)) damaged") }
    return parts.joined(separator: ", ")
  }

  private mutating func noteUnlisted(_ count: Int) {
    guard count > 0 else { return }
    findings.notes.append(
      "\(Amounts.count(count, "stored file")) \(count == 1 ? "is" : "are") not in the manifest")
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
  mutating func checkStoredSizes() throws(ArchivedKeychainError) {
    do throws(BackupArchiveError) {
      let stored = try archive.storedFiles()
      for identifier in stored.fileIdentifiers(whereByteCount: { $0 == 0 || !$0.isMultiple(of: 16) }) {
        findings.add(
          .init(
            .files, .payloadCut, file: identifier,
            byteCount: stored.byteCount(of: identifier).flatMap(Int.init(exactly:)),
            "its size is not valid for an encrypted file"))
      }
      let faults = findings.faultCount[.files, default: 0]
      let sum = "\(Amounts.count(stored.count, "file")) stored"
      findings.conclude(
        .files, faults == 0 ? "\(sum), each of whole blocks" : "\(sum), \(Amounts.grouped(faults)) cut short")
    } catch {
      throw ArchivedKeychainError(error)
    }
  }
}
