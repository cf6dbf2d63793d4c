import Basics
internal import COpenSSL
import KeychainFormats

/// Diffie-Hellman on Curve25519 (RFC 7748).
enum X25519 {
  /// The size of private keys, public keys and shared secrets, in bytes.
  static let size = 32

  static func publicKey(of privateKey: borrowing Secret) throws(DataProtectionError) -> [UInt8] {
    let key = try Key(privateKey: privateKey)
    return try key.publicBytes()
  }

  /// Returns the shared secret.
  ///
  /// - Throws: `.malformed` if `publicKey` is a point of small order, which yields no shared secret.
  static func sharedSecret(
    _ privateKey: borrowing Secret, with publicKey: [UInt8]
  ) throws(DataProtectionError) -> Secret {
    let ownKey = try Key(privateKey: privateKey)
    let peerKey = try Key(publicKey: publicKey)
    return try ownKey.derive(with: peerKey)
  }

  /// An OpenSSL key. OpenSSL clamps private keys itself when it uses them.
  private struct Key: ~Copyable {
    private let handle: OpaquePointer

    init(privateKey: borrowing Secret) throws(DataProtectionError) {
      let handle = privateKey.withBytes { bytes in
        EVP_PKEY_new_raw_private_key(
          EVP_PKEY_X25519, nil, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
      }
      guard let handle else { throw .crypto("EVP_PKEY_new_raw_private_key") }
      self.handle = handle
    }

    init(publicKey: [UInt8]) throws(DataProtectionError) {
      guard let handle = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, publicKey, publicKey.count) else {
        throw .crypto("EVP_PKEY_new_raw_public_key")
      }
      self.handle = handle
    }

    deinit { EVP_PKEY_free(handle) }

    borrowing func publicBytes() throws(DataProtectionError) -> [UInt8] {
      try [UInt8](count: X25519.size) { (buffer) throws(DataProtectionError) in
        var count = buffer.count
        let target = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard EVP_PKEY_get_raw_public_key(handle, target, &count) == 1, count == X25519.size else {
          throw .crypto("EVP_PKEY_get_raw_public_key")
        }
      }
    }

    borrowing func derive(with peerKey: borrowing Key) throws(DataProtectionError) -> Secret {
      let context = try DerivationContext(handle)
      return try context.derive(with: peerKey.handle)
    }
  }

  private struct DerivationContext: ~Copyable {
    private let handle: OpaquePointer

    init(_ key: OpaquePointer) throws(DataProtectionError) {
      guard let handle = EVP_PKEY_CTX_new(key, nil) else { throw .crypto("EVP_PKEY_CTX_new") }
      self.handle = handle
    }

    deinit { EVP_PKEY_CTX_free(handle) }

    borrowing func derive(with peerKey: OpaquePointer) throws(DataProtectionError) -> Secret {
      guard EVP_PKEY_derive_init(handle) == 1, EVP_PKEY_derive_set_peer(handle, peerKey) == 1 else {
        throw .crypto("EVP_PKEY_derive_set_peer")
      }
      return try Secret(count: X25519.size) { (output) throws(DataProtectionError) in
        var count = output.count
        let target = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard EVP_PKEY_derive(handle, target, &count) == 1, count == X25519.size else {
          throw DataProtectionError(.malformed, "a Curve25519 public key yields no shared secret")
        }
      }
    }
  }
}
