import Basics
import KeychainCrypto
import KeychainFormats

/// One reading of a sealed file that is to be written in another form: what it becomes is sealed again, so that it has to
/// be what was sealed.
package final class SealedReading {
  private let path: String
  private let list: SealList
  private let digest: DigestStream
  private var byteCount: Int64 = 0

  /// - Parameter path: In the backup.
  /// - Returns: `nil` for a backup without a seal.
  package init?(of path: String, in archive: BackupArchive) throws(BackupArchiveError) {
    guard let list = archive.seal?.list else { return nil }
    self.path = path
    self.list = list
    digest = try explained(path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  package func update(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError) {
    byteCount += Int64(bytes.count)
    try explained(path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  /// - Throws: `.damaged` where it is not what was sealed.
  package func finish() throws(BackupArchiveError) {
    let sha256 = try explained(path) { () throws(DataProtectionError) in try digest.finish() }
    let found = SealList.Entry(path: path, byteCount: byteCount, sha256: sha256)
    guard let fact = list.fact(of: found, at: path) else { return }
    throw BackupArchiveError(.damaged, ArchiveFinding.sealBroken(SealBreak(path, fact)).description)
  }
}

extension BackupArchive {
  /// Refuses a backup of which payloads that were sealed are not stored.
  ///
  /// - Throws: `.payloadMissing` with the first of them.
  package func requireSealed(_ stored: StoredPayloads) throws(BackupArchiveError) {
    guard let list = seal?.list else { return }
    for index in 0..<list.count {
      let path = list[index].path
      guard let name = path.split(separator: "/").last, isFileIdentifier(name) else { continue }
      guard stored.byteCount(of: name) == nil || layout.storedPath(of: String(name)) != path else { continue }
      throw BackupArchiveError(
        .payloadMissing, ArchiveFinding.sealBroken(SealBreak(path, .missing)).description)
    }
  }
}
