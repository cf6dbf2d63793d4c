package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// A SHA-256 digest of an item's stored data or primary key, for comparisons. Stored inline, because there is one for
/// each item.
package struct ItemFingerprint: Sendable, Hashable, Comparable {
  /// The 32 bytes of the digest.
  private let digest: (UInt64, UInt64, UInt64, UInt64)

  /// Creates a fingerprint.
  ///
  /// - Parameter digest: 32 bytes.
  init(_ digest: UnsafeRawBufferPointer) {
    var inlineDigest: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &inlineDigest) { $0.copyBytes(from: digest.prefix($0.count)) }
    self.digest = inlineDigest
  }

  /// Creates the fingerprint of bytes.
  package init(of bytes: [UInt8]) throws(DataProtectionError) {
    self = try Digest.sha256(bytes).withUnsafeBytes { ItemFingerprint($0) }
  }

  /// Creates the fingerprint of a primary key.
  package init(of key: PrimaryKey) throws(DataProtectionError) {
    let stream = try DigestStream(.sha256)
    try stream.update(Array(key.kind.rawValue.utf8))
    try key.withColumnBytes { (bytes) throws(DataProtectionError) in try stream.update(bytes) }
    self = try stream.finish { ItemFingerprint($0) }
  }

  package static func == (left: Self, right: Self) -> Bool { left.digest == right.digest }
  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }

  package func hash(into hasher: inout Hasher) {
    withUnsafeBytes(of: digest) { hasher.combine(bytes: $0) }
  }
}
