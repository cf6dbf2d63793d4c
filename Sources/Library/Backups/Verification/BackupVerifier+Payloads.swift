package import Basics
package import KeychainCrypto
package import KeychainFormats
import Synchronization

extension BackupVerifier {
  /// The maximum number of payloads in a batch, and the total size at which a batch ends.
  private static let batchLimit = (count: 64, byteCount: Int64(4 << 20))

  /// Reads all payloads and compares them with their records and the seal. Separate files are read concurrently, with
  /// the same results.
  mutating func checkPayloads(
    _ stored: StoredPayloads, as files: PayloadFiles, with keys: ClassKeys?, _ totals: inout FileCheckTotals,
    progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    let verifier = try PayloadVerifier(archive, measuresForSeal: sealVerifier != nil, keys: keys)
    if archive.hasSeparatePayloadFiles, jobs > 1, stored.count > 1 {
      try verifyConcurrently(stored, as: files, verifier, withKeys: keys != nil, &totals, progress)
    } else {
      try archive.forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
        let files = try files.files(of: payload.fileIdentifier)
        record(try verifier.verify(payload, as: files), withKeys: keys != nil, &totals)
        guard progress(totals.readByteCount, stored.byteCount) else { throw Self.cancelled }
      }
    }
    arePayloadsSealChecked = true
  }

  private mutating func verifyConcurrently(
    _ stored: StoredPayloads, as files: PayloadFiles, _ verifier: PayloadVerifier, withKeys hasKeys: Bool,
    _ totals: inout FileCheckTotals, _ progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    let archive = archive
    var remainingIdentifiers = stored.fileIdentifiers()[...]
    var readByteCount = totals.readByteCount
    let isDone = try ParallelMap.run(
      jobs: jobs,
      next: { () throws(KeyhaulError) -> [BatchedPayload]? in
        try Self.nextBatch(of: &remainingIdentifiers, stored, files)
      },
      shouldContinue: {
        guard !progress(readByteCount, stored.byteCount) else { return true }
        verifier.stop()
        return false
      },
      work: { (batch) throws(KeyhaulError) -> [PayloadVerifier.PayloadCheck] in
        var checks: [PayloadVerifier.PayloadCheck] = []
        for (identifier, listedFiles) in batch {
          checks.append(try verifier.verify(try archive.payload(named: identifier), as: listedFiles))
        }
        return checks
      },
      deliver: { (checks) throws(KeyhaulError) in
        for check in checks { record(check, withKeys: hasKeys, &totals) }
        readByteCount = totals.readByteCount
      })
    guard isDone else { throw Self.cancelled }
  }

  /// A payload with its listed files.
  private typealias BatchedPayload = (identifier: String, files: [ListedFile])

  /// Removes payloads from the remaining ones up to `batchLimit`, or returns `nil` if none remain.
  private static func nextBatch(
    of remainingIdentifiers: inout ArraySlice<String>, _ stored: StoredPayloads, _ files: PayloadFiles
  ) throws(KeyhaulError) -> [BatchedPayload]? {
    var batch: [BatchedPayload] = []
    var byteCount: Int64 = 0
    while batch.count < batchLimit.count, byteCount < batchLimit.byteCount,
      let identifier = remainingIdentifiers.popFirst()
    {
      batch.append((identifier, try files.files(of: identifier)))
      byteCount += stored.byteCount(of: identifier) ?? 0
    }
    return batch.isEmpty ? nil : batch
  }

  private mutating func record(
    _ check: PayloadVerifier.PayloadCheck, withKeys hasKeys: Bool, _ totals: inout FileCheckTotals
  ) {
    // A payload is read once, even if it is listed several times.
    for file in check.files.dropFirst() {
      totals.faults.add(.init(.files, .recordMalformed, file: Self.name(of: file), "it is listed more than once"))
    }
    if let file = check.files.first, let reading = check.reading {
      record(reading, of: file, withKeys: hasKeys, &totals)
    }
    if let entry = check.sealEntry { sealVerifier?.compare(entry) }
  }

  private mutating func record(
    _ result: Result<PayloadReader.Reading, KeyhaulError>, of file: ListedFile, withKeys hasKeys: Bool,
    _ totals: inout FileCheckTotals
  ) {
    let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
    // With keys, the check of the keychain reports the faults of its file.
    let reportsFaults = !isKeychain || !hasKeys
    let reading: PayloadReader.Reading
    switch result {
    case .success(let value): reading = value
    case .failure(let error):
      if reportsFaults { add(error, of: file, &totals) }
      return
    }
    let (record, scan) = (reading.record, reading.payload)
    totals.readByteCount += scan.storedByteCount
    if isKeychain { totals.isKeychainRead = true }
    switch scan.matches(record?.digest) {
    case true?: totals.withMatchingDigest += 1
    // An empty file cannot be changed.
    case nil: if scan.storedByteCount > 0 || record?.size != 0 { totals.withoutDigest += 1 }
    case false?:
      guard reportsFaults else { return }
      totals.faults.add(
        .init(
          .files, .digestMismatch, file: Self.name(of: file), byteCount: Int(exactly: scan.storedByteCount),
          "its bytes do not match the digest in the manifest"))
      return
    }
    let isPlaintextRead = hasKeys || !archive.areFilesEncrypted
    if isPlaintextRead, !isKeychain { recordPlaintext(reading, of: file, &totals) }
  }

  /// Records the padding and the size of a file whose plaintext was read.
  private func recordPlaintext(
    _ reading: PayloadReader.Reading, of file: ListedFile, _ totals: inout FileCheckTotals
  ) {
    let (name, scan) = (Self.name(of: file), reading.payload)
    guard scan.hasValidPadding else {
      let lastBlockOffset = max(0, scan.storedByteCount - Self.blockByteCount)
      totals.faults.add(
        .init(
          .files, .paddingInvalid, file: name, offset: Int(exactly: lastBlockOffset),
          "it does not end with valid padding"))
      return
    }
    if archive.areFilesEncrypted { totals.withValidPadding += 1 }
    if let size = reading.record?.size, size != scan.plainByteCount {
      totals.addOtherSize(of: name, recorded: size, found: scan.plainByteCount)
    }
  }

  /// The block size of the cipher, AES.
  private static let blockByteCount: Int64 = 16
}

