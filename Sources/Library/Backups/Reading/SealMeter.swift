import Basics
import KeychainCrypto
import KeychainFormats

/// Measures one payload's stored bytes while somebody reads them: its size and its SHA-256, as a seal lists them.
package final class SealMeter: PayloadWatcher {
  private let digest: DigestStream
  private var byteCount: Int64 = 0
  private var state = State.unread

  private enum State { case unread, begun, whole }

  /// Creates a meter for a single payload.
  package init() throws(BackupArchiveError) {
    digest = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  func begin() { state = .begun }

  func see(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError) {
    byteCount += Int64(bytes.count)
    try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  func end() { state = .whole }

  /// The entry that a seal would have of the payload that was watched, which is read here where nobody did.
  ///
  /// - Parameters:
  ///   - payload: As it is stored.
  ///   - path: Its path in the backup.
  /// - Returns: An entry whose size is -1 where the payload broke off: no seal has that.
  package func entry(of payload: StoredPayload, at path: String) throws(BackupArchiveError) -> SealList.Entry {
    if state == .unread { _ = try? payload.watched(by: self).forEachPortion { (_) throws(BackupArchiveError) in } }
    return SealList.Entry(
      path: path, byteCount: state == .whole ? byteCount : -1,
      sha256: try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.finish() })
  }
}
