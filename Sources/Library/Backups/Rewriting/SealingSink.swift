import Basics
import KeychainCrypto

/// A sink that measures the size and SHA-256 digest of each written file for a seal.
final class SealingSink: StoredFileSink {
  private let sink: any StoredFileSink
  private let layout: BackupLayout
  /// The directory of the backup in the written names, empty if there is none.
  private let directory: EntryName
  private let digest: DigestStream
  private var current: (path: String, byteCount: Int64)?
  /// The seal entries of the written files.
  private(set) var entries: [SealFile.Entry] = []

  /// Creates a sink.
  ///
  /// - Parameter directory: The directory of the backup in the written names, empty if there is none.
  init(
    _ sink: any StoredFileSink, layout: BackupLayout, directory: EntryName = .none
  ) throws(KeyhaulError) {
    self.sink = sink
    self.layout = layout
    self.directory = directory
    digest = try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
      try DigestStream(.sha256)
    }
  }

  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(KeyhaulError) {
    current = sealedPath(of: path).map { ($0, 0) }
    try sink.begin(path, byteCount: byteCount, modificationTime: modificationTime)
  }

  /// Returns the path in the backup, or `nil` if a seal does not include the file.
  private func sealedPath(of name: EntryName) -> String? {
    guard let entryPath = try? EntryPath(name, limit: name.bytes.count),
      let path = BackupPath.inside(directory, entryPath),
      SealCoverage.includes(path, in: layout)
    else { return nil }
    return path
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    if current != nil {
      current?.byteCount += Int64(bytes.count)
      try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
    }
    try sink.write(bytes)
  }

  func end() throws(KeyhaulError) {
    if let (path, byteCount) = current {
      let sha256 = try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
        try digest.finish()
      }
      // An empty journal is the same as a missing one.
      if byteCount > 0 || !MetadataFile.journals.contains(where: { $0.path == path }) {
        entries.append(.init(path: path, byteCount: byteCount, sha256: sha256))
      }
      current = nil
    }
    try sink.end()
  }
}
