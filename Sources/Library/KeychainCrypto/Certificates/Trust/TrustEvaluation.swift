package import Basics
import KeychainFormats

/// An evaluation of a certificate's path to an anchor, for a given date and purpose. It follows X.509 (RFC 5280) as
/// OpenSSL does, and iOS's requirements for keys, signatures and server certificates (`CertificateRequirements`).
///
/// Nothing is downloaded: certificates, anchors and the date are given, and revocation is not checked.
package struct TrustEvaluation: Sendable {
  /// A purpose that the certificate must be valid for.
  package enum Purpose: Sendable, Equatable {
    /// Any purpose; only the chain is checked.
    case basic
    /// A TLS server with a name or an address; `nil` accepts any name.
    case server(host: String?)
    /// A TLS client.
    case client
  }

  /// The first reason found why a certificate is not trusted.
  package enum Failure: Sendable, Equatable {
    /// A certificate between the evaluated certificate and an anchor is missing.
    case issuerMissing
    /// The chain ends in a self-signed certificate that is not an anchor.
    case anchorUnknown
    /// A certificate of the chain has expired.
    case expired
    /// A certificate of the chain is not valid yet.
    case notYetValid
    /// The certificate is for different host names.
    case hostMismatch
    /// The issuer of a certificate in the chain is not a certificate authority.
    case noAuthority
    /// The certificate or an authority is not valid for this purpose.
    case otherPurpose
    /// The chain has more authorities below an authority than that authority allows.
    case pathTooLong
    /// A critical extension is not supported.
    case unknownCriticalExtension
    /// A signature does not match the issuer's key.
    case signatureInvalid
    /// A key in the chain is too small for the purpose, or of a kind that the purpose does not allow.
    case weakKey
    /// A certificate of the chain was signed with a digest that the purpose does not allow.
    case weakSignature
    /// A server certificate is valid for more than `CertificateRequirements.maximumServerDayCount` days.
    case validityTooLong
    /// A server certificate does not state that it is for servers.
    case serverPurposeMissing
    /// Another reason, with OpenSSL's description.
    case other(String)
  }

  /// The certificates in DER from the evaluated one to the anchor, or the incomplete chain if it fails.
  package let chain: [[UInt8]]
  /// The reason why the certificate is not trusted, or `nil` if it is.
  package let failure: Failure?

  /// The maximum number of certificates between the evaluated one and the anchor.
  package static let maximumDepth = 10
  /// The maximum number of certificates, and of anchors, that are accepted.
  package static let maximumCertificateCount = 100

  /// Searches for a path from the first certificate to an anchor.
  ///
  /// - Parameters:
  ///   - certificates: The certificates in DER: first the evaluated one, then others that may be between it and an
  ///     anchor.
  ///   - anchors: The anchors in DER. They need not be self-signed.
  ///   - date: The date at which the complete chain must be valid, to the second.
  ///   - purpose: The purpose that the certificate must be valid for.
  /// - Throws: `.overLimit` for more certificates than `maximumCertificateCount` or a date out of range;
  ///   `.unexpectedKind` without a certificate; `.malformed` for an unreadable certificate or an invalid host name.
  package init(
    certificates: [[UInt8]], anchors: [[UInt8]], at date: KeychainDate, for purpose: Purpose
  ) throws(CertificateError) {
    guard max(certificates.count, anchors.count) <= Self.maximumCertificateCount else {
      throw CertificateError(
        .overLimit, "\(max(certificates.count, anchors.count)) certificates; at most \(Self.maximumCertificateCount)")
    }
    guard let evaluatedCertificate = certificates.first else {
      throw CertificateError(.unexpectedKind, "there is no certificate")
    }
    let (leaf, intermediates, anchorStack) = (CertificateStack(), CertificateStack(), CertificateStack())
    try leaf.add(evaluatedCertificate)
    for certificate in certificates.dropFirst() { try intermediates.add(certificate) }
    for anchor in anchors { try anchorStack.add(anchor) }
    let search = try ChainSearch(leaf, intermediates: intermediates, anchors: anchorStack)
    try search.require(purpose, at: date)
    let isTrusted = search.run()
    chain = try search.chain()
    failure = isTrusted ? try CertificateRequirements.failure(in: chain, for: purpose) : search.failure
  }
}
