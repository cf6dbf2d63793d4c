import Basics
import KeychainCrypto
import KeychainFormats

extension BackupVerifier {
  /// Payloads that a job takes at a time: as many as these, or as have so many bytes.
  private static let portion = (count: 64, byteCount: Int64(4 << 20))

  /// Reads every payload and holds it against its record and the seal. Where each is a file of its own several are read at
  /// once; what is found is the same.
  mutating func checkPayloads(
    _ stored: StoredPayloads, as files: PayloadFiles, with keys: borrowing ClassKeys?, _ tally: inout FileTally,
    progress: BackupVerification.Progress
  ) throws(BackupArchiveError) {
    let examiner = try PayloadExaminer(archive, isSealed: sealCheck != nil, keys: keys)
    if archive.hasPayloadsApart, jobs > 1, stored.count > 1 {
      try examineSeveral(stored, as: files, examiner, withKeys: keys != nil, &tally, progress)
    } else {
      try archive.forEachPayload(of: stored) { (payload) throws(BackupArchiveError) in
        let files = try files.files(of: payload.fileIdentifier)
        take(try examiner.examine(payload, as: files), withKeys: keys != nil, &tally)
        guard progress(tally.readByteCount, stored.byteCount) else { throw Self.cancelled }
      }
    }
    arePayloadsSealChecked = true
  }

  private mutating func examineSeveral(
    _ stored: StoredPayloads, as files: PayloadFiles, _ examiner: PayloadExaminer, withKeys hasKeys: Bool,
    _ tally: inout FileTally, _ progress: BackupVerification.Progress
  ) throws(BackupArchiveError) {
    let archive = archive
    var rest = stored.fileIdentifiers()[...]
    var readByteCount = tally.readByteCount
    let isDone = try ParallelMap.run(
      jobs: jobs,
      next: { () throws(BackupArchiveError) -> [(identifier: String, files: [ListedFile])]? in
        var payloads: [(identifier: String, files: [ListedFile])] = []
        var byteCount: Int64 = 0
        while payloads.count < Self.portion.count, byteCount < Self.portion.byteCount, let next = rest.popFirst() {
          payloads.append((next, try files.files(of: next)))
          byteCount += stored.byteCount(of: next) ?? 0
        }
        return payloads.isEmpty ? nil : payloads
      },
      shouldContinue: {
        guard !progress(readByteCount, stored.byteCount) else { return true }
        examiner.stop()
        return false
      },
      work: { (payloads) throws(BackupArchiveError) -> [PayloadExaminer.Examined] in
        var examined: [PayloadExaminer.Examined] = []
        for payload in payloads {
          let place = try archive.payload(named: payload.identifier)
          examined.append(try examiner.examine(place, as: payload.files))
        }
        return examined
      },
      deliver: { (examined) throws(BackupArchiveError) in
        for payload in examined { take(payload, withKeys: hasKeys, &tally) }
        readByteCount = tally.readByteCount
      })
    guard isDone else { throw Self.cancelled }
  }

  private mutating func take(
    _ examined: PayloadExaminer.Examined, withKeys hasKeys: Bool, _ tally: inout FileTally
  ) {
    // A payload comes by once, whatever a list says.
    for file in examined.files.dropFirst() {
      tally.faults.add(.init(.files, .recordMalformed, file: Self.name(of: file), "it is listed more than once"))
    }
    if let file = examined.files.first, let reading = examined.reading {
      enter(reading, of: file, withKeys: hasKeys, &tally)
    }
    if let entry = examined.sealEntry { sealCheck?.take(entry) }
  }

  private mutating func enter(
    _ result: Result<PayloadReader.Reading, BackupArchiveError>, of file: ListedFile, withKeys hasKeys: Bool,
    _ tally: inout FileTally
  ) {
    let name = Self.name(of: file)
    let isKeychain = file.fileIdentifier == KeychainPayload.fileIdentifier
    let read: PayloadReader.Reading
    switch result {
    case .success(let reading): read = reading
    case .failure(let error):
      if !isKeychain || !hasKeys { add(error, of: file, &tally) }
      return
    }
    let (record, reading) = (read.record, read.payload)
    tally.readByteCount += reading.storedByteCount
    if isKeychain { tally.isKeychainRead = true }
    switch reading.fits(record?.digest) {
    case true?: tally.digests += 1
    // Nothing can be another in an empty file.
    case nil: if reading.storedByteCount > 0 || record?.size != 0 { tally.undigested += 1 }
    case false?:
      // With keys the keychain's own check tells of it.
      if isKeychain, hasKeys { return }
      tally.faults.add(
        .init(
          .files, .digestMismatch, file: name, byteCount: Int(exactly: reading.storedByteCount),
          "its bytes do not match the digest in the manifest"))
      return
    }
    guard hasKeys || !archive.areFilesEncrypted, !isKeychain else { return }
    guard reading.hasValidPadding else {
      tally.faults.add(
        .init(
          .files, .paddingInvalid, file: name, offset: Int(exactly: max(0, reading.storedByteCount - 16)),
          "it does not end with valid padding"))
      return
    }
    if hasKeys, archive.areFilesEncrypted { tally.paddings += 1 }
    if let size = record?.size, size != reading.plainByteCount {
      tally.addOtherSize(of: name, recorded: size, found: reading.plainByteCount)
    }
  }
}
