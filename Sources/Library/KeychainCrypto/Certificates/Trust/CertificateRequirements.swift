import Basics
internal import COpenSSL

/// The requirements that Apple adds to RFC 5280 for chains whose anchors an app sets.
///
/// A virtual device has no other anchors. So it needs neither Apple's rules for system roots (398 days, Certificate
/// Transparency), nor the exemptions for roots that a user or administrator trusts.
///
/// Source: Apple `SecPolicy.c` (`SecPolicyAddBasicCertOptions`, `SecPolicyCreateSSLWithKeyUsage`), `SecPolicyServer.c`
/// and `SecPolicyLeafCallbacks.c`; each rule below names its function. support.apple.com/103769 (HT210176) and 102028
/// (HT211025) describe the rules.
package enum CertificateRequirements {
  /// The maximum validity of a server's certificate in days.
  package static let maximumServerDayCount = 825

  /// Returns the first rule that a certificate violates.
  ///
  /// - Parameters:
  ///   - chain: The certificates, from the evaluated one to its anchor.
  ///   - purpose: The purpose of the certificate.
  /// - Returns: The failure, or `nil` if there is none.
  static func failure(
    in chain: [[UInt8]], for purpose: TrustEvaluation.Purpose
  ) throws(CertificateError) -> TrustEvaluation.Failure? {
    let isServer: Bool
    switch purpose {
    case .basic, .client: isServer = false
    case .server: isServer = true
    }
    for (index, der) in chain.enumerated() {
      let certificate = try der.withRawBytes { (bytes) throws(CertificateError) in try X509Certificate(der: bytes) }
      if certificate.hasWeakKey { return .weakKey }
      if isServer, !(try hasStrongServerKey(der)) { return .weakKey }
      let rejectedDigests = isServer ? weakServerDigests : weakDigests
      if rejectedDigests.contains(certificate.signatureDigest), !certificate.isSelfSigned { return .weakSignature }
      guard isServer, index == 0, certificate.isSubjectToServerRules else { continue }
      if certificate.exceedsMaximumValidity { return .validityTooLong }
      if !certificate.hasServerPurpose { return .serverPurposeMissing }
    }
    return nil
  }

  /// The digests that every policy rejects: Apple `SecPolicyCheckCertWeakSignature`.
  private static let weakDigests: [Int32] = [NID_md2, NID_md4, NID_md5]
  /// The digests that the policy for servers rejects: Apple `SecPolicyRemoveWeakHashOptions`.
  private static let weakServerDigests: [Int32] = weakDigests + [NID_sha1]

  /// Returns whether a certificate's key is RSA of at least 2,048 bits or on a curve of at least 256 bits. Apple counts
  /// bytes, so 2,041 bits are enough.
  ///
  /// Source: Apple `SecPolicyAddStrongKeySizeOptions`, `SecPolicyCheckKeySize`, `SecCertificateIsAtLeastMinKeySize`.
  /// `SecCertificateIsAtLeastMinKeySize` accepts no other kind of key.
  private static func hasStrongServerKey(_ der: [UInt8]) throws(CertificateError) -> Bool {
    guard let key = try CertificateAttributes(der: der).publicKey else { return false }
    let byteCount = (key.sizeInBits + 7) / 8
    switch key.algorithm {
    case .rsa: return byteCount >= 256
    case .ellipticCurve: return byteCount >= 32
    }
  }
}

extension X509Certificate {
  /// Whether the key is RSA of less than 1,024 bits, or on a curve of less than 160 bits. The key's size is first rounded
  /// up to whole bytes.
  ///
  /// Source: Apple `SecCertificateIsWeakKey`. Apple also refuses unknown kinds of keys; here they are left to
  /// OpenSSL.
  fileprivate var hasWeakKey: Bool {
    guard let key = X509_get0_pubkey(handle) else { return false }
    let byteCount = (EVP_PKEY_get_bits(key) + 7) / 8
    return switch EVP_PKEY_get_base_id(key) {
    case EVP_PKEY_RSA: byteCount < 128
    case EVP_PKEY_EC: byteCount < 20
    default: false
    }
  }

  /// OpenSSL's number for the digest algorithm of the certificate's signature, or 0 if the signature has none.
  fileprivate var signatureDigest: Int32 {
    var digest: Int32 = 0
    X509_get_signature_info(handle, &digest, nil, nil, nil)
    return digest
  }

  /// Whether the certificate is self-signed.
  ///
  /// Source: Apple `SecPolicyCheckCertSignatureHashAlgorithms`, which does not check the signature of such a
  /// certificate.
  fileprivate var isSelfSigned: Bool { X509_self_signed(handle, 1) == 1 }

  /// Whether the validity starts after the date on which Apple's rules for servers take effect.
  ///
  /// Source: Apple `SecPolicyCheckOtherTrustValidityPeriodMaximums`, `SecPolicyCheckServerAuthEKU`. Apple's
  /// constant is 583628400 s after 2001-01-01. This is an hour before the 1 July 2019 00:00 UTC of its comment.
  fileprivate var isSubjectToServerRules: Bool {
    ASN1_TIME_cmp_time_t(X509_get0_notBefore(handle), 978_307_200 + 583_628_400) > 0
  }

  /// Whether the certificate is valid for longer than the maximum for servers plus one hour.
  ///
  /// Source: Apple `SecPolicyCheckOtherTrustValidityPeriodMaximums`. Its extra hour allows for inaccurate issuers.
  fileprivate var exceedsMaximumValidity: Bool {
    var (days, seconds): (Int32, Int32) = (0, 0)
    guard ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(handle), X509_get0_notAfter(handle)) == 1 else {
      return true
    }
    return Int64(days) * 86_400 + Int64(seconds) > Int64(CertificateRequirements.maximumServerDayCount) * 86_400 + 3_600
  }

  /// Whether there is an extended key usage that includes TLS servers. `anyExtendedKeyUsage` is not enough.
  ///
  /// Source: Apple `SecPolicyCheckServerAuthEKU`.
  fileprivate var hasServerPurpose: Bool {
    let usage = X509_get_extended_key_usage(handle)
    // OpenSSL sets all bits if the extension is missing.
    return usage != .max && usage & UInt32(XKU_SSL_SERVER) != 0
  }
}
