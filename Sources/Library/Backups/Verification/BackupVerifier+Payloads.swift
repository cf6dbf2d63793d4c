import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// The maximum number of payloads in a batch, and the total size at which a batch ends.
  private static let batchLimit = (count: 64, byteCount: Int64(4 << 20))

  /// Reads all payloads and compares them with their records and the seal. Separate files are read concurrently, with
  /// the same results.
  mutating func checkPayloads(
    _ stored: StoredPayloads, as payloadFiles: PayloadFiles, with keys: ClassKeys?, _ totals: inout FileCheckTotals,
    progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    let verifier = try PayloadVerifier(archive, measuresForSeal: sealVerifier != nil, keys: keys)
    if archive.hasSeparatePayloadFiles, jobs > 1, stored.count > 1 {
      try verifyConcurrently(stored, as: payloadFiles, verifier, withKeys: keys != nil, &totals, progress)
    } else {
      try archive.forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
        let listedFiles = try payloadFiles.files(of: payload.fileIdentifier)
        addCheck(try verifier.verify(payload, as: listedFiles), withKeys: keys != nil, to: &totals)
        guard progress(totals.readByteCount, stored.byteCount) else { throw Self.cancelled }
      }
    }
    arePayloadsComparedWithSeal = true
  }

  private mutating func verifyConcurrently(
    _ stored: StoredPayloads, as payloadFiles: PayloadFiles, _ verifier: PayloadVerifier, withKeys hasKeys: Bool,
    _ totals: inout FileCheckTotals, _ progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    let archive = archive
    var remainingIdentifiers = stored.fileIdentifiers()[...]
    var readByteCount = totals.readByteCount
    let isDone = try ParallelMap.run(
      jobs: jobs,
      next: { () throws(KeyhaulError) -> [BatchedPayload]? in
        try Self.nextBatch(of: &remainingIdentifiers, stored, payloadFiles)
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
        for check in checks { addCheck(check, withKeys: hasKeys, to: &totals) }
        readByteCount = totals.readByteCount
      })
    guard isDone else { throw Self.cancelled }
  }

  /// A payload with its listed files.
  private typealias BatchedPayload = (identifier: String, files: [ListedFile])

  /// Removes and returns the next payloads, up to `batchLimit`. Returns `nil` if none remain.
  private static func nextBatch(
    of remainingIdentifiers: inout ArraySlice<String>, _ stored: StoredPayloads, _ payloadFiles: PayloadFiles
  ) throws(KeyhaulError) -> [BatchedPayload]? {
    var batch: [BatchedPayload] = []
    var byteCount: Int64 = 0
    while batch.count < batchLimit.count, byteCount < batchLimit.byteCount,
      let identifier = remainingIdentifiers.popFirst()
    {
      batch.append((identifier, try payloadFiles.files(of: identifier)))
      byteCount += stored.byteCount(of: identifier) ?? 0
    }
    return batch.isEmpty ? nil : batch
  }

  /// Adds the check of a payload to the totals, and compares the payload with the seal.
  private mutating func addCheck(
    _ check: PayloadVerifier.PayloadCheck, withKeys hasKeys: Bool, to totals: inout FileCheckTotals
  ) {
    // A payload is read once, even if it is listed several times.
    for file in check.files.dropFirst() {
      totals.faults.add(.init(.files, .recordMalformed, file: Self.name(of: file), "it is listed more than once"))
    }
    if let file = check.files.first, let result = check.readingResult {
      addResult(result, of: file, withKeys: hasKeys, to: &totals)
    }
    if let entry = check.sealEntry { sealVerifier?.compare(entry) }
  }

  private mutating func addResult(
    _ result: Result<PayloadReader.Reading, KeyhaulError>, of file: ListedFile, withKeys hasKeys: Bool,
    to totals: inout FileCheckTotals
  ) {
    let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
    // If there are keys, the keychain is checked separately, and that check reports the faults of its file.
    let reportsFaults = !isKeychain || !hasKeys
    let reading: PayloadReader.Reading
    switch result {
    case .success(let value): reading = value
    case .failure(let error):
      if reportsFaults { add(error, of: file, &totals) }
      return
    }
    let (record, scan) = (reading.record, reading.scan)
    totals.readByteCount += scan.storedByteCount
    if isKeychain { totals.isKeychainRead = true }
    let isKnownToBeEmpty = scan.storedByteCount == 0 && record?.size == 0
    switch scan.matches(record?.digest) {
    case true?: totals.withMatchingDigest += 1
    // No digest is recorded. A file that is empty, as recorded, needs none.
    case nil: if !isKnownToBeEmpty { totals.withoutDigest += 1 }
    case false?:
      guard reportsFaults else { return }
      totals.faults.add(
        .init(
          .files, .digestMismatch, file: Self.name(of: file), byteCount: Int(exactly: scan.storedByteCount),
          "its bytes do not match the digest in the manifest"))
      return
    }
    let isPlaintextRead = hasKeys || !archive.areFilesEncrypted
    if isPlaintextRead, !isKeychain { addPlaintext(reading, of: file, to: &totals) }
  }

  /// Adds the padding and the size of a file whose plaintext was read to the totals.
  private func addPlaintext(
    _ reading: PayloadReader.Reading, of file: ListedFile, to totals: inout FileCheckTotals
  ) {
    let (name, scan) = (Self.name(of: file), reading.scan)
    guard scan.hasValidPadding else {
      let lastBlockOffset = max(0, scan.storedByteCount - Int64(RandomAccessDecryptor.blockByteCount))
      totals.faults.add(
        .init(
          .files, .paddingInvalid, file: name, offset: Int(exactly: lastBlockOffset),
          "it does not end with valid padding"))
      return
    }
    if archive.areFilesEncrypted { totals.withValidPadding += 1 }
    if let size = reading.record?.size, size != scan.plainByteCount {
      totals.addSizeMismatch(of: name, recorded: size, found: scan.plainByteCount)
    }
  }
}
