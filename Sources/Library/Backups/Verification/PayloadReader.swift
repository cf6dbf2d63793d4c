package import KeychainCrypto
package import KeychainFormats
import Synchronization

/// Reads payloads as the files that the list says they are, from several threads at once where each is a file of its own.
///
/// A record's digest is of the stored bytes in most lists of encrypted backups, and of the plain ones in others. Bytes that
/// are there to be read again are held against the first and, where that does not fit, read once more for the second; a
/// list that turned out to have the other kind is read for both from then on.
package final class PayloadReader: Sendable {
  private let archive: BackupArchive
  private let hasPlainDigests = Atomic(false)

  /// A payload that was read to its end.
  package struct Reading: Sendable {
    /// What the list records of the file.
    package let record: FileRecord?
    /// What came of its bytes.
    package let payload: PayloadReading
    /// Whether it is what was sealed; `nil` where there is no seal, or nobody held it against one.
    package var isSealed: Bool?

    /// Whether it is what was backed up, by the digest in the list and by the seal.
    ///
    /// - Returns: `nil` where neither says anything of it: then a changed byte cannot be seen.
    package var isRight: Bool? {
      let fits = payload.fits(record?.digest)
      return fits == false || isSealed == false ? false : fits ?? isSealed
    }
  }

  package init(_ archive: BackupArchive) { self.archive = archive }

  /// Lends the plain bytes in portions, and empty ones while it reads a second time. What is stored is held against the
  /// seal, where there is one.
  ///
  /// - Throws: As `BackupArchive.readPayload(of:with:portion:)`.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: borrowing ClassKeys,
    _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Reading {
    try read(payload, as: file, portion) { () throws(BackupArchiveError) in
      try PayloadPass(of: file, in: archive, with: keys)
    }
  }

  /// The same of the bytes as they are stored, where there are no keys.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: borrowing ClassKeys?,
    _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Reading {
    try read(payload, as: file, portion) { () throws(BackupArchiveError) in try pass(over: file, with: keys) }
  }

  private func read(
    _ payload: StoredPayload, as file: ListedFile,
    _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void,
    by pass: () throws(BackupArchiveError) -> PayloadPass
  ) throws(BackupArchiveError) -> Reading {
    let (digests, first, meter) = (digests, try pass(), try archive.sealMeter())
    let reading = Reading(
      record: first.record, payload: try first.run(payload.watched(by: meter), digests: digests, portion))
    let isSealed = try meter.flatMap { (meter) throws(BackupArchiveError) in try archive.isSealed(payload, by: meter) }
    var last = try settled(reading, of: file, digests, by: pass) { () throws(BackupArchiveError) in
      try portion(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    last.isSealed = isSealed
    return last
  }

  /// Reads it for its digest, its size and its padding alone.
  ///
  /// - Parameter whileReading: Called for every portion, and ends the reading with an error.
  package func measure(
    _ payload: StoredPayload, as file: ListedFile, with keys: borrowing ClassKeys,
    whileReading: () throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Reading {
    try measure(payload, as: file, whileReading) { () throws(BackupArchiveError) in
      try PayloadPass(of: file, in: archive, with: keys)
    }
  }

  /// Reads it for its digest and its size alone, as it is stored.
  package func measure(
    _ payload: StoredPayload, as file: ListedFile, whileReading: () throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Reading {
    try measure(payload, as: file, whileReading) { () throws(BackupArchiveError) in
      try PayloadPass(storedBytesOf: file, in: archive)
    }
  }

  private func measure(
    _ payload: StoredPayload, as file: ListedFile, _ whileReading: () throws(BackupArchiveError) -> Void,
    by pass: () throws(BackupArchiveError) -> PayloadPass
  ) throws(BackupArchiveError) -> Reading {
    let (digests, first) = (digests, try pass())
    let reading = Reading(
      record: first.record, payload: try first.measure(payload, digests: digests, whileReading: whileReading))
    return try settled(reading, of: file, digests, by: pass, whileReading: whileReading)
  }

  /// Those that the first reading makes.
  private var digests: PayloadPass.Digests {
    guard archive.areFilesEncrypted else { return .stored }
    return archive.hasPayloadsApart && !hasPlainDigests.load(ordering: .relaxed) ? .stored : .all
  }

  private func settled(
    _ reading: Reading, of file: ListedFile, _ digests: PayloadPass.Digests,
    by pass: () throws(BackupArchiveError) -> PayloadPass, whileReading: () throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Reading {
    guard digests == .stored, reading.payload.fits(reading.record?.digest) == false else { return reading }
    let second = try pass()
    // What is stored in clear, or without its key, has no other digest.
    guard second.decrypts else { return reading }
    let again: PayloadReading
    do throws(BackupArchiveError) {
      again = try second.measure(try archive.payload(of: file), digests: .all, whileReading: whileReading)
    } catch {
      // What was read stands, whatever became of the file since.
      if error.code == .interrupted { throw error }
      return reading
    }
    // Nothing is taken of other bytes than those that were read before.
    guard again.storedSHA1 == reading.payload.storedSHA1, again.fits(reading.record?.digest) == true else {
      return reading
    }
    hasPlainDigests.store(true, ordering: .relaxed)
    return Reading(record: reading.record, payload: again)
  }

  private func pass(
    over file: ListedFile, with keys: borrowing ClassKeys?
  ) throws(BackupArchiveError) -> PayloadPass {
    switch keys {
    case .none: try PayloadPass(storedBytesOf: file, in: archive)
    case .some(let keys): try PayloadPass(of: file, in: archive, with: keys)
    }
  }
}
