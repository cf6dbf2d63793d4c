package import Basics
import KeychainFormats

/// The attributes that a keychain stores for an X.509 certificate, with the certificate itself.
package struct CertificateAttributes: Sendable, Hashable {
  /// The certificate in DER.
  package let der: [UInt8]
  /// The version, 1 to 3, for `kSecAttrCertificateType`.
  package let version: Int
  /// The normalized contents of the subject's Name without its outer tag and length (`DistinguishedName`), like the
  /// contents of `SecCertificateCopyNormalizedSubjectSequence`. Empty for an empty subject.
  package let subject: [UInt8]
  /// The contents of the issuer's Name, normalized in the same way.
  package let issuer: [UInt8]
  /// The contents of the serial number's INTEGER, including a leading zero.
  package let serialNumber: [UInt8]
  /// The subject key identifier from the certificate's extension, or `nil` if there is none.
  package let subjectKeyID: [UInt8]?
  /// The SHA-1 of the public key as PKCS#1 or 04‖X‖Y, without its algorithm; 20 bytes. It equals the `klbl` of the key.
  package let publicKeyHash: [UInt8]
  /// The algorithm and size of the public key, or `nil` if keychains do not store such a key, such as Ed25519.
  package let publicKey: PublicKey?
  /// The subject's common name, or else its unit, its organization or its first text; `nil` if there is none. Untrusted
  /// text.
  package let subjectSummary: String?

  /// The algorithm and the size of a certificate's public key.
  package struct PublicKey: Sendable, Hashable {
    /// RSA, or the curve.
    package let algorithm: KeyMaterial.Algorithm
    /// The size in bits, as in `kSecAttrKeySizeInBits`.
    package let sizeInBits: Int
  }

  /// The maximum number of bytes of a certificate, and of a file with certificates; a real certificate has a few
  /// thousand.
  package static let maximumByteCount = 262_144
  /// The maximum number of bytes of a serial number; RFC 5280 allows only 20. Source: Apple `SecCertificate.c`
  /// (`SecCertificateParse`).
  package static let maximumSerialNumberByteCount = 37

  /// Reads a certificate in DER.
  ///
  /// - Throws: `.malformed`; `.overLimit`; `.unsupported` for a version that X.509 does not have.
  package init(der: [UInt8]) throws(CertificateError) {
    self = try der.withRawBytes { (bytes) throws(CertificateError) in try CertificateAttributes(bytes) }
  }

  /// Reads the certificate in a DER file, or all certificates in a PEM file. Other PEM blocks are ignored.
  ///
  /// - Throws: `.unexpectedKind` if there are none; `.overLimit` for a file of more than `maximumByteCount` bytes;
  ///   `.malformed`, `.overLimit` or `.unsupported` for a bad certificate.
  package static func all(in file: UnsafeRawBufferPointer) throws(CertificateError) -> [CertificateAttributes] {
    guard file.count <= maximumByteCount else { throw overLimit(file.count) }
    if file.first == ASN1Cursor.Tag.sequence.rawValue { return [try CertificateAttributes(file)] }
    guard let text = try PEM(file) else { throw CertificateError(.malformed, "it is not PEM or DER") }
    var certificates: [CertificateAttributes] = []
    for block in text.blocks where ["CERTIFICATE", "X509 CERTIFICATE"].contains(block.label) {
      certificates.append(
        try block.contents.withBytes { (bytes) throws(CertificateError) in try CertificateAttributes(bytes) })
    }
    guard !certificates.isEmpty else {
      throw CertificateError(.unexpectedKind, "it contains \"\(text.blocks[0].label)\" in PEM, not a certificate")
    }
    return certificates
  }

  /// Reads the certificates in a file, like `all(in:)` for a buffer.
  ///
  /// - Throws: The errors of `all(in:)` for a buffer.
  package static func all(in file: [UInt8]) throws(CertificateError) -> [CertificateAttributes] {
    try file.withRawBytes { (bytes) throws(CertificateError) in try all(in: bytes) }
  }

  /// Reads the certificates in a file that may also contain a private key.
  package static func all(in file: SensitiveBytes) throws(CertificateError) -> [CertificateAttributes] {
    try file.withBytes { (bytes) throws(CertificateError) in try all(in: bytes) }
  }

  /// Reads a certificate in DER, or the first one in a PEM file.
  package init(pemOrDER file: [UInt8]) throws(CertificateError) {
    self = try Self.all(in: file)[0]
  }

  private static func overLimit(_ count: Int) -> CertificateError {
    CertificateError(.overLimit, "it has \(count) bytes; at most \(maximumByteCount) are accepted")
  }

  private init(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    guard bytes.count <= Self.maximumByteCount else { throw Self.overLimit(bytes.count) }
    try Self.checkShape(bytes)
    let certificate = try X509Certificate(der: bytes)
    guard (1...3).contains(certificate.version) else {
      throw CertificateError(.unsupported, "X.509 has no version \(certificate.version)")
    }
    der = Array(bytes)
    version = certificate.version
    let subject = try Self.name(certificate.subject())
    self.subject = subject.normalizedContents
    subjectSummary = subject.summary
    issuer = try Self.name(certificate.issuer()).normalizedContents
    serialNumber = try Self.contents(certificate.serialNumber())
    guard serialNumber.count <= Self.maximumSerialNumberByteCount else {
      throw CertificateError(.overLimit, "its serial number has \(serialNumber.count) bytes")
    }
    subjectKeyID = certificate.subjectKeyID
    do throws(DataProtectionError) { publicKeyHash = try Digest.sha1(certificate.publicKeyBits) } catch {
      throw CertificateError(error)
    }
    publicKey = try Self.publicKey(certificate.publicKeyInfo())
  }

  /// The public key as a keychain stores it, or `nil` if keychains do not store such a key.
  package var publicKeyMaterial: KeyMaterial? {
    get throws(CertificateError) {
      let info = try der.withRawBytes { (bytes) throws(CertificateError) in
        try X509Certificate(der: bytes).publicKeyInfo()
      }
      return try Self.publicKeyMaterial(info)
    }
  }

  /// Checks the outer structure, to report a key or other DER more clearly than OpenSSL does. A certificate is a
  /// sequence whose first two members are sequences: its fields, and the algorithm of its signature.
  private static func checkShape(_ bytes: UnsafeRawBufferPointer) throws(CertificateError) {
    var members = try ASN1Cursor(membersOfOnlySequence: bytes, "the certificate")
    let firstTag = try members.next("the first part").tag
    let secondTag = try members.next("the second part").tag
    guard firstTag == .sequence, secondTag == .sequence else {
      throw CertificateError(.unexpectedKind, "it does not have the structure of a certificate")
    }
  }

  private static func name(_ der: [UInt8]) throws(CertificateError) -> DistinguishedName {
    try der.withRawBytes { (bytes) throws(CertificateError) in try DistinguishedName(bytes) }
  }

  private static func contents(_ integer: [UInt8]) throws(CertificateError) -> [UInt8] {
    try integer.withRawBytes { (bytes) throws(CertificateError) in
      var cursor = ASN1Cursor(bytes)
      return Array(try cursor.next(.integer, "the serial number").contents)
    }
  }

  private static func publicKey(_ info: [UInt8]) throws(CertificateError) -> PublicKey? {
    try publicKeyMaterial(info).map { PublicKey(algorithm: $0.algorithm, sizeInBits: $0.sizeInBits) }
  }

  /// Returns the public key, or `nil` if it is malformed or keychains do not store such a key. The certificate is
  /// accepted nevertheless.
  private static func publicKeyMaterial(_ info: [UInt8]) throws(CertificateError) -> KeyMaterial? {
    do throws(CertificateError) {
      return try info.withRawBytes { (bytes) throws(CertificateError) in try KeyMaterial.publicKeyInfo(bytes) }
    } catch {
      if error.code == .failed { throw error }
      return nil
    }
  }
}

