package import Basics
import COpenSSL
import KeychainFormats

/// A public or private key as a keychain stores it.
///
/// RSA keys are PKCS#1. Public keys on a curve are 04‖X‖Y, with the coordinates of the point. Private keys on a curve
/// are 04‖X‖Y‖K, with the private scalar K. These are the bytes of `SecKeyCopyExternalRepresentation`.
/// Source: Apple `SecRSAKey.c`, `SecECKey.m`.
package struct KeyMaterial: Sendable {
  /// The algorithm of a key, with its curve if it has one.
  package enum Algorithm: Sendable, Hashable {
    /// RSA; the modulus determines the size.
    case rsa
    /// A key on one of the curves that keychains support.
    case ellipticCurve(EllipticCurve)

    /// The type of key. `kSecAttrKeyType` contains its raw value as text, "42" or "73".
    package var keyType: KeyType {
      switch self {
      case .rsa: .rsa
      case .ellipticCurve: .ellipticCurve
      }
    }
  }

  /// The values of `kSecAttrKeyType`. Source: Apple `SecItemConstants.c`.
  package enum KeyType: Int64, Sendable, CaseIterable {
    /// `kSecAttrKeyTypeRSA`.
    case rsa = 42
    /// `kSecAttrKeyTypeECSECPrimeRandom`.
    case ellipticCurve = 73
  }

  /// The values of `kSecAttrKeyClass` for the keys of a pair.
  package enum Role: Int64, Sendable, CaseIterable {
    /// `kSecAttrKeyClassPublic`.
    case publicKey = 0
    /// `kSecAttrKeyClassPrivate`.
    case privateKey = 1
  }

  /// The algorithm.
  package let algorithm: Algorithm
  /// Whether this is the public or the private key of the pair.
  package let role: Role
  /// The bytes that the keychain stores. They are secret for a private key.
  package let externalRepresentation: SensitiveBytes
  /// The DER of an RSAPublicKey, or 04‖X‖Y.
  package let publicKey: [UInt8]
  /// The size for `kSecAttrKeySizeInBits`. For RSA, this is the size of the modulus, rounded up to whole bytes.
  package let sizeInBits: Int
  /// The SHA-1 of the public key, 20 bytes: the `klbl` of both keys and the `pkhh` of their certificates.
  package let applicationLabel: [UInt8]

  /// The maximum number of bytes of a key file. The largest RSA key has a fifth of this size.
  package static let maximumByteCount = 65_536

  private init(
    _ algorithm: Algorithm, _ role: Role, publicKey: [UInt8], sizeInBits: Int, representation: SensitiveBytes
  ) throws(CertificateError) {
    self.algorithm = algorithm
    self.role = role
    self.publicKey = publicKey
    self.sizeInBits = sizeInBits
    externalRepresentation = representation
    do throws(DataProtectionError) { applicationLabel = try Digest.sha1(publicKey) } catch {
      throw CertificateError(error)
    }
  }

  init(_ key: RSAKey) throws(CertificateError) {
    try self.init(
      .rsa, key.privateKey == nil ? .publicKey : .privateKey, publicKey: key.publicKey, sizeInBits: key.sizeInBits,
      representation: key.privateKey ?? SensitiveBytes(copying: key.publicKey))
  }

  /// Creates a public key.
  ///
  /// - Parameters:
  ///   - curve: The curve.
  ///   - point: The point in any encoding.
  init(_ curve: EllipticCurve, point: UnsafeRawBufferPointer) throws(CertificateError) {
    let publicKey = try curve.point(point)
    try self.init(
      .ellipticCurve(curve), .publicKey, publicKey: publicKey, sizeInBits: curve.sizeInBits,
      representation: SensitiveBytes(copying: publicKey))
  }

  /// Creates a private key.
  ///
  /// - Parameters:
  ///   - curve: The curve.
  ///   - scalar: The private scalar, at most as long as a coordinate.
  ///   - points: Encodings of the public key from the same file; all must match the scalar.
  init(
    _ curve: EllipticCurve, scalar: UnsafeRawBufferPointer, points: [UnsafeRawBufferPointer]
  ) throws(CertificateError) {
    let size = curve.coordinateSize
    guard scalar.count <= size else {
      throw CertificateError(
        .malformed, "the private number has \(scalar.count) bytes; P-\(curve.rawValue) uses \(size)")
    }
    let publicKey = try curve.publicKey(of: scalar)
    for point in points {
      guard try curve.point(point) == publicKey else {
        throw CertificateError(.mismatch, "the public key does not match the private number")
      }
    }
    let representation = SensitiveBytes(count: publicKey.count + size) { target in
      target.copyBytes(from: publicKey)
      UnsafeMutableRawBufferPointer(rebasing: target[(target.count - scalar.count)...]).copyMemory(from: scalar)
    }
    try self.init(
      .ellipticCurve(curve), .privateKey, publicKey: publicKey, sizeInBits: curve.sizeInBits,
      representation: representation)
  }

  /// The public key of the pair.
  package var publicMaterial: KeyMaterial {
    get throws(CertificateError) {
      guard role == .privateKey else { return self }
      return try KeyMaterial(
        algorithm, .publicKey, publicKey: publicKey, sizeInBits: sizeInBits,
        representation: SensitiveBytes(copying: publicKey))
    }
  }
}

