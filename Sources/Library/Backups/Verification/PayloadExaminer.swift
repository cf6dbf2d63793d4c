import Basics
import KeychainCrypto
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
  private let reader: PayloadReader

  /// What came of one payload.
  struct Examined: Sendable {
    /// What the list has under the payload's name, in the list's order: none for what is not listed.
    let files: [ListedFile]
    /// As the first of them; `nil` where there is none.
    let reading: Result<PayloadReader.Reading, BackupArchiveError>?
    /// `nil` where there is no seal.
    let sealEntry: SealList.Entry?
  }

  init(
    _ archive: BackupArchive, isSealed: Bool, keys: borrowing ClassKeys?
  ) throws(BackupArchiveError) {
    self.archive = archive
    reader = PayloadReader(archive)
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
    var reading: Result<PayloadReader.Reading, BackupArchiveError>?
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

  private func read(_ payload: StoredPayload, as file: ListedFile) throws(BackupArchiveError) -> PayloadReader.Reading {
    switch keys {
    case .none: return try reader.measure(payload, as: file, whileReading: goOn)
    case .some(let keys): return try reader.measure(payload, as: file, with: keys.keys, whileReading: goOn)
    }
  }

  private func goOn() throws(BackupArchiveError) {
    guard !isToldToStop.load(ordering: .relaxed) else { throw BackupVerifier.cancelled }
  }
}
