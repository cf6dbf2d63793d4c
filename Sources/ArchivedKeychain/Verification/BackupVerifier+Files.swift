import BackupArchive
import DataProtection
import KeychainFormats

extension BackupVerifier {
  /// What the pass over the payloads has seen.
  private struct Tally {
    var listed = 0
    /// Those that are stored, or empty and need no payload.
    var present = 0
    var stored = 0
    var digests = 0
    var otherSizes = 0
    /// Files whose class key needs hardware that is not at hand.
    var sealed = 0
    var readByteCount: Int64 = 0
  }

  /// Reads every payload that the list names, in portions, and holds it against its digest and its padding.
  ///
  /// - Parameter keys: `nil` for what the stored bytes alone say.
  mutating func checkFiles(
    of list: FileList, with keys: borrowing ClassKeys?, progress: BackupVerification.Progress
  ) throws(ArchivedKeychainError) {
    let stored: StoredPayloads
    do throws(BackupArchiveError) {
      stored = try archive.storedFiles()
    } catch {
      throw ArchivedKeychainError(error)
    }
    guard archive.canReadPayloads else {
      try checkPresence(of: list, in: stored)
      return
    }
    var tally = Tally()
    var isCancelled = false
    do throws(BackupArchiveError) {
      try list.forEachFile { (file) throws(BackupArchiveError) in
        guard !isCancelled, file.kind == .file else { return }
        tally.listed += 1
        check(file, with: keys, stored: stored, &tally)
        isCancelled = !progress(tally.readByteCount, stored.byteCount)
      }
    } catch {
      findings.add(.init(.database, .databaseDamaged, file: archive.layout.listName, error.reason), because: error)
    }
    if isCancelled {
      throw ArchivedKeychainError(DataProtectionError(.cancelled, "it was told to stop before the last file"))
    }
    noteUnlisted(stored.count - tally.stored)
    findings.conclude(.files, detail(of: tally, withoutKeys: keys == nil))
  }

  private mutating func check(
    _ file: ListedFile, with keys: borrowing ClassKeys?, stored: StoredPayloads, _ tally: inout Tally
  ) {
    let name = Self.name(of: file)
    let isStored = stored.byteCount(of: file.fileIdentifier) != nil
    if isStored {
      tally.present += 1
      tally.stored += 1
    }
    // With keys at hand the keychain's file has a check of its own.
    let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
    do throws(BackupArchiveError) {
      let record = try file.record()
      guard isStored || record?.size != 0 else {
        tally.present += 1
        return
      }
      let (reading, plainDigest) = try read(file, with: keys, record: record)
      tally.readByteCount += reading.storedByteCount
      if let digest = record?.digest {
        tally.digests += 1
        guard digest == reading.storedSHA1 || digest == plainDigest else {
          // The keychain's own check finds this too where nothing is encrypted.
          if isKeychain, keys != nil, !archive.isEncrypted { return }
          findings.add(
            .init(
              isKeychain && keys != nil ? .keychain : .files, .digestMismatch, file: name,
              byteCount: Int(exactly: reading.storedByteCount), "its bytes do not have the digest that the list records"
            ))
          return
        }
      }
      guard keys != nil, archive.isEncrypted, !isKeychain else { return }
      guard reading.hasValidPadding else {
        findings.add(
          .init(
            .files, .paddingInvalid, file: name, offset: Int(exactly: max(0, reading.storedByteCount - 16)),
            "it does not end in its padding"))
        return
      }
      if let size = record?.size, size != reading.plainByteCount { tally.otherSizes += 1 }
    } catch {
      guard !isKeychain || keys == nil else { return }
      add(error, of: file, name: name, with: keys, &tally)
    }
  }

