import Basics
internal import COpenSSL

/// A stack of certificates for OpenSSL.
final class CertificateStack {
  let handle: OpaquePointer?

  init() { handle = OPENSSL_sk_new_null() }

  func add(_ der: [UInt8]) throws(CertificateError) {
    let certificate = try X509Certificate(der)
    guard X509_up_ref(certificate.handle) == 1 else { throw .openSSL("X509_up_ref") }
    guard OPENSSL_sk_push(handle, UnsafeRawPointer(certificate.handle)) > 0 else {
      X509_free(certificate.handle)
      throw .openSSL("OPENSSL_sk_push")
    }
  }

  deinit { OPENSSL_sk_pop_free(handle) { X509_free($0.map { OpaquePointer($0) }) } }
}

extension X509Certificate {
  fileprivate init(_ der: [UInt8]) throws(CertificateError) {
    self = try der.withRawBytes { (bytes) throws(CertificateError) in try X509Certificate(der: bytes) }
  }
}
