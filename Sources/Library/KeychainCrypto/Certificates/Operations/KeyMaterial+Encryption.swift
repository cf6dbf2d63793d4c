package import Basics
internal import COpenSSL
import KeychainFormats

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
  /// A random AES key encrypted with OAEP, followed by the bytes encrypted with the AES key. The AES key has 128 bits,
  /// or 256 for RSA keys of 4,096 bits or more.
  case rsaOAEPWithSessionKey(KeyDigest)
  /// An ephemeral public key, followed by the bytes encrypted with an AES key that is derived with X9.63. The AES key has
  /// 128 bits, or 256 for curves of more than 256 bits. The initialization vector is derived together with the key if
  /// `derivesVector`, otherwise it is zero.
  case ecies(KeyDigest, derivesVector: Bool)

  /// The type of key for this scheme.
  package var keyType: KeyMaterial.KeyType {
    switch self {
    case .rsaRaw, .rsaPKCS1, .rsaOAEP, .rsaOAEPWithSessionKey: .rsa
    case .ecies: .ellipticCurve
    }
  }
}

extension KeyMaterial {
  /// Encrypts bytes with a public key.
  ///
  /// - Throws: `.unexpectedKind` if this is not a public key of the scheme's type; `.overLimit` if the bytes do not
  ///   fit.
  package func encrypt(_ plaintext: SensitiveBytes, _ scheme: KeyEncryption) throws(CertificateError) -> [UInt8] {
    try check(.publicKey, scheme.keyType)
    switch scheme {
    case .rsaRaw, .rsaPKCS1, .rsaOAEP:
      let ciphertext = try rsaResult(
        of: EVP_PKEY_encrypt, initializedBy: EVP_PKEY_encrypt_init, input: plaintext, scheme: scheme)
      guard let ciphertext else {
        throw CertificateError(.overLimit, "\(plaintext.count) bytes are more than the key allows with this padding")
      }
      return ciphertext.withBytes { Array($0) }
    case .rsaOAEPWithSessionKey(let digest):
      let sessionKey = try randomSessionKey()
      let wrappedKey = try encrypt(sessionKey, .rsaOAEP(digest))
      return wrappedKey + (try SessionCipher(sessionKey, authenticating: publicKey).seal(plaintext))
    case .ecies(let digest, let derivesVector):
      return try encryptWithEphemeralKey(plaintext, digest: digest, derivesVector: derivesVector)
    }
  }

  private func encryptWithEphemeralKey(
    _ plaintext: SensitiveBytes, digest: KeyDigest, derivesVector: Bool
  ) throws(CertificateError) -> [UInt8] {
    // `check` has made sure that this key is on a curve.
    guard case .ellipticCurve(let curve) = algorithm else { throw .openSSL("a curve") }
    let ephemeralKey = try KeyMaterial.generate(on: curve)
    let cipher = try SessionCipher(
      ephemeralKey.sharedSecret(with: self), keySize: sessionKeySize, digest: digest,
      publicKey: ephemeralKey.publicKey, derivesVector: derivesVector)
    return ephemeralKey.publicKey + (try cipher.seal(plaintext))
  }

  /// Decrypts bytes with a private key.
  ///
  /// - Throws:
  ///   - `.unexpectedKind` if this is not a private key of the scheme's type.
  ///   - `.mismatch` if the bytes are damaged, or were encrypted for another key or scheme. `rsaRaw` and
  ///     `rsaPKCS1` cannot detect this, and return wrong bytes.
  package func decrypt(_ ciphertext: [UInt8], _ scheme: KeyEncryption) throws(CertificateError) -> SensitiveBytes {
    try check(.privateKey, scheme.keyType)
    switch scheme {
    case .rsaPKCS1:
      // Invalid padding gives pseudorandom bytes that depend on the key and ciphertext, so that it cannot be observed.
      let block = try decrypt(ciphertext, .rsaRaw)
      return try PKCS1Padding.removed(from: block, key: externalRepresentation, ciphertext: ciphertext)
    case .rsaRaw, .rsaOAEP:
      let plaintext = try rsaResult(
        of: EVP_PKEY_decrypt, initializedBy: EVP_PKEY_decrypt_init, input: SensitiveBytes(copying: ciphertext),
        scheme: scheme)
      guard let plaintext else { throw Self.notForThisKey }
      return plaintext
    case .rsaOAEPWithSessionKey(let digest):
      guard ciphertext.count >= blockSize else { throw Self.notForThisKey }
      let sessionKey = try decrypt(Array(ciphertext.prefix(blockSize)), .rsaOAEP(digest))
      guard sessionKey.count == sessionKeySize else { throw Self.notForThisKey }
      return try SessionCipher(sessionKey, authenticating: publicKey).open(ciphertext.dropFirst(blockSize))
    case .ecies(let digest, let derivesVector):
      return try decryptWithEphemeralKey(ciphertext, digest: digest, derivesVector: derivesVector)
    }
  }

