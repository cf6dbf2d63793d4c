package import Basics
import KeychainCrypto

/// Measures the size and the SHA-256 of a payload's stored bytes while they are read, for comparison with a seal.
///
/// A hasher measures one payload, once.
package final class PayloadHasher: PayloadObserver {
  private let digest: DigestStream
  private var byteCount: Int64 = 0
  private var state = State.unread

  private enum State { case unread, begun, complete }

  /// Creates a hasher for one payload.
  package init() throws(KeyhaulError) {
    digest = try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
      try DigestStream(.sha256)
    }
  }

  func begin() { state = .begun }

  func update(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    byteCount += Int64(bytes.count)
    try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  func end() { state = .complete }

  /// The size of a payload that could not be read to its end. It matches no entry of a seal.
  private static let incompleteByteCount: Int64 = -1

  /// Returns the seal entry that the measured payload would have. If nothing has read the payload yet, reads it.
  ///
  /// - Parameters:
  ///   - payload: The measured payload.
  ///   - path: The payload's path in the backup.
  /// - Returns: The entry. If the payload could not be read to its end, the entry's size is -1, so it matches no seal.
  package func entry(of payload: StoredPayload, at path: String) throws(KeyhaulError) -> SealFile.Entry {
    // An error leaves the state at `begun`, and the caller reports that the payload does not match the seal.
    if state == .unread { _ = try? payload.observed(by: self).forEachChunk { (_) throws(KeyhaulError) in } }
    let sha256 = try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
      try digest.finish()
    }
    return SealFile.Entry(
      path: path, byteCount: state == .complete ? byteCount : Self.incompleteByteCount, sha256: sha256)
  }
}