extension KeyMaterial {
  /// The sizes of RSA keys that can be generated, in bits. Source: Apple `SecKey.h` (`SecKeySizes`).
  package static let generatedRSASizes = 1024...4096

  /// Generates a private key on a curve: a random number below the curve's order, drawn again if necessary (FIPS 186-4,
  /// B.4.2).
  ///
  /// - Throws: `.failed` if no random bytes are available.
  package static func generate(
    on curve: EllipticCurve, random: some RandomSource = SystemRandomSource()
  ) throws(CertificateError) -> KeyMaterial {
    let size = curve.coordinateSize
    let mask = UInt8(truncatingIfNeeded: 0xFF >> (8 * size - curve.sizeInBits))
    // At most one of 2^32 random numbers of this size is not below the order, so 16 draws always suffice.
    for _ in 0..<16 {
      let scalar: SensitiveBytes
      do throws(DataProtectionError) {
        scalar = try SensitiveBytes(count: size) { (buffer) throws(DataProtectionError) in
          try random.fill(buffer)
          buffer[0] &= mask
        }
      } catch {
        throw CertificateError(error)
      }
      do throws(CertificateError) {
        return try scalar.withBytes { (bytes) throws(CertificateError) in
          try KeyMaterial(curve, scalar: bytes, points: [])
        }
      } catch {
        guard error.code == .malformed else { throw error }
      }
    }
    throw CertificateError(
      .failed, "the source of randomness returned no number below the order of P-\(curve.rawValue)")
  }

  /// Generates a private RSA key with the exponent 65537. OpenSSL's own generator draws the primes.
  ///
  /// - Throws: `.overLimit` if the size is not in `generatedRSASizes` or not a multiple of 8.
  package static func generateRSA(sizeInBits: Int) throws(CertificateError) -> KeyMaterial {
    guard generatedRSASizes.contains(sizeInBits), sizeInBits.isMultiple(of: 8), let size = Int32(exactly: sizeInBits)
    else {
      throw CertificateError(
        .overLimit,
        "an RSA key cannot have \(sizeInBits) bits, only a multiple of 8 from \(generatedRSASizes.lowerBound) to "
          + "\(generatedRSASizes.upperBound) bits")
    }
    guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else {
      throw .openSSL("EVP_PKEY_CTX_new_from_name")
    }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, size) == 1,
      EVP_PKEY_generate(context, &key) == 1, let key
    else { throw .openSSL("EVP_PKEY_generate") }
    defer { EVP_PKEY_free(key) }
    var der: UnsafeMutablePointer<UInt8>?
    let count = Int(i2d_PrivateKey(key, &der))
    guard count > 0, let der else { throw .openSSL("i2d_PrivateKey") }
    defer { CRYPTO_clear_free(der, count, nil, 0) }
    return try KeyMaterial(RSAKey(privateKey: UnsafeRawBufferPointer(start: der, count: count)))
  }
}

