import Basics
import KeychainFormats

/// The wrap of a key for a Curve25519 class: an ephemeral public key (32 bytes), then the RFC 3394 wrap.
///
/// Wrapping needs no secret, so a locked device can store new items.
///
/// The wrapping key is one block of the concatenation KDF of NIST SP 800-56A: the SHA-256 of the counter 1, the shared
/// secret, the ephemeral public key and the class's public key.
/// Source: iphone-dataprotection, `crypto/curve25519.py`; Apple Platform Security, "Data Protection classes".
enum Curve25519Wrap {
  /// The size of a wrapped key of 32 bytes.
  static let wrappedSize = X25519.size + 32 + KeyWrap.overhead

  static func wrap(
    _ key: borrowing Secret, to publicKey: [UInt8], random: some RandomSource
  ) throws(DataProtectionError) -> [UInt8] {
    let ephemeralKey = try Secret(count: X25519.size, from: random)
    let ephemeralPublicKey = try X25519.publicKey(of: ephemeralKey)
    let sharedSecret = try X25519.sharedSecret(ephemeralKey, with: publicKey)
    let wrappingKey = try wrappingKey(sharedSecret, ephemeralPublicKey: ephemeralPublicKey, publicKey: publicKey)
    return ephemeralPublicKey + (try KeyWrap.wrap(key, with: wrappingKey))
  }

  /// Unwraps a key.
  ///
  /// - Returns: `nil` if the key cannot be unwrapped, for example because the ephemeral public key is not a usable point.
  static func unwrap(
    _ wrapped: [UInt8], privateKey: borrowing Secret, publicKey: [UInt8]
  ) throws(DataProtectionError) -> Secret? {
    guard wrapped.count == wrappedSize else { return nil }
    let ephemeralPublicKey = Array(wrapped.prefix(X25519.size))
    let sharedSecret: Secret
    do throws(DataProtectionError) {
      sharedSecret = try X25519.sharedSecret(privateKey, with: ephemeralPublicKey)
    } catch {
      if error.code == .malformed { return nil }
      throw error
    }
    let wrappingKey = try wrappingKey(sharedSecret, ephemeralPublicKey: ephemeralPublicKey, publicKey: publicKey)
    return try KeyWrap.unwrap(Array(wrapped.dropFirst(X25519.size)), with: wrappingKey)
  }

  static func wrappingKey(
    _ sharedSecret: borrowing Secret, ephemeralPublicKey: [UInt8], publicKey: [UInt8]
  ) throws(DataProtectionError) -> Secret {
    let context = try DigestContext(.sha256)
    try bigEndianBytes(UInt32(1)).withRawBytes { (bytes) throws(DataProtectionError) in try context.update(bytes) }
    try sharedSecret.withBytes { (bytes) throws(DataProtectionError) in try context.update(bytes) }
    for part in [ephemeralPublicKey, publicKey] {
      try part.withRawBytes { (bytes) throws(DataProtectionError) in try context.update(bytes) }
    }
    return try Secret(count: 32) { (output) throws(DataProtectionError) in try context.finish(into: output) }
  }
}
