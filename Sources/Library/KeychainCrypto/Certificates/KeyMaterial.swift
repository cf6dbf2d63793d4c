public import Basics
import COpenSSL
import KeychainFormats

/// A public or private key in the form in which a keychain stores it.
///
/// RSA keys are PKCS#1; keys on a curve are 04‖X‖Y, private ones followed by K. It is what
/// `SecKeyCopyExternalRepresentation` gives. Source: Apple `SecRSAKey.c`, `SecECKey.m`.
public struct KeyMaterial: Sendable {
  /// The kind of key, with its curve where it has one.
  public enum Algorithm: Sendable, Hashable {
    /// RSA, of a size that the modulus says.
    case rsa
    /// A point of one of the curves that keychains store.
    case ellipticCurve(EllipticCurve)

    /// The number that `kSecAttrKeyType` writes as text: 42 and 73.
    public var keyType: KeyType {
      switch self {
      case .rsa: .rsa
      case .ellipticCurve: .ellipticCurve
      }
    }
  }

  /// The values of `kSecAttrKeyType`. Source: Apple `SecItemConstants.c`.
  public enum KeyType: Int64, Sendable, CaseIterable {
    /// `kSecAttrKeyTypeRSA`.
    case rsa = 42
    /// `kSecAttrKeyTypeECSECPrimeRandom`.
    case ellipticCurve = 73
  }

  /// The values of `kSecAttrKeyClass` that keys of a pair have.
  public enum Half: Int64, Sendable, CaseIterable {
    /// `kSecAttrKeyClassPublic`.
    case publicKey = 0
    /// `kSecAttrKeyClassPrivate`.
    case privateKey = 1
  }

  /// The kind of key.
  public let algorithm: Algorithm
  /// The public or the private half.
  public let half: Half
  /// The bytes that the keychain holds; of a private key a secret.
  public let externalRepresentation: SensitiveBytes
  /// The DER of an RSAPublicKey, or 04‖X‖Y.
  public let publicKey: [UInt8]
  /// What `kSecAttrKeySizeInBits` says: an RSA modulus counts in whole bytes.
  public let sizeInBits: Int
  /// SHA-1 of the public key, 20 bytes: `klbl` of both halves, `pkhh` of their certificates.
  public let applicationLabel: [UInt8]

  /// A larger text or DER is refused unread; the largest RSA key is a fifth of it.
  public static let maximumByteCount = 65_536

  private init(
    _ algorithm: Algorithm, _ half: Half, publicKey: [UInt8], sizeInBits: Int, representation: SensitiveBytes
  ) throws(MaterialError) {
    self.algorithm = algorithm
    self.half = half
    self.publicKey = publicKey
    self.sizeInBits = sizeInBits
    externalRepresentation = representation
    do throws(DataProtectionError) { applicationLabel = try Digest.sha1(publicKey) } catch {
      throw MaterialError(error)
    }
  }

  init(_ key: RSAKey) throws(MaterialError) {
    try self.init(
      .rsa, key.privateKey == nil ? .publicKey : .privateKey, publicKey: key.publicKey, sizeInBits: key.sizeInBits,
      representation: key.privateKey ?? SensitiveBytes(copying: key.publicKey))
  }

  /// - Parameter point: In any of its encodings.
  init(_ curve: EllipticCurve, point: UnsafeRawBufferPointer) throws(MaterialError) {
    let publicKey = try curve.point(point)
    try self.init(
      .ellipticCurve(curve), .publicKey, publicKey: publicKey, sizeInBits: curve.sizeInBits,
      representation: SensitiveBytes(copying: publicKey))
  }

  /// - Parameters:
  ///   - number: The private number, at most as long as a coordinate.
  ///   - points: Encodings of the public key that came with it; all have to be the number's.
  init(
    _ curve: EllipticCurve, number: UnsafeRawBufferPointer, points: [UnsafeRawBufferPointer]
  ) throws(MaterialError) {
    let size = curve.coordinateSize
    guard number.count <= size else {
      throw MaterialError(.malformed, "the private number has \(number.count) bytes; P-\(curve.rawValue) uses \(size)")
    }
    let publicKey = try curve.publicKey(of: number)
    for point in points {
      guard try curve.point(point) == publicKey else {
        throw MaterialError(.mismatch, "the public key does not match the private number")
      }
    }
    let representation = SensitiveBytes(count: publicKey.count + size) { target in
      target.copyBytes(from: publicKey)
      UnsafeMutableRawBufferPointer(rebasing: target[(target.count - number.count)...]).copyMemory(from: number)
    }
    try self.init(
      .ellipticCurve(curve), .privateKey, publicKey: publicKey, sizeInBits: curve.sizeInBits,
      representation: representation)
  }

  /// The public key of the pair.
  public var publicHalf: KeyMaterial {
    get throws(MaterialError) {
      guard half == .privateKey else { return self }
      return try KeyMaterial(
        algorithm, .publicKey, publicKey: publicKey, sizeInBits: sizeInBits,
        representation: SensitiveBytes(copying: publicKey))
    }
  }
}

extension KeyMaterial {
  /// The sizes of RSA keys that are made, in bits. Source: Apple `SecKey.h` (`SecKeySizes`).
  public static let generatedRSASizes = 1024...4096

  /// A new private key on a curve: a number below the order of the curve, drawn until it is one (FIPS 186-4, B.4.2).
  ///
  /// - Throws: `.failed` where the source of randomness fails.
  public static func generate(
    on curve: EllipticCurve, random: some RandomSource = SystemRandomSource()
  ) throws(MaterialError) -> KeyMaterial {
    let size = curve.coordinateSize
    let mask = UInt8(truncatingIfNeeded: 0xFF >> (8 * size - curve.sizeInBits))
    // A number of the curve's size is above its order once in four thousand million times, or less often.
    for _ in 0..<16 {
      let number: SensitiveBytes
      do throws(DataProtectionError) {
        number = try SensitiveBytes(count: size) { (buffer) throws(DataProtectionError) in
          try random.fill(buffer)
          buffer[0] &= mask
        }
      } catch {
        throw MaterialError(error)
      }
      do throws(MaterialError) {
        return try number.withBytes { (bytes) throws(MaterialError) in
          try KeyMaterial(curve, number: bytes, points: [])
        }
      } catch {
        guard error.code == .malformed else { throw error }
      }
    }
    throw MaterialError(.failed, "the source of randomness returned no number below the order of P-\(curve.rawValue)")
  }

  /// A new private RSA key with the exponent 65537. Its primes are drawn by OpenSSL's own generator.
  ///
  /// - Throws: `.overLimit` for a size that is none of `generatedRSASizes` or no number of whole bytes.
  public static func generateRSA(sizeInBits: Int) throws(MaterialError) -> KeyMaterial {
    guard generatedRSASizes.contains(sizeInBits), sizeInBits.isMultiple(of: 8), let size = Int32(exactly: sizeInBits)
    else {
      throw MaterialError(
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
