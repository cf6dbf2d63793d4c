import Basics
import KeychainFormats

/// The key of a backup's seal: HMAC-SHA-256 of the text `keyhaul seal 1` under the key of the backup's list of files.
///
/// That key is a random one of the backup's own. Only its password leads to it, and another password leads to the same.
package struct SealKey: ~Copyable {
  private let key: Secret

  /// What the key is for, and the version of what is sealed.
  private static let label = Array(["keyhaul", "seal", "1"].joined(separator: " ").utf8)

  /// - Parameter manifestKey: The key of the list of files, unwrapped, 32 bytes.
  package init(manifestKey: borrowing Secret) throws(DataProtectionError) {
    key = try Secret(count: 32) { (target) throws(DataProtectionError) in
      try manifestKey.withBytes { (bytes) throws(DataProtectionError) in
        try MessageAuthentication.code(.sha256, key: bytes, message: Self.label, into: target)
      }
    }
  }

  /// HMAC-SHA-256 over a message, 32 bytes.
  package borrowing func code(over message: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try MessageAuthentication.code(.sha256, key: bytes, message: message)
    }
  }

  /// Whether it is the code over this message. The time taken does not tell how much of it fits.
  package borrowing func fits(_ code: [UInt8], over message: [UInt8]) throws(DataProtectionError) -> Bool {
    let own = try self.code(over: message)
    return own.withUnsafeBytes { own in code.withUnsafeBytes { constantTimeEquals(own, $0) } }
  }
}
