import Basics
import KeychainCrypto
import Synchronization

/// Reads payloads and compares them with the records of their files. Several payloads can be read at the same time.
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
    let readingResult: Result<PayloadReader.Reading, KeyhaulError>?
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
    var readingResult: Result<PayloadReader.Reading, KeyhaulError>?
    if let file = files.first {
      do throws(KeyhaulError) {
        let observed = payload.observed(by: hasher)
        readingResult = .success(try reader.measure(observed, as: file, with: keys, whileReading: checkNotStopped))
      } catch {
        if error.isResourceShortage { throw error }
        readingResult = .failure(error)
      }
    }
    let path = archive.layout.storedPath(of: payload.fileIdentifier)
    return PayloadCheck(
      files: files, readingResult: readingResult, sealEntry: try hasher?.entry(of: payload, at: path))
  }

  private func checkNotStopped() throws(KeyhaulError) {
    guard !isStopRequested.load(ordering: .relaxed) else { throw BackupVerifier.cancelled }
  }
}

/// Finds the listed files of a payload, for payloads in any order. Not thread-safe.
final class PayloadFiles {
  private let list: FileList
  private let index: FileIndex
  private var reader: FileList.Reader?
  /// The error of a failed read of the file list, which is not a fault of a payload.
  private(set) var failure: KeyhaulError?

  /// Creates a look-up.
  ///
  /// - Parameter index: The locations of the files that have a payload.
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
