import Basics
import KeychainCrypto
import KeychainFormats

/// Notes the size and the SHA-256 of each file that is written through it, to seal the backup with.
final class SealingSink: StoredFileSink {
  private let sink: any StoredFileSink
  private let layout: BackupLayout
  /// The one around the backup's files in the names that are written, empty for none.
  private let directory: EntryName
  private let digest: DigestStream
  private var current: (path: String, byteCount: Int64)?
  /// What was written of the backup so far.
  private(set) var entries: [SealList.Entry] = []

  /// - Parameter directory: The one around the backup's files in the names that are written; empty for none.
  init(
    _ sink: any StoredFileSink, layout: BackupLayout, directory: EntryName = .none
  ) throws(BackupArchiveError) {
    self.sink = sink
    self.layout = layout
    self.directory = directory
    digest = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(WriteFailure) {
    current = sealedPath(of: path).map { ($0, 0) }
    try sink.begin(path, byteCount: byteCount, modificationTime: modificationTime)
  }

  private func sealedPath(of name: EntryName) -> String? {
    guard let whole = try? EntryPath(name, limit: name.bytes.count), let path = BackupPath.inside(directory, whole),
      SealedPath.isSealed(path, in: layout)
    else { return nil }
    return path
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(WriteFailure) {
    if current != nil {
      current?.byteCount += Int64(bytes.count)
      try measuring { () throws(DataProtectionError) in try digest.update(bytes) }
    }
    try sink.write(bytes)
  }

  func end() throws(WriteFailure) {
    if let (path, byteCount) = current {
      let sha256 = try measuring { () throws(DataProtectionError) in try digest.finish() }
      // An empty one is the same as none.
      if byteCount > 0 || !StoredPart.journals.contains(where: { $0.path == path }) {
        entries.append(.init(path: path, byteCount: byteCount, sha256: sha256))
      }
      current = nil
    }
    try sink.end()
  }

  private func measuring<Value>(_ body: () throws(DataProtectionError) -> Value) throws(WriteFailure) -> Value {
    try obtaining { () throws(BackupArchiveError) in try explained(StoredPart.seal.path, body) }
  }
}
