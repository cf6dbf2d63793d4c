/// A scheme for encrypting bytes with a public key.
///
/// Source: RFC 8017, 7.1 and 7.2; Apple `SecKey.h` for the two schemes with a session key.
package enum KeyEncryption: Sendable, Hashable {
  /// RSA without padding: the plaintext itself, preceded by zeros.
  case rsaRaw
  /// RSAES-PKCS1-v1_5.
  case rsaPKCS1
  /// RSAES-OAEP with MGF1 of the same digest, without a label.
  case rsaOAEP(KeyDigest)
  /// A random AES key in OAEP, followed by the bytes encrypted with it: 128 bits, or 256 for RSA keys of 4,096 bits or
  /// more.
  case rsaOAEPWithSessionKey(KeyDigest)
  /// An ephemeral public key, followed by the bytes encrypted with an AES key that X9.63 derives: 128 bits, or 256 for
  /// curves of more than 256 bits. The initialization vector is derived with the key, or zero.
  case ecies(KeyDigest, derivesVector: Bool)

  /// The type of key for this scheme.
  package var keyType: KeyMaterial.KeyType {
    switch self {
    case .rsaRaw, .rsaPKCS1, .rsaOAEP, .rsaOAEPWithSessionKey: .rsa
    case .ecies: .ellipticCurve
    }
  }
}
