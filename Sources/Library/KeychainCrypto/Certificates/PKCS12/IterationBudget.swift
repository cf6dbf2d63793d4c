import Basics
internal import COpenSSL

/// The number of iterations that a file may still require.
struct IterationBudget {
  var remaining: Int

  mutating func deduct(_ count: Int) throws(CertificateError) {
    guard (0...remaining).contains(count) else {
      throw CertificateError(
        .overLimit,
        "its key derivation takes more than \(HumanReadable.grouped(PKCS12File.maximumIterationCount)) iterations in total"
      )
    }
    remaining -= count
  }

  /// Deducts the iterations of a PKCS#12 or PKCS#5 algorithm.
  ///
  /// - Parameter parameters: The parameters in DER: either a salt and the iterations, or the parameters of PBES2 or
  ///   PBMAC1, which contain a key derivation (RFC 8018, A.4, A.5).
  mutating func deduct(parameters: UnsafeRawBufferPointer) throws(CertificateError) {
    var outer = ASN1Cursor(parameters)
    var fields = try outer.next(.sequence, "the parameters of an encryption").cursor
    if fields.nextTag == .sequence {
      var derivation = try fields.next(.sequence, "a key derivation").cursor
      let name = try derivation.next(.objectIdentifier, "the name of a key derivation").contents
      guard name.elementsEqual(Self.pbkdf2) else {
        throw CertificateError(.unsupported, "its key derivation is not supported")
      }
      fields = try derivation.next(.sequence, "the parameters of a key derivation").cursor
    }
    _ = try fields.next(.octetString, "a salt")
    let digits = try fields.nextUnsigned("a number of iterations")
    // A number of more than four bytes exceeds every budget, and might not fit into an `Int`.
    guard digits.count <= 4 else { return try deduct(.max) }
    try deduct(digits.reduce(0) { $0 << 8 | Int($1) })
  }

  /// The object identifier 1.2.840.113549.1.5.12.
  private static let pbkdf2: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C]
}

extension IterationBudget {
  /// Deducts the iterations of an encryption or of an authentication code (MAC).
  mutating func deduct(_ algorithm: UnsafePointer<X509_ALGOR>) throws(CertificateError) {
    guard let parameters = Self.parameters(of: algorithm) else {
      throw CertificateError(.unsupported, "an encryption has unsupported parameters")
    }
    try deduct(
      parameters: UnsafeRawBufferPointer(
        start: ASN1_STRING_get0_data(parameters), count: Int(ASN1_STRING_length(parameters))))
  }

  /// Returns the parameters of an algorithm, or `nil` if they are not a SEQUENCE. The parameters of a plain digest
  /// are not.
  static func parameters(of algorithm: UnsafePointer<X509_ALGOR>) -> UnsafePointer<ASN1_STRING>? {
    var (type, value) = (V_ASN1_UNDEF, UnsafeRawPointer?.none)
    X509_ALGOR_get0(nil, &type, &value, algorithm)
    return type == V_ASN1_SEQUENCE ? value?.assumingMemoryBound(to: ASN1_STRING.self) : nil
  }
}