/// Names that a certificate contains but a keychain does not store.
extension CertificateAttributes {
  /// The e-mail addresses in the subject and the alternative names, without duplicates. Untrusted text; empty if they
  /// cannot be read.
  package var emailAddresses: [String] {
    let addresses = try? der.withRawBytes { (bytes) throws(CertificateError) in
      try X509Certificate(der: bytes).emailAddresses
    }
    return addresses ?? []
  }

  /// The last common name of the subject, or `nil` if there is none. Untrusted text.
  package var commonName: String? {
    let name = try? der.withRawBytes { (bytes) throws(CertificateError) in
      try X509Certificate(der: bytes).subject().withRawBytes { (name) throws(CertificateError) in
        try DistinguishedName(name).commonName
      }
    }
    return name ?? nil
  }
}

/// Values that searches for certificates compare in addition to the stored attributes.
extension CertificateAttributes {
  /// Returns the normalized contents of a Name in DER, like `subject` and `issuer`, or `nil` if the bytes are not a
  /// Name.
  package static func normalizedName(_ der: [UInt8]) -> [UInt8]? {
    try? der.withRawBytes { (bytes) throws(CertificateError) in try DistinguishedName(bytes).normalizedContents }
  }

  /// The DER of the normalized subject.
  package var subjectSequence: [UInt8] { ASN1Encoding.element(.sequence, subject) }
  /// The DER of the normalized issuer.
  package var issuerSequence: [UInt8] { ASN1Encoding.element(.sequence, issuer) }
}

