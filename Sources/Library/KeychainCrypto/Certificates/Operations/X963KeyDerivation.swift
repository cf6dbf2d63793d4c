package import Basics
internal import COpenSSL

/// Derives keys from a shared secret (ANSI X9.63, 5.6.3; SEC 1, 3.6.1).
package enum X963KeyDerivation {
  /// The maximum number of bytes to derive, one mebibyte.
  package static let maximumByteCount = 1 << 20

  /// Derives a key of `count` bytes from a shared secret.
  ///
  /// - Throws: `.overLimit` if `count` is less than 1 or greater than `maximumByteCount`.
  package static func derive(
    _ count: Int, of secret: SensitiveBytes, _ digest: KeyDigest, sharedInfo: [UInt8]
  ) throws(CertificateError) -> SensitiveBytes {
    guard (1...maximumByteCount).contains(count) else {
      throw CertificateError(.overLimit, "a derived key must have 1 to \(maximumByteCount) bytes, not \(count)")
    }
    guard let function = EVP_KDF_fetch(nil, "X963KDF", nil) else { throw .openSSL("EVP_KDF_fetch") }
    defer { EVP_KDF_free(function) }
    guard let context = EVP_KDF_CTX_new(function) else { throw .openSSL("EVP_KDF_CTX_new") }
    defer { EVP_KDF_CTX_free(context) }
    var status: Int32 = 0
    let key = SensitiveBytes(count: count) { (target: UnsafeMutableRawBufferPointer) in
      withParameters(secret: secret, digest: digest, sharedInfo: sharedInfo) { parameters in
        status = EVP_KDF_derive(context, target.baseAddress, target.count, parameters)
      }
    }
    guard status == 1 else { throw .openSSL("EVP_KDF_derive") }
    return key
  }

  /// Calls a closure with the parameters of a derivation, which are valid only during the call.
  private static func withParameters(
    secret: SensitiveBytes, digest: KeyDigest, sharedInfo: [UInt8], _ body: ([OSSL_PARAM]) -> Void
  ) {
    var digestName = Array(digest.rawValue.utf8CString)
    var information = sharedInfo
    secret.withBytes { secret in
      digestName.withUnsafeMutableBufferPointer { digestName in
        information.withUnsafeMutableBufferPointer { information in
          // OpenSSL only reads the secret, although the parameter's type is mutable.
          let secretStart = UnsafeMutableRawPointer(mutating: secret.baseAddress)
          var parameters = [
            OSSL_PARAM_construct_utf8_string(parameterName("digest"), digestName.baseAddress, 0),
            OSSL_PARAM_construct_octet_string(parameterName("key"), secretStart, secret.count),
          ]
          if !information.isEmpty {
            parameters.append(
              OSSL_PARAM_construct_octet_string(parameterName("info"), information.baseAddress, information.count))
          }
          body(parameters + [OSSL_PARAM_construct_end()])
        }
      }
    }
  }

  /// Returns a parameter name in static memory, because OpenSSL keeps the pointer.
  private static func parameterName(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
  }
}
