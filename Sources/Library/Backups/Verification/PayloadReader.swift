package import Basics
package import KeychainCrypto
package import KeychainFormats
import Synchronization

/// Reads payloads and compares them with the records of their files. Separate payload files can be read concurrently.
///
/// The file lists of most encrypted backups contain digests of the stored bytes, others digests of the plaintext. If
/// the stored bytes do not match, a separate payload file is read again to compare its plaintext. After a plaintext has
/// matched once, both digests are computed in the first read.
package final class PayloadReader: Sendable {
  private let archive: BackupArchive
  private let hasPlainDigests = Atomic(false)

  /// A payload that was read completely.
  package struct Reading: Sendable {
    /// The file's record in the file list.
    package let record: FileRecord?
    /// The result of reading its bytes.
    package let scan: PayloadScan
    /// Whether the payload matches the seal, or `nil` if there is no seal or the payload was not compared.
    package var matchesSeal: Bool?

    /// Whether the file is unchanged, according to the digest in the list and the seal, or `nil` if there is neither.
    package var isUnchanged: Bool? {
      let matchesDigest = scan.matches(record?.digest)
      return matchesDigest == false || matchesSeal == false ? false : matchesDigest ?? matchesSeal
    }
  }

  package init(_ archive: BackupArchive) { self.archive = archive }

  /// Passes the plaintext to a closure in chunks. During a second read, the closure receives empty chunks, so that it
  /// can stop the read. The stored bytes are compared with the seal.
  ///
  /// - Parameter keys: The unlocked keybag, or `nil` to pass the stored bytes.
  /// - Throws: The errors of `BackupArchive.readPayload(of:with:chunk:)`.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys?,
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    let digests = digestsOfFirstRead
    let scanner = try PayloadScanner(of: file, in: archive, with: keys)
    let hasher = try archive.payloadHasher()
    let firstReading = Reading(
      record: scanner.record, scan: try scanner.run(payload.observed(by: hasher), digests: digests, body))
    let matchesSeal = try hasher.flatMap { (hasher) throws(KeyhaulError) in
      try archive.matchesSeal(payload, by: hasher)
    }
    var reading = try recheckingPlaintext(firstReading, of: file, digests, with: keys) { () throws(KeyhaulError) in
      try body(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    reading.matchesSeal = matchesSeal
    return reading
  }

  /// Reads the payload only for its digest, size, and padding.
  ///
  /// - Parameters:
  ///   - keys: The unlocked keybag, or `nil` to read only the stored bytes.
  ///   - whileReading: Called for each chunk. Its errors end the read.
  package func measure(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys?,
    whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    let digests = digestsOfFirstRead
    let scanner = try PayloadScanner(of: file, in: archive, with: keys)
    let reading = Reading(
      record: scanner.record, scan: try scanner.measure(payload, digests: digests, whileReading: whileReading))
    return try recheckingPlaintext(reading, of: file, digests, with: keys, whileReading: whileReading)
  }

  private var digestsOfFirstRead: PayloadScanner.Digests {
    guard archive.areFilesEncrypted else { return .stored }
    return archive.hasSeparatePayloadFiles && !hasPlainDigests.load(ordering: .relaxed) ? .stored : .all
  }

  /// Reads the payload again if its stored bytes do not match the digest, because the plaintext may match it.
  private func recheckingPlaintext(
    _ reading: Reading, of file: ListedFile, _ digests: PayloadScanner.Digests, with keys: ClassKeys?,
    whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Reading {
    guard digests == .stored, reading.scan.matches(reading.record?.digest) == false else { return reading }
    let scanner = try PayloadScanner(of: file, in: archive, with: keys)
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
    guard secondScan.storedSHA1 == reading.scan.storedSHA1, secondScan.matches(reading.record?.digest) == true else {
      return reading
    }
    hasPlainDigests.store(true, ordering: .relaxed)
    return Reading(record: reading.record, scan: secondScan)
  }
}
