import Basics
import COpenSSL
import KeychainFormats

/// OpenSSL's object for a parsed PKCS#12 file.
struct PKCS12Handle: ~Copyable {
  private let handle: OpaquePointer

  /// Parses a file.
  ///
  /// - Parameter der: A file with nothing after it.
  init(der: [UInt8]) throws(CertificateError) {
    // The contents use the library context of the object, so the object needs the context with the legacy ciphers.
    guard var handle = PKCS12_init_ex(NID_pkcs7_data, OpenSSLContext.context, nil) as OpaquePointer? else {
      throw .openSSL("PKCS12_init_ex")
    }
    let end = try der.withRawBytes { (bytes) throws(CertificateError) -> Int? in
      let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      var (position, target) = (start, Optional(handle))
      // If parsing fails, OpenSSL frees the object.
      guard let parsed = d2i_PKCS12(&target, &position, bytes.count), let start, let position else { return nil }
      handle = parsed
      return position - start
    }
    guard let end else {
      ERR_clear_error()
      throw CertificateError(.malformed, "OpenSSL finds no PKCS#12 file in it")
    }
    guard end == der.count else {
      PKCS12_free(handle)
      throw CertificateError(.malformed, "bytes follow the PKCS#12 file")
    }
    self.handle = handle
  }

  deinit {
    PKCS12_free(handle)
    ERR_clear_error()
  }

  /// Deducts the iterations of the file's authentication code (MAC), if it has one.
  ///
  /// The number of iterations is stored with the code; a missing number means 1. PBMAC1 (RFC 9579), which newer releases
  /// of OpenSSL support, has a second number in the parameters of its algorithm.
  func deductMACIterations(from budget: inout IterationBudget) throws(CertificateError) {
    guard hasMAC else { return }
    var (count, algorithm) = (UnsafePointer<ASN1_INTEGER>?.none, UnsafePointer<X509_ALGOR>?.none)
    PKCS12_get0_mac(nil, &algorithm, nil, &count, handle)
    let iterations = count.map { ASN1_INTEGER_get($0) } ?? 1
    try budget.deduct(iterations < 0 ? .max : iterations)
    guard let algorithm, IterationBudget.parameters(of: algorithm) != nil else { return }
    try budget.deduct(algorithm)
  }

  var hasMAC: Bool { PKCS12_mac_present(handle) == 1 }

  /// Returns whether the file's authentication code matches a password.
  func macMatches(_ password: PKCS12Password) -> Bool {
    PKCS12_verify_mac(handle, password.text, password.count) == 1
  }

  /// Decrypts all contents of the file.
  func bags(
    _ password: PKCS12Password, _ budget: inout IterationBudget
  ) throws(CertificateError) -> PKCS12Bags {
    var bags = PKCS12Bags(password: password)
    guard let safes = PKCS12_unpack_authsafes(handle) else {
      throw CertificateError(.malformed, "the parts of the file cannot be read")
    }
    defer { OPENSSL_sk_pop_free(safes) { PKCS7_free($0?.assumingMemoryBound(to: PKCS7.self)) } }
    for index in 0..<OPENSSL_sk_num(safes) {
      guard let part = OPENSSL_sk_value(safes, index)?.assumingMemoryBound(to: PKCS7.self) else { continue }
      let content = try content(of: part, password, &budget)
      defer { OPENSSL_sk_pop_free(content) { PKCS12_SAFEBAG_free($0.map { OpaquePointer($0) }) } }
      try bags.add(content, &budget, depth: 0)
    }
    return bags
  }

  private func content(
    of part: UnsafeMutablePointer<PKCS7>, _ password: PKCS12Password, _ budget: inout IterationBudget
  ) throws(CertificateError) -> OpaquePointer {
    switch OBJ_obj2nid(part.pointee.type) {
    case NID_pkcs7_data:
      guard let content = PKCS12_unpack_p7data(part) else {
        throw CertificateError(.malformed, "a part of the file cannot be read")
      }
      return content
    case NID_pkcs7_encrypted:
      guard let algorithm = part.pointee.d.encrypted?.pointee.enc_data?.pointee.algorithm else {
        throw CertificateError(.malformed, "an encrypted part of the file is empty")
      }
      try budget.deduct(algorithm)
      guard let content = PKCS12_unpack_p7encdata(part, password.text, password.count) else {
        throw password.failure
      }
      return content
    default: throw CertificateError(.unsupported, "a part of the file is encrypted for a certificate")
    }
  }
}

/// An OpenSSL library context with the legacy ciphers, if they are installed. Other systems encrypt PKCS#12 files with
/// these ciphers.
enum OpenSSLContext {
  // Created once, and only passed to calls that lock it.
  nonisolated(unsafe) static let context: OpaquePointer? = {
    let context = OSSL_LIB_CTX_new()
    for provider in ["default", "legacy"] { _ = OSSL_PROVIDER_load(context, provider) }
    ERR_clear_error()
    return context
  }()
}
