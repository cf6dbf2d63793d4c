import Basics
internal import COpenSSL
internal import KeychainFormats

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
    throw MaterialError(.failed, "the source of randomness gives no number below the order of P-\(curve.rawValue)")
  }

  /// A new private RSA key with the exponent 65537. Its primes are drawn by OpenSSL's own generator.
  ///
  /// - Throws: `.overLimit` for a size that is none of `generatedRSASizes` or no number of whole bytes.
  public static func generateRSA(sizeInBits: Int) throws(MaterialError) -> KeyMaterial {
    guard generatedRSASizes.contains(sizeInBits), sizeInBits.isMultiple(of: 8), let size = Int32(exactly: sizeInBits)
    else {
      throw MaterialError(
        .overLimit,
        "an RSA key of \(sizeInBits) bits; whole bytes from \(generatedRSASizes.lowerBound) to "
          + "\(generatedRSASizes.upperBound) are made")
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