/// Reads payloads and compares them with the records of their files. Several can be read at once.
final class PayloadVerifier: Sendable {
  private let archive: BackupArchive
  /// Whether each payload is also measured for a seal.
  private let measuresForSeal: Bool
  /// The class keys, or `nil` to check only the stored bytes.
  private let keys: ClassKeys?
  private let isStopRequested = Atomic(false)
  private let reader: PayloadReader

  /// The result for a payload.
  struct PayloadCheck: Sendable {
    /// The files with the payload's name, in the list's order. Empty if it is not listed.
    let files: [ListedFile]
    /// The result of reading the payload as the first of `files`, or `nil` if it is not listed.
    let reading: Result<PayloadReader.Reading, KeyhaulError>?
    /// The seal entry of the payload, or `nil` if there is no seal.
    let sealEntry: SealFile.Entry?
  }

  init(
    _ archive: BackupArchive, measuresForSeal: Bool, keys: ClassKeys?
  ) throws(KeyhaulError) {
    self.archive = archive
    reader = PayloadReader(archive)
    self.measuresForSeal = measuresForSeal
    self.keys = keys?.sharing()
  }

  /// Stops current reads, whose errors are ignored.
  func stop() { isStopRequested.store(true, ordering: .relaxed) }

  /// Reads a payload.
  ///
  /// - Throws: An error if the cryptography of the seal fails, or the system has no descriptor or memory left. Faults
  ///   of the payload are in the result.
  func verify(_ payload: StoredPayload, as files: [ListedFile]) throws(KeyhaulError) -> PayloadCheck {
    let hasher = measuresForSeal ? try PayloadHasher() : nil
    var reading: Result<PayloadReader.Reading, KeyhaulError>?
    if let file = files.first {
      do throws(KeyhaulError) {
        reading = .success(try read(payload.observed(by: hasher), as: file))
      } catch {
        if error.isResourceShortage { throw error }
        reading = .failure(error)
      }
    }
    let path = archive.layout.storedPath(of: payload.fileIdentifier)
    return PayloadCheck(files: files, reading: reading, sealEntry: try hasher?.entry(of: payload, at: path))
  }

