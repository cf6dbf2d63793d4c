import Basics
internal import COpenSSL

/// OpenSSL's object for a parsed certificate.
struct X509Certificate: ~Copyable {
  let handle: OpaquePointer

  /// Takes ownership of an OpenSSL certificate.
  ///
  /// - Parameter handle: The certificate, which is freed with this value.
  init(adopting handle: OpaquePointer) { self.handle = handle }

  /// Parses a certificate.
  ///
  /// - Parameter der: A certificate with nothing after it.
  init(der: UnsafeRawBufferPointer) throws(CertificateError) {
    var position = der.baseAddress?.assumingMemoryBound(to: UInt8.self)
    guard let start = position, let handle = d2i_X509(nil, &position, der.count) else {
      ERR_clear_error()
      throw CertificateError(.malformed, "OpenSSL finds no certificate in it")
    }
    guard position == start + der.count else {
      X509_free(handle)
      throw CertificateError(.malformed, "bytes follow the certificate")
    }
    self.handle = handle
  }

  deinit { X509_free(handle) }

  /// The version, 1 to 3 in valid certificates.
  var version: Int { X509_get_version(handle) + 1 }

  /// Returns the DER of the certificate.
  func der() throws(CertificateError) -> [UInt8] { try encoded("the certificate") { i2d_X509(handle, $0) } }

  /// Returns the DER of the subject's Name.
  func subject() throws(CertificateError) -> [UInt8] {
    try encoded("the subject") { i2d_X509_NAME(X509_get_subject_name(handle), $0) }
  }

  /// Returns the DER of the issuer's Name.
  func issuer() throws(CertificateError) -> [UInt8] {
    try encoded("the issuer") { i2d_X509_NAME(X509_get_issuer_name(handle), $0) }
  }

  /// Returns the DER of the serial number, an INTEGER.
  func serialNumber() throws(CertificateError) -> [UInt8] {
    try encoded("the serial number") { i2d_ASN1_INTEGER(X509_get0_serialNumber(handle), $0) }
  }

  /// Returns the DER of the SubjectPublicKeyInfo.
  func publicKeyInfo() throws(CertificateError) -> [UInt8] {
    try encoded("the public key") { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(handle), $0) }
  }

  /// The contents of the bit string with the public key.
  var publicKeyBits: [UInt8] {
    guard let bits = X509_get0_pubkey_bitstr(handle) else { return [] }
    return Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(bits), count: Int(ASN1_STRING_length(bits))))
  }

  /// The subject key identifier, or `nil` if there is none that can be read.
  var subjectKeyID: [UInt8]? {
    guard let identifier = X509_get0_subject_key_id(handle) else { return nil }
    return Array(
      UnsafeBufferPointer(start: ASN1_STRING_get0_data(identifier), count: Int(ASN1_STRING_length(identifier))))
  }

  /// The e-mail addresses of the subject and the alternative names, without duplicates. Untrusted text.
  var emailAddresses: [String] {
    guard let stack = X509_get1_email(handle) else { return [] }
    defer { X509_email_free(stack) }
    return (0..<OPENSSL_sk_num(stack)).compactMap { index in
      OPENSSL_sk_value(stack, index).flatMap { String(validatingCString: $0.assumingMemoryBound(to: CChar.self)) }
    }
  }

  /// Returns the output of one of OpenSSL's encoders, which is called first for its length.
  private func encoded(
    _ name: String, _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
  ) throws(CertificateError) -> [UInt8] {
    guard let count = Int(exactly: write(nil)), count > 0 else { throw .openSSL("to write \(name)") }
    let written = [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      buffer.initialize(repeating: 0)
      var position = buffer.baseAddress
      initializedCount = write(&position) == Int32(count) ? count : 0
    }
    guard written.count == count else { throw .openSSL("to write \(name)") }
    return written
  }
}
