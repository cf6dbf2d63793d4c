import Basics
internal import COpenSSL
internal import KeychainFormats

extension KeyMaterial {
  /// Signs a digest.
  ///
  /// - Parameters:
  ///   - digest: The digest. If the scheme names a digest algorithm, the size must match the algorithm.
  ///   - scheme: The signature scheme.
  /// - Throws: `.unexpectedKind` if this is not a private key of the scheme's type; `.overLimit` if the key is too
  ///   small.
  package func signature(of digest: [UInt8], _ scheme: SignatureScheme) throws(CertificateError) -> [UInt8] {
    try check(.privateKey, scheme.keyType)
    let input = scheme == .rsaRaw ? try zeroPadded(digest) : digest
    let operation = try KeyOperation(self)
    try scheme.begin(operation, EVP_PKEY_sign_init)
    let signature = try input.withRawBytes { (bytes) throws(CertificateError) in
      try operation.result(of: EVP_PKEY_sign, bytes)
    }
    guard let signature else {
      throw CertificateError(.overLimit, "the key is too small for the digest and its padding")
    }
    let bytes = signature.withBytes { Array($0) }
    return scheme == .ecdsaRFC4754 ? try ECDSASignature.numbers(ofDER: bytes, size: blockSize) : bytes
  }

  /// Returns whether a signature is valid for a digest.
  ///
  /// - Throws: `.unexpectedKind` if this is not a public key of the scheme's type.
  package func verifies(
    _ signature: [UInt8], of digest: [UInt8], _ scheme: SignatureScheme
  ) throws(CertificateError) -> Bool {
    try check(.publicKey, scheme.keyType)
    let input = scheme == .rsaRaw ? try zeroPadded(digest) : digest
    guard let signature = scheme == .ecdsaRFC4754 ? ECDSASignature.der(of: signature, size: blockSize) : signature
    else { return false }
    let operation = try KeyOperation(self)
    try scheme.begin(operation, EVP_PKEY_verify_init)
    return EVP_PKEY_verify(operation.context, signature, signature.count, input, input.count) == 1
  }
}
