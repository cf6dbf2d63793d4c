package import Basics
internal import COpenSSL
import KeychainFormats

extension KeyMaterial {
  /// Returns the shared secret of two keys on the same curve: the X coordinate (SEC 1, 3.3.1).
  ///
  /// The curves have the cofactor 1, so agreements with and without the cofactor are the same.
  ///
  /// - Throws: `.unexpectedKind` unless this is a private key and `publicKey` a public key on the same curve.
  package func sharedSecret(with publicKey: KeyMaterial) throws(CertificateError) -> SensitiveBytes {
    try check(.privateKey, .ellipticCurve)
    guard publicKey.role == .publicKey, publicKey.algorithm == algorithm else {
      throw CertificateError(.unexpectedKind, "the other key is not a public key on the same curve")
    }
    let operation = try KeyOperation(self)
    let peer = try KeyHandle(publicKey)
    try operation.begin(EVP_PKEY_derive_init, padding: nil)
    guard EVP_PKEY_derive_set_peer(operation.context, peer.handle) == 1 else {
      throw .openSSL("EVP_PKEY_derive_set_peer")
    }
    let secret = try operation.result(
      of: { context, target, count, _, _ in EVP_PKEY_derive(context, target, count) },
      UnsafeRawBufferPointer(start: nil, count: 0))
    guard let secret else { throw .openSSL("EVP_PKEY_derive") }
    return secret
  }
}