extension KeyMaterial {
  /// The key in PEM for other programs: a private key as PKCS#8 (RFC 5958), a public key as SubjectPublicKeyInfo (RFC
  /// 5280, 4.1.2.7).
  ///
  /// - Throws: `.failed` if OpenSSL rejects the key.
  package var pem: SensitiveBytes {
    get throws(CertificateError) {
      switch role {
      case .publicKey: return publicKeyInfo.withRawBytes { PEM.encode("PUBLIC KEY", $0) }
      case .privateKey:
        return try withPrivateKeyInfo { (bytes) in PEM.encode("PRIVATE KEY", bytes) }
      }
    }
  }

  /// The DER of the SubjectPublicKeyInfo.
  var publicKeyInfo: [UInt8] {
    let parameters =
      switch algorithm {
      case .rsa: ASN1Encoding.element(.null, [])
      case .ellipticCurve(let curve): ASN1Encoding.element(.objectIdentifier, curve.identifier)
      }
    let identifier =
      switch algorithm {
      case .rsa: AlgorithmIdentifier.rsaEncryption
      case .ellipticCurve: AlgorithmIdentifier.ecPublicKey
      }
    let algorithmIdentifier = ASN1Encoding.element(
      .sequence, ASN1Encoding.element(.objectIdentifier, identifier) + parameters)
    return ASN1Encoding.element(.sequence, algorithmIdentifier + ASN1Encoding.element(.bitString, [0] + publicKey))
  }

  /// Calls a closure with the DER of the PKCS#8 structure, which is then overwritten.
  private func withPrivateKeyInfo<Result>(
    _ body: (UnsafeRawBufferPointer) -> Result
  ) throws(CertificateError) -> Result {
    let key = try KeyHandle(self)
    guard let info = EVP_PKEY2PKCS8(key.handle) else { throw .openSSL("EVP_PKEY2PKCS8") }
    defer { PKCS8_PRIV_KEY_INFO_free(info) }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = Int(i2d_PKCS8_PRIV_KEY_INFO(info, &bytes))
    guard count > 0, let bytes else { throw .openSSL("i2d_PKCS8_PRIV_KEY_INFO") }
    defer { CRYPTO_clear_free(bytes, count, #file, #line) }
    return body(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// The DER of the algorithm's own structure: the stored RSAPrivateKey (RFC 8017, A.1.2), or an ECPrivateKey (RFC
  /// 5915) that is built from 04‖X‖Y‖K.
  var privateKeyStructure: SensitiveBytes {
    guard case .ellipticCurve(let curve) = algorithm else { return externalRepresentation }
    let version = ASN1Encoding.element(.integer, [1])
    let curveAndPublicKey =
      ASN1Encoding.element(.explicit(0), ASN1Encoding.element(.objectIdentifier, curve.identifier))
      + ASN1Encoding.element(.explicit(1), ASN1Encoding.element(.bitString, [0] + publicKey))
    let size = curve.coordinateSize
    // A coordinate has at most 66 bytes, so its length takes one byte.
    let scalarHeader = ASN1Encoding.header(.octetString, size)
    let header = ASN1Encoding.header(
      .sequence, version.count + scalarHeader.count + size + curveAndPublicKey.count)
    var buffer = SensitiveBuffer()
    for part in [header, version, scalarHeader] { part.withRawBytes { buffer.append($0) } }
    externalRepresentation.withBytes { buffer.append(UnsafeRawBufferPointer(rebasing: $0.suffix(size))) }
    curveAndPublicKey.withRawBytes { buffer.append($0) }
    return buffer.bytes()
  }
}

extension CertificateAttributes {
  /// The certificate in PEM for other programs.
  package var pem: SensitiveBytes { der.withRawBytes { PEM.encode("CERTIFICATE", $0) } }
}
