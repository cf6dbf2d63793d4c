import Basics
internal import KeychainFormats

/// An RSA key in PKCS#1 (RFC 8017, A.1), as a keychain stores it.
struct RSAKey {
  /// The DER of an RSAPublicKey.
  let publicKey: [UInt8]
  /// The size of the modulus in bits, rounded up to whole bytes.
  let sizeInBits: Int
  /// The DER of the RSAPrivateKey, or `nil` if this is a public key.
  let privateKey: SensitiveBytes?

  /// The smallest modulus, in bits. Other readers also reject smaller keys.
  static let minimumModulusBitCount = 512
  /// The largest modulus, in bits. Larger keys take seconds to use.
  static let maximumModulusBitCount = 16_384

  /// Reads a public key.
  ///
  /// - Parameter bytes: The DER of an RSAPublicKey.
  init(publicKey bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    var numbers = try ASN1Cursor(membersOfOnlySequence: bytes, "an RSA public key")
    sizeInBits = try Self.publicNumbers(&numbers).sizeInBits
    try numbers.checkEnd("the exponent")
    publicKey = Array(bytes)
    privateKey = nil
  }

  /// Reads a private key.
  ///
  /// - Parameter bytes: The DER of an RSAPrivateKey with two primes.
  /// - Throws: `.mismatch` if its numbers do not match each other; `.unsupported` for more than two primes.
  init(privateKey bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    var numbers = try ASN1Cursor(membersOfOnlySequence: bytes, "an RSA private key")
    guard try numbers.nextUnsigned("the version").allSatisfy({ $0 == 0 }) else {
      throw CertificateError(.unsupported, "the RSA key has more than two primes")
    }
    let (modulus, exponent, size) = try Self.publicNumbers(&numbers)
    try Self.checkPrivateNumbers(&numbers, modulus: modulus.contents, exponent: exponent.contents)
    sizeInBits = size
    publicKey = ASN1Encoding.element(.sequence, Array(modulus.encoding) + Array(exponent.encoding))
    privateKey = SensitiveBytes(copying: bytes)
  }

  private typealias PublicNumbers = (modulus: ASN1Cursor.Element, exponent: ASN1Cursor.Element, sizeInBits: Int)

  /// Reads and checks the modulus and the exponent. The size of the modulus must be within the limits, both numbers must
  /// be odd, and the exponent must be at least 3 and less than the modulus.
  private static func publicNumbers(_ numbers: inout ASN1Cursor) throws(CertificateError) -> PublicNumbers {
    // A second cursor reads the same numbers again, without leading zeros.
    var unsignedCursor = numbers
    let modulus = try numbers.next(.integer, "the modulus")
    let exponent = try numbers.next(.integer, "the exponent")
    let modulusDigits = try unsignedCursor.nextUnsigned("the modulus")
    let exponentDigits = try unsignedCursor.nextUnsigned("the exponent")
    let sizeInBits = modulusDigits.count * 8
    guard (minimumModulusBitCount...maximumModulusBitCount).contains(sizeInBits) else {
      throw CertificateError(
        .overLimit,
        "the RSA key has \(sizeInBits) bits; \(minimumModulusBitCount) to \(maximumModulusBitCount) are accepted")
    }
    let n = try BigNumber(modulusDigits)
    let e = try BigNumber(exponentDigits)
    guard n.isOdd, e.isOdd, !e.isOne, e.isLess(than: n) else {
      throw CertificateError(.malformed, "the modulus and the exponent do not form an RSA key")
    }
    return (modulus, exponent, sizeInBits)
  }

  /// Checks that the other numbers of an RSAPrivateKey match its public numbers n (the modulus) and e (the exponent).
  ///
  /// The other numbers are d, p, q, d mod p-1, d mod q-1 and 1/q mod p.
  private static func checkPrivateNumbers(
    _ numbers: inout ASN1Cursor, modulus: UnsafeRawBufferPointer, exponent: UnsafeRawBufferPointer
  ) throws(CertificateError) {
    let n = try BigNumber(modulus)
    let e = try BigNumber(exponent)
    // No number may be longer than the modulus, which limits the work.
    func next(_ name: String) throws(CertificateError) -> BigNumber {
      let digits = try numbers.nextUnsigned(name)
      guard digits.count <= modulus.count else { throw mismatch }
      return try BigNumber(digits)
    }
    let d = try next("the private exponent")
    let p = try next("the first prime")
    let q = try next("the second prime")
    let dp = try next("the first exponent")
    let dq = try next("the second exponent")
    let qInverse = try next("the coefficient")
    try numbers.checkEnd("the coefficient")
    guard p.isOdd, q.isOdd, !p.isOne, !q.isOne, try p.times(q).equals(n) else { throw mismatch }
    let pMinusOne = try p.minusOne()
    let qMinusOne = try q.minusOne()
    let product = try e.times(d)
    guard d.isLess(than: n), try product.modulo(pMinusOne).isOne, try product.modulo(qMinusOne).isOne,
      try d.modulo(pMinusOne).equals(dp), try d.modulo(qMinusOne).equals(dq), try qInverse.times(q).modulo(p).isOne
    else { throw mismatch }
  }

  private static var mismatch: CertificateError {
    CertificateError(.mismatch, "the numbers of the RSA private key contradict each other")
  }
}
