import Basics
internal import COpenSSL

/// OpenSSL's search for a path from a certificate to an anchor.
final class ChainSearch {
  private let context: OpaquePointer
  private let store: OpaquePointer
  // Kept alive here, because OpenSSL only has pointers to the stacks.
  private let stacks: [CertificateStack]

  /// Prepares a search.
  ///
  /// - Parameter leaf: A stack with the evaluated certificate.
  init(_ leaf: CertificateStack, intermediates: CertificateStack, anchors: CertificateStack) throws(CertificateError) {
    guard let store = X509_STORE_new() else { throw .openSSL("X509_STORE_new") }
    guard let context = X509_STORE_CTX_new() else {
      X509_STORE_free(store)
      throw .openSSL("X509_STORE_CTX_new")
    }
    (self.context, self.store, stacks) = (context, store, [leaf, intermediates, anchors])
    let certificate = OPENSSL_sk_value(leaf.handle, 0).map { OpaquePointer($0) }
    guard X509_STORE_CTX_init(context, store, certificate, intermediates.handle) == 1 else {
      throw .openSSL("X509_STORE_CTX_init")
    }
    X509_STORE_CTX_set0_trusted_stack(context, anchors.handle)
  }

  deinit {
    X509_STORE_CTX_free(context)
    X509_STORE_free(store)
    ERR_clear_error()
  }

  /// Sets the purpose and the date for which the chain must be valid.
  func require(_ purpose: TrustEvaluation.Purpose, at date: KeychainDate) throws(CertificateError) {
    guard let parameters = X509_STORE_CTX_get0_param(context) else { throw .openSSL("X509_STORE_CTX_get0_param") }
    let seconds = date.secondsSinceReferenceDate.rounded(.down) + Self.referenceDateInUnixTime
    guard let time = time_t(exactly: seconds) else { throw CertificateError(.overLimit, "the time is out of range") }
    X509_VERIFY_PARAM_set_time(parameters, time)
    X509_STORE_CTX_set_verify_cb(context, Self.verifyCallback)
    X509_VERIFY_PARAM_set_depth(parameters, Int32(TrustEvaluation.maximumDepth))
    // An anchor is trusted by itself, even if another certificate issued it.
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST))
    switch purpose {
    case .basic: break
    case .client: X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_CLIENT)
    case .server(let host):
      X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER)
      guard let host else { break }
      // Host names must be in the alternative names, as on Apple's systems since iOS 13.
      X509_VERIFY_PARAM_set_hostflags(
        parameters, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
      if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 { break }
      let name = host.hasSuffix(".") ? String(host.dropLast()) : host
      // OpenSSL would treat an empty name as no name and accept every certificate.
      guard !name.isEmpty, X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count) == 1 else {
        throw CertificateError(.malformed, "the host name is not valid")
      }
    }
  }

  /// Accepts the last second of a validity, which belongs to it (RFC 5280, 4.1.2.5) but which OpenSSL excludes.
  private static let verifyCallback: X509_STORE_CTX_verify_cb = { isValid, context in
    guard isValid == 0, X509_STORE_CTX_get_error(context) == X509_V_ERR_CERT_HAS_EXPIRED,
      let certificate = X509_STORE_CTX_get_current_cert(context),
      ASN1_TIME_cmp_time_t(
        X509_get0_notAfter(certificate), X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(context))) == 0
    else { return isValid }
    X509_STORE_CTX_set_error(context, X509_V_OK)
    return 1
  }

  func run() -> Bool { X509_verify_cert(context) == 1 && X509_STORE_CTX_get_error(context) == X509_V_OK }

  func chain() throws(CertificateError) -> [[UInt8]] {
    guard let stack = X509_STORE_CTX_get1_chain(context) else { return [] }
    defer { OPENSSL_sk_pop_free(stack) { X509_free($0.map { OpaquePointer($0) }) } }
    var chain: [[UInt8]] = []
    for index in 0..<OPENSSL_sk_num(stack) {
      guard let value = OPENSSL_sk_value(stack, index) else { continue }
      let certificate = OpaquePointer(value)
      guard X509_up_ref(certificate) == 1 else { throw .openSSL("X509_up_ref") }
      chain.append(try X509Certificate(adopting: certificate).der())
    }
    return chain
  }

  var failure: TrustEvaluation.Failure {
    let code = X509_STORE_CTX_get_error(context)
    return switch code {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      .issuerMissing
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED:
      .anchorUnknown
    case X509_V_ERR_CERT_HAS_EXPIRED: .expired
    case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .hostMismatch
    case X509_V_ERR_INVALID_CA, X509_V_ERR_KEYUSAGE_NO_CERTSIGN: .noAuthority
    case X509_V_ERR_INVALID_PURPOSE: .otherPurpose
    case X509_V_ERR_PATH_LENGTH_EXCEEDED, X509_V_ERR_CERT_CHAIN_TOO_LONG: .pathTooLong
    case X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION: .unknownCriticalExtension
    case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: .signatureInvalid
    default: .other(String(cString: X509_verify_cert_error_string(Int(code))))
    }
  }

  /// 2001-01-01 00:00 UTC, in Unix seconds.
  private static let referenceDateInUnixTime: Double = 978_307_200
}

/// A stack of certificates for OpenSSL.
final class CertificateStack {
  let handle: OpaquePointer?

  init() { handle = OPENSSL_sk_new_null() }

  func add(_ der: [UInt8]) throws(CertificateError) {
    let certificate = try der.withRawBytes { (bytes) throws(CertificateError) in try X509Certificate(der: bytes) }
    guard X509_up_ref(certificate.handle) == 1 else { throw .openSSL("X509_up_ref") }
    guard OPENSSL_sk_push(handle, UnsafeRawPointer(certificate.handle)) > 0 else {
      X509_free(certificate.handle)
      throw .openSSL("OPENSSL_sk_push")
    }
  }

  deinit { OPENSSL_sk_pop_free(handle) { X509_free($0.map { OpaquePointer($0) }) } }
}
