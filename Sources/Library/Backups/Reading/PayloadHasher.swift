package import Basics
import KeychainCrypto

/// A hasher for a payload's stored size and SHA-256 digest, as in a seal.
package final class PayloadHasher: PayloadObserver {
  private let digest: DigestStream
  private var byteCount: Int64 = 0
  private var state = State.unread

  private enum State { case unread, begun, complete }

  /// Creates a hasher for a single payload.
  package init() throws(KeyhaulError) {
    digest = try explained(MetadataFile.seal.path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  func begin() { state = .begun }

  func update(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    byteCount += Int64(bytes.count)
    try explained(MetadataFile.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  func end() { state = .complete }

  /// A size that matches no seal.
  private static let invalidByteCount: Int64 = -1

  /// Returns the seal entry of the payload, which is read now if it was not read before.
  ///
  /// - Parameters:
  ///   - payload: The stored payload.
  ///   - path: The path in the backup.
  /// - Returns: The entry. Its size is invalid if the payload was cut off.
  package func entry(of payload: StoredPayload, at path: String) throws(KeyhaulError) -> SealFile.Entry {
    if state == .unread { _ = try? payload.observed(by: self).forEachPortion { (_) throws(KeyhaulError) in } }
    return SealFile.Entry(
      path: path, byteCount: state == .complete ? byteCount : Self.invalidByteCount,
      sha256: try explained(MetadataFile.seal.path) { () throws(DataProtectionError) in try digest.finish() })
  }
}