  private func read(_ payload: StoredPayload, as file: ListedFile) throws(KeyhaulError) -> PayloadReader.Reading {
    switch keys {
    case .none: return try reader.measure(payload, as: file, whileReading: checkNotStopped)
    case .some(let keys): return try reader.measure(payload, as: file, with: keys, whileReading: checkNotStopped)
    }
  }

  private func checkNotStopped() throws(KeyhaulError) {
    guard !isStopRequested.load(ordering: .relaxed) else { throw BackupVerifier.cancelled }
  }
}

/// A reader of payloads as listed files, concurrently if they are separate files.
///
/// The digest in a record is that of the stored bytes in most lists of encrypted backups, and of the plaintext in
/// others. If the digest of the stored bytes does not match, a file that can be read again is read again, to compare the
/// digest of its plaintext. After a plaintext digest has matched once, both digests are computed in the first read.
package final class PayloadReader: Sendable {
  private let archive: BackupArchive
  private let hasPlainDigests = Atomic(false)

  /// A payload that was read completely.
  package struct Reading: Sendable {
    /// The list's record of the file.
    package let record: FileRecord?
    /// The result of reading its bytes.
    package let payload: PayloadScan
    /// Whether the payload matches the seal, or `nil` if there is none or it was not compared.
    package var matchesSeal: Bool?

    /// Whether the file is unchanged, according to the digest in the list and the seal, or `nil` if there is neither.
    package var isUnchanged: Bool? {
      let matchesDigest = payload.matches(record?.digest)
      return matchesDigest == false || matchesSeal == false ? false : matchesDigest ?? matchesSeal
    }
  }

  package init(_ archive: BackupArchive) { self.archive = archive }

  /// Passes the plaintext to a closure in portions, and empty portions during a second read. The stored bytes are
  /// compared with the seal.
  ///
  /// - Throws: The errors of `BackupArchive.readPayload(of:with:portion:)`.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys,
    _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    try read(payload, as: file, portion) { () throws(KeyhaulError) in
      try PayloadScanner(of: file, in: archive, with: keys)
    }
  }

  /// Reads the payload with or without keys. Without them, the stored bytes are passed.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys?,
    _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    try read(payload, as: file, portion) { () throws(KeyhaulError) in try scanner(for: file, with: keys) }
  }

  private func read(
    _ payload: StoredPayload, as file: ListedFile,
    _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void,
    with makeScanner: () throws(KeyhaulError) -> PayloadScanner
  ) throws(KeyhaulError) -> Reading {
    let (digests, scanner, hasher) = (digests, try makeScanner(), try archive.payloadHasher())
    let firstReading = Reading(
      record: scanner.record, payload: try scanner.run(payload.observed(by: hasher), digests: digests, portion))
    let matchesSeal = try hasher.flatMap { (hasher) throws(KeyhaulError) in
      try archive.matchesSeal(payload, by: hasher)
    }
    var reading = try recheckingPlaintext(firstReading, of: file, digests, with: makeScanner) {
      () throws(KeyhaulError) in
      try portion(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    reading.matchesSeal = matchesSeal
    return reading
  }

  /// Reads the payload only for its digest, size, and padding.
  ///
  /// - Parameter whileReading: Called for each portion. Its errors end the read.
  package func measure(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys,
    whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    try measure(payload, as: file, whileReading) { () throws(KeyhaulError) in
      try PayloadScanner(of: file, in: archive, with: keys)
    }
  }

  /// Reads the stored bytes only for their digest and size.
  package func measure(
    _ payload: StoredPayload, as file: ListedFile, whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    try measure(payload, as: file, whileReading) { () throws(KeyhaulError) in
      try PayloadScanner(storedBytesOf: file, in: archive)
    }
  }

  private func measure(
    _ payload: StoredPayload, as file: ListedFile, _ whileReading: () throws(KeyhaulError) -> Void,
    with makeScanner: () throws(KeyhaulError) -> PayloadScanner
  ) throws(KeyhaulError) -> Reading {
    let (digests, scanner) = (digests, try makeScanner())
    let reading = Reading(
      record: scanner.record, payload: try scanner.measure(payload, digests: digests, whileReading: whileReading))
    return try recheckingPlaintext(reading, of: file, digests, with: makeScanner, whileReading: whileReading)
  }

  /// The digests of the first read.
  private var digests: PayloadScanner.Digests {
    guard archive.areFilesEncrypted else { return .stored }
    return archive.hasSeparatePayloadFiles && !hasPlainDigests.load(ordering: .relaxed) ? .stored : .all
  }

  /// Reads the payload again if its stored bytes do not match the digest, which may be that of the plaintext.
  private func recheckingPlaintext(
    _ reading: Reading, of file: ListedFile, _ digests: PayloadScanner.Digests,
    with makeScanner: () throws(KeyhaulError) -> PayloadScanner, whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    guard digests == .stored, reading.payload.matches(reading.record?.digest) == false else { return reading }
    let scanner = try makeScanner()
    // Without decryption, there is only one digest.
    guard scanner.decrypts else { return reading }
    let secondScan: PayloadScan
    do throws(KeyhaulError) {
      secondScan = try scanner.measure(try archive.payload(of: file), digests: .all, whileReading: whileReading)
    } catch {
      // The first result stays valid if the second read fails.
      if error.code == .interrupted || error.isResourceShortage { throw error }
      return reading
    }
    // The second result counts only if the bytes are the same.
    guard secondScan.storedSHA1 == reading.payload.storedSHA1, secondScan.matches(reading.record?.digest) == true else {
      return reading
    }
    hasPlainDigests.store(true, ordering: .relaxed)
    return Reading(record: reading.record, payload: secondScan)
  }

  private func scanner(
    for file: ListedFile, with keys: ClassKeys?
  ) throws(KeyhaulError) -> PayloadScanner {
    switch keys {
    case .none: try PayloadScanner(storedBytesOf: file, in: archive)
    case .some(let keys): try PayloadScanner(of: file, in: archive, with: keys)
    }
  }
}

/// Finds the listed files of a payload, for payloads in any order. Not thread-safe.
final class PayloadFiles {
  private let list: FileList
  private let index: FileIndex
  private var reader: FileList.Reader?
  /// The error of reading the list, which is not a fault of a payload.
  private(set) var failure: KeyhaulError?

  /// Creates a look-up.
  ///
  /// - Parameter index: The positions of the files with a payload.
  init(_ list: FileList, _ index: FileIndex) {
    self.list = list
    self.index = index
  }

  /// Returns the files with a payload's identifier, in the list's order.
  func files(of identifier: String) throws(KeyhaulError) -> [ListedFile] {
    do throws(KeyhaulError) {
      let reader = if let reader { reader } else { try list.reader() }
      self.reader = reader
      var files: [ListedFile] = []
      for location in index.locations(of: identifier) {
        if let file = try reader.file(at: location) { files.append(file) }
      }
      return files
    } catch {
      failure = error
      throw error
    }
  }
}
