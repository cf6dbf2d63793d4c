import Basics
import COpenSSL

/// An OpenSSL key. OpenSSL wipes it when it is freed.
struct KeyHandle: ~Copyable {
  let handle: OpaquePointer

  /// Converts a key for OpenSSL.
  ///
  /// - Throws: `.failed` if OpenSSL rejects the key.
  init(_ key: KeyMaterial) throws(CertificateError) {
    switch key.role {
    case .publicKey:
      handle = try key.publicKeyInfo.withRawBytes { (bytes) throws(CertificateError) in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return try Self.checked(d2i_PUBKEY(nil, &position, bytes.count), "d2i_PUBKEY")
      }
    case .privateKey:
      handle = try key.privateKeyStructure.withBytes { (bytes) throws(CertificateError) in
        var position = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return try Self.checked(d2i_AutoPrivateKey(nil, &position, bytes.count), "d2i_AutoPrivateKey")
      }
    }
  }

  private static func checked(_ handle: OpaquePointer?, _ call: String) throws(CertificateError) -> OpaquePointer {
    guard let handle else {
      ERR_clear_error()
      throw .openSSL(call)
    }
    return handle
  }

  deinit { EVP_PKEY_free(handle) }
}