  /// Decrypts bytes that follow an ephemeral public key.
  private func decryptWithEphemeralKey(
    _ ciphertext: [UInt8], digest: KeyDigest, derivesVector: Bool
  ) throws(CertificateError) -> SensitiveBytes {
    guard case .ellipticCurve(let curve) = algorithm, ciphertext.count >= curve.pointSize else {
      throw Self.notForThisKey
    }
    let point = Array(ciphertext.prefix(curve.pointSize))
    let ephemeralKey = try point.withRawBytes { (bytes) throws(CertificateError) in
      try KeyMaterial(curve, point: bytes)
    }
    let cipher = try SessionCipher(
      sharedSecret(with: ephemeralKey), keySize: sessionKeySize, digest: digest, publicKey: ephemeralKey.publicKey,
      derivesVector: derivesVector)
    return try cipher.open(ciphertext.dropFirst(curve.pointSize))
  }

  /// The error for bytes that were encrypted for another key or scheme, or that are damaged.
  static var notForThisKey: CertificateError {
    CertificateError(.mismatch, "the bytes were not encrypted with this key and this algorithm")
  }

  /// Returns the maximum number of plaintext bytes that fit, or `nil` if the scheme has no limit.
  package func maximumPlaintextByteCount(_ scheme: KeyEncryption) -> Int? {
    switch scheme {
    case .rsaRaw: blockSize
    case .rsaPKCS1: blockSize - PKCS1Padding.minimumByteCount
    case .rsaOAEP(let digest): blockSize - 2 * digest.size - 2
    case .rsaOAEPWithSessionKey, .ecies: nil
    }
  }

  private var sessionKeySize: Int {
    switch algorithm {
    case .rsa: sizeInBits >= 4096 ? 32 : 16
    case .ellipticCurve(let curve): curve.coordinateSize * 8 > 256 ? 32 : 16
    }
  }

  private func randomSessionKey() throws(CertificateError) -> SensitiveBytes {
    let random = SystemRandomSource()
    do throws(DataProtectionError) {
      return try SensitiveBytes(count: sessionKeySize) { (buffer) throws(DataProtectionError) in
        try random.fill(buffer)
      }
    } catch {
      throw CertificateError(error)
    }
  }

  /// Encrypts or decrypts one block with RSA.
  ///
  /// - Parameters:
  ///   - call: OpenSSL's function for the operation.
  ///   - initialize: OpenSSL's function that starts the operation.
  ///   - input: The plaintext or ciphertext.
  ///   - scheme: A scheme without a session key.
  /// - Returns: `nil` if the input does not fit, or OpenSSL rejects it.
  private func rsaResult(
    of call: KeyOperation.Call, initializedBy initialize: (OpaquePointer?) -> Int32, input: SensitiveBytes,
    scheme: KeyEncryption
  ) throws(CertificateError) -> SensitiveBytes? {
    let operation = try KeyOperation(self)
    var block = input
    switch scheme {
    case .rsaRaw:
      guard input.count <= blockSize else { return nil }
      try operation.begin(initialize, padding: RSA_NO_PADDING)
      block = SensitiveBytes(count: blockSize) { (target: UnsafeMutableRawBufferPointer) in
        input.withBytes { bytes in
          UnsafeMutableRawBufferPointer(rebasing: target[(target.count - bytes.count)...]).copyMemory(from: bytes)
        }
      }
    case .rsaPKCS1: try operation.begin(initialize, padding: RSA_PKCS1_PADDING)
    case .rsaOAEP(let digest):
      try operation.begin(initialize, padding: RSA_PKCS1_OAEP_PADDING)
      guard EVP_PKEY_CTX_set_rsa_oaep_md(operation.context, digest.handle) == 1,
        EVP_PKEY_CTX_set_rsa_mgf1_md(operation.context, digest.handle) == 1
      else { throw .openSSL("EVP_PKEY_CTX_set_rsa_oaep_md") }
    case .rsaOAEPWithSessionKey, .ecies: return nil
    }
    return try block.withBytes { (bytes) throws(CertificateError) in try operation.result(of: call, bytes) }
  }
}
