import Basics
import COpenSSL

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
    // A random number of the curve's size is not below the order with a probability of at most 2^-32.
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
