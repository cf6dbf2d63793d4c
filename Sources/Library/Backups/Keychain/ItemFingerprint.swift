import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules

/// SHA-256 of what an archive stores of an item, or of its primary key, to tell whether two are the same. Held in place:
/// there is one for every item.
package struct ItemFingerprint: Sendable, Hashable, Comparable {
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// - Parameter digest: 32 bytes.
  init(_ digest: UnsafeRawBufferPointer) {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: digest.prefix($0.count)) }
    self.words = words
  }

  /// Of these bytes.
  package init(of bytes: [UInt8]) throws(DataProtectionError) {
    self = try Digest.sha256(bytes).withUnsafeBytes { ItemFingerprint($0) }
  }

  /// The first half of it.
  var half: (UInt32, UInt32, UInt32, UInt32) {
    (
      UInt32(truncatingIfNeeded: words.0), UInt32(truncatingIfNeeded: words.0 >> 32),
      UInt32(truncatingIfNeeded: words.1), UInt32(truncatingIfNeeded: words.1 >> 32)
    )
  }

  /// Of a primary key.
  init(of key: PrimaryKey) throws(DataProtectionError) {
    let digest = try DigestStream(.sha256)
    try digest.update(Array(key.kind.rawValue.utf8))
    try key.withColumnBytes { (bytes) throws(DataProtectionError) in try digest.update(bytes) }
    self = try digest.finish { ItemFingerprint($0) }
  }

  package static func == (left: Self, right: Self) -> Bool { left.words == right.words }
  package static func < (left: Self, right: Self) -> Bool { left.words < right.words }

  package func hash(into hasher: inout Hasher) {
    withUnsafeBytes(of: words) { hasher.combine(bytes: $0) }
  }
}