  /// - Returns: Also SHA-1 of the plain bytes where the file is decrypted and the list has a digest: some lists of
  ///   encrypted backups have that of the plain content.
  private func read(
    _ file: ListedFile, with keys: borrowing ClassKeys?, record: FileRecord?
  ) throws(BackupArchiveError) -> (PayloadReading, plainDigest: [UInt8]?) {
    switch keys {
    case .none:
      return (try archive.readStoredPayload(of: file), nil)
    case .some(let keys):
      guard archive.isEncrypted, record?.digest != nil else {
        return (try archive.readPayload(of: file, with: keys) { (_) throws(BackupArchiveError) in }, nil)
      }
      var digest = try Self.newDigest()
      let reading = try archive.readPayload(of: file, with: keys) { (bytes) throws(BackupArchiveError) in
        do throws(DataProtectionError) {
          try digest.update(bytes)
        } catch {
          throw BackupArchiveError(.unreadable, error.reason)
        }
      }
      do throws(DataProtectionError) {
        return (reading, try digest.finish())
      } catch {
        throw BackupArchiveError(.unreadable, error.reason)
      }
    }
  }

  private static func newDigest() throws(BackupArchiveError) -> SHA1Stream {
    do throws(DataProtectionError) {
      return try SHA1Stream()
    } catch {
      throw BackupArchiveError(.unreadable, error.reason)
    }
  }

  private mutating func add(
    _ error: BackupArchiveError, of file: ListedFile, name: String, with keys: borrowing ClassKeys?,
    _ tally: inout Tally
  ) {
    let kind: BackupVerification.Fault.Kind
    switch error.code {
    case .payloadMissing: kind = .payloadMissing
    case .keyUnavailable:
      tally.sealed += 1
      return
    case .unreadable, .hostile: kind = .payloadUnreadable
    case .truncated: kind = .payloadCut
    default: kind = .recordMalformed
    }
    findings.add(
      .init(.files, kind, file: name, kind == .payloadMissing ? "it is listed and not stored" : error.reason),
      because: error)
  }

  private func detail(of tally: Tally, withoutKeys: Bool) -> String {
    let missing = findings.missingCount
    var parts = ["\(Amounts.grouped(tally.present)) of \(Amounts.grouped(tally.listed)) present"]
    let isRight = tally.present > 0 && findings.faultCount[.files, default: 0] == missing
    if isRight, archive.isEncrypted, !withoutKeys {
      parts.append(tally.otherSizes == 0 ? "size and padding right" : "padding right")
    } else if isRight, tally.digests > 0 {
      parts.append(tally.digests == 1 ? "its digest right" : "digests right")
    }
    if tally.otherSizes > 0 { parts.append("\(Amounts.grouped(tally.otherSizes)) of another size than recorded") }
    if tally.sealed > 0 { parts.append("\(Amounts.grouped(tally.sealed)) under a key that needs the device") }
    let damaged = findings.faultCount[.files, default: 0] - missing
    if damaged > 0 { parts.append("\(Amounts.grouped(damaged)) damaged") }
    return parts.joined(separator: ", ")
  }

  private mutating func noteUnlisted(_ count: Int) {
    guard count > 0 else { return }
    findings.notes.append(
      "\(Amounts.count(count, "stored file")) \(count == 1 ? "is" : "are") not in the list of files")
  }

  /// Domain and path as people know them; what has none goes by the name under which it is stored.
  private static func name(of file: ListedFile) -> String {
    guard let domain = file.domain, let path = file.relativePath else { return file.fileIdentifier }
    return "\(domain)/\(path)"
  }

  // MARK: Without reading

  /// A stream is gone once it was read; that everything was in it is known.
  private mutating func checkPresence(of list: FileList, in stored: StoredPayloads) throws(ArchivedKeychainError) {
    do throws(BackupArchiveError) {
      let missing = try list.missingPayloads(in: stored)
      for identifier in missing where identifier != KeychainPayload.fileIdentifier {
        findings.add(.init(.files, .payloadMissing, file: identifier, "it is listed and not stored"))
      }
    } catch {
      findings.add(.init(.database, .databaseDamaged, file: archive.layout.listName, error.reason), because: error)
    }
    if findings.missingCount > 0 {
      findings.conclude(.files, "\(Amounts.count(findings.missingCount, "listed file")) not stored")
    }
    findings.leaveOut(.files, "a stream can be read only once: verify a file or a folder to check every payload")
  }

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
            "its size is not one that an encrypted file has"))
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
