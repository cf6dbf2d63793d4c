import BackupArchive
import DataProtection
import KeychainFormats
import Synchronization

/// Reads payloads, each as the file that the list says it is: what several threads can do at once of a check.
final class PayloadExaminer: Sendable {
  private let archive: BackupArchive
  /// Whether each payload is measured for a seal too.
  private let isSealed: Bool
  /// `nil` for what the stored bytes alone say.
  private let keys: SharedClassKeys?
  private let isToldToStop = Atomic(false)
  /// Whether a record's digest was that of the plain bytes. Most lists of encrypted backups have that of the stored ones,
  /// and one list has one of them.
  private let hasPlainDigests = Atomic(false)

  /// What came of one payload.
  struct Examined: Sendable {
    /// What the list has under the payload's name, in the list's order: none for what is not listed.
    let files: [ListedFile]
    /// As the first of them; `nil` where there is none.
    let reading: Result<Reading, BackupArchiveError>?
    /// `nil` where there is no seal.
    let sealEntry: SealList.Entry?
  }

  /// A payload that was read to its end.
  struct Reading: Sendable {
    let record: FileRecord?
    let payload: PayloadReading
  }

  init(
    _ archive: BackupArchive, isSealed: Bool, keys: borrowing ClassKeys?
  ) throws(BackupArchiveError) {
    self.archive = archive
    self.isSealed = isSealed
    switch keys {
    case .none: self.keys = nil
    case .some(let keys):
      self.keys = try explained("the class keys") { () throws(DataProtectionError) in try SharedClassKeys(keys) }
    }
  }

  /// Ends what is being read; it comes to an error that nobody asks for.
  func stop() { isToldToStop.store(true, ordering: .relaxed) }

  /// - Throws: Where the cryptographic library fails at the seal's digest. What is wrong with the payload is in the result.
  func examine(_ payload: StoredPayload, as files: [ListedFile]) throws(BackupArchiveError) -> Examined {
    let meter = isSealed ? try SealMeter() : nil
    var reading: Result<Reading, BackupArchiveError>?
    if let file = files.first {
      do throws(BackupArchiveError) {
        reading = .success(try read(payload.watched(by: meter), as: file))
      } catch {
        reading = .failure(error)
      }
    }
    let path = archive.layout.storedPath(of: payload.fileIdentifier)
    return Examined(files: files, reading: reading, sealEntry: try meter?.entry(of: payload, at: path))
  }

  private func read(_ payload: StoredPayload, as file: ListedFile) throws(BackupArchiveError) -> Reading {
    let pass = try pass(over: file)
    // A digest of bytes that are there to be read again is made when the other one does not fit.
    let isReadOnce = !archive.hasPayloadsApart || hasPlainDigests.load(ordering: .relaxed)
    let reading = try run(pass, payload, isReadOnce ? .all : .stored)
    guard reading.fits(pass.record?.digest) == false, !isReadOnce, archive.areFilesEncrypted else {
      return Reading(record: pass.record, payload: reading)
    }
    let again = try run(try self.pass(over: file), try archive.payload(of: file), .all)
    if again.fits(pass.record?.digest) == true { hasPlainDigests.store(true, ordering: .relaxed) }
    return Reading(record: pass.record, payload: again)
  }

  private func pass(over file: ListedFile) throws(BackupArchiveError) -> PayloadPass {
    guard let keys else { return try PayloadPass(storedBytesOf: file, in: archive) }
    return try PayloadPass(of: file, in: archive, with: keys.keys)
  }

  private func run(
    _ pass: PayloadPass, _ payload: StoredPayload, _ digests: PayloadPass.Digests
  ) throws(BackupArchiveError) -> PayloadReading {
    try pass.run(payload, digests: digests) { (_) throws(BackupArchiveError) in
      guard !isToldToStop.load(ordering: .relaxed) else { throw BackupVerifier.cancelled }
    }
  }
}
