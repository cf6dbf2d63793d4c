import Basics
import KeychainFormats

/// The key of a backup's seal: the HMAC-SHA-256 of the text `keyhaul seal 1` with the manifest's key.
///
/// The manifest's key is random for each backup. Only the backup's password gives access to it, and changing the
/// password keeps it.
package struct SealKey: ~Copyable {
  private let key: Secret

  /// The purpose of the key, and the version of the sealed content.
  private static let label = Array(["keyhaul", "seal", "1"].joined(separator: " ").utf8)

  /// Derives the key.
  ///
  /// - Parameter manifestKey: The unwrapped key of the manifest, 32 bytes.
  package init(manifestKey: borrowing Secret) throws(DataProtectionError) {
    key = try Secret(count: 32) { (target) throws(DataProtectionError) in
      try manifestKey.withBytes { (bytes) throws(DataProtectionError) in
        try MessageAuthentication.code(.sha256, key: bytes, message: Self.label, into: target)
      }
    }
  }

  /// Returns the HMAC-SHA-256 of a message, 32 bytes.
  package borrowing func code(over message: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try MessageAuthentication.code(.sha256, key: bytes, message: message)
    }
  }

  /// Returns whether a code matches a message, in a time that does not depend on where the codes differ.
  package borrowing func matches(_ code: [UInt8], over message: [UInt8]) throws(DataProtectionError) -> Bool {
    let expected = try self.code(over: message)
    return expected.withUnsafeBytes { expected in code.withUnsafeBytes { constantTimeEquals(expected, $0) } }
  }
}
