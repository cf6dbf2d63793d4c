internal import COpenSSL

/// A scheme for signing a digest.
///
/// Source: RFC 8017, 8.1 and 8.2; ANSI X9.62, 7.3; RFC 4754, section 7.
package enum SignatureScheme: Sendable, Hashable {
  /// RSA without padding: the digest itself, preceded by zeros.
  case rsaRaw
  /// RSASSA-PKCS1-v1_5 of a digest. With `nil`, any bytes are signed, and no digest is named in the signature.
  case rsaPKCS1v15(KeyDigest?)
  /// RSASSA-PSS with a salt as long as the digest, and MGF1 of the same digest.
  case rsaPSS(KeyDigest)
  /// ECDSA, with the numbers r and s in DER.
  case ecdsaX962
  /// ECDSA, with the numbers r and s one after the other, each as long as a coordinate.
  case ecdsaRFC4754

  /// The type of key for this scheme.
  package var keyType: KeyMaterial.KeyType {
    switch self {
    case .rsaRaw, .rsaPKCS1v15, .rsaPSS: .rsa
    case .ecdsaX962, .ecdsaRFC4754: .ellipticCurve
    }
  }

  private var padding: Int32? {
    switch self {
    case .rsaRaw: RSA_NO_PADDING
    case .rsaPKCS1v15: RSA_PKCS1_PADDING
    case .rsaPSS: RSA_PKCS1_PSS_PADDING
    case .ecdsaX962, .ecdsaRFC4754: nil
    }
  }

  /// Starts an operation with the padding and the digest of this scheme.
  func begin(
    _ operation: borrowing KeyOperation, _ initialize: (OpaquePointer?) -> Int32
  ) throws(CertificateError) {
    try operation.begin(initialize, padding: padding)
    let context = operation.context
    switch self {
    case .rsaPKCS1v15(let digest?):
      guard EVP_PKEY_CTX_set_signature_md(context, digest.handle) == 1 else {
        throw .openSSL("EVP_PKEY_CTX_set_signature_md")
      }
    case .rsaPSS(let digest):
      guard EVP_PKEY_CTX_set_signature_md(context, digest.handle) == 1,
        EVP_PKEY_CTX_set_rsa_mgf1_md(context, digest.handle) == 1,
        EVP_PKEY_CTX_set_rsa_pss_saltlen(context, Int32(digest.size)) == 1
      else { throw .openSSL("EVP_PKEY_CTX_set_rsa_pss_saltlen") }
    case .rsaRaw, .rsaPKCS1v15(nil), .ecdsaX962, .ecdsaRFC4754: break
    }
  }
}