extension CertificateAttributes {
  /// Returns whether a date is within the certificate's validity, both ends included.
  ///
  /// Source: RFC 5280, 4.1.2.5; Apple `SecItemServer.c` (`_FilterWithDate`).
  /// - Returns: `false` also if the validity cannot be read.
  package func isValid(at date: KeychainDate) -> Bool {
    guard let period = try? der.withRawBytes({ (bytes) throws(CertificateError) in try Self.validity(bytes) }) else {
      return false
    }
    return period.start < period.end && period.start <= date && date <= period.end
  }

  private static func validity(
    _ certificate: UnsafeRawBufferPointer
  ) throws(CertificateError) -> (start: KeychainDate, end: KeychainDate) {
    var outer = ASN1Cursor(certificate)
    var parts = try outer.next(.sequence, "the certificate").cursor
    var fields = try parts.next(.sequence, "the certificate's fields").cursor
    _ = try fields.nextIfPresent(.explicit(0), "the version")
    _ = try fields.next(.integer, "the serial number")
    _ = try fields.next(.sequence, "the algorithm")
    _ = try fields.next(.sequence, "the issuer")
    var period = try fields.next(.sequence, "the validity").cursor
    return (try time(&period), try time(&period))
  }

  private static func time(_ cursor: inout ASN1Cursor) throws(CertificateError) -> KeychainDate {
    let element = try cursor.next("a time")
    let lacksSeconds = element.tag == .utcTime && element.contents.count == "YYMMDDhhmmZ".utf8.count
    let date =
      lacksSeconds
      ? (try? DERPropertyList.decode(withSeconds(element.contents)))?.dateValue
      : (try? DERPropertyList.decode(element.encoding))?.dateValue
    guard let date else { throw CertificateError(.malformed, "one of its validity dates is not a valid date") }
    return date
  }

  /// Adds seconds to a UTCTime. BER allows times without seconds (ITU-T X.680, 47.3), some certificates have them, and
  /// Apple accepts them.
  private static func withSeconds(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    ASN1Encoding.element(.utcTime, Array(text.dropLast()) + Array("00".utf8) + Array(text.suffix(1)))
  }
}
