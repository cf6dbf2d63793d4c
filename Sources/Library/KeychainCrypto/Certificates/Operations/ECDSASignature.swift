internal import COpenSSL

/// Converts between the two formats of an ECDSA signature.
enum ECDSASignature {
  /// Returns the numbers r and s of a DER signature, each with `size` bytes.
  static func numbers(ofDER bytes: [UInt8], size: Int) throws(CertificateError) -> [UInt8] {
    guard let length = Int32(exactly: size) else { throw .openSSL("ECDSA_SIG") }
    let result: [UInt8]? = bytes.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      guard let signature = d2i_ECDSA_SIG(nil, &position, bytes.count) else { return nil }
      defer { ECDSA_SIG_free(signature) }
      var numbers = [UInt8](repeating: 0, count: 2 * size)
      let isWritten = numbers.withUnsafeMutableBufferPointer { target in
        BN_bn2binpad(ECDSA_SIG_get0_r(signature), target.baseAddress, length) == length
          && BN_bn2binpad(ECDSA_SIG_get0_s(signature), target.baseAddress?.advanced(by: size), length) == length
      }
      return isWritten ? numbers : nil
    }
    guard let result else { throw .openSSL("ECDSA_SIG") }
    return result
  }

  /// Returns the DER signature with the numbers r and s, or `nil` if they do not have `size` bytes each.
  static func der(of bytes: [UInt8], size: Int) -> [UInt8]? {
    guard bytes.count == 2 * size else { return nil }
    func integer(_ digits: ArraySlice<UInt8>) -> [UInt8] {
      let significant = digits.drop { $0 == 0 }
      let needsZero = significant.first.map { $0 >= 0x80 } ?? true
      return ASN1Encoding.element(.integer, (needsZero ? [0] : []) + significant)
    }
    return ASN1Encoding.element(.sequence, integer(bytes.prefix(size)) + integer(bytes.suffix(size)))
  }
}
