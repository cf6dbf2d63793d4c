// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Dispatch
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// The result of an evaluation. Source: Apple `SecTrust.h`.
public enum SecTrustResultType: UInt32, Sendable {
  /// There was no evaluation since the last change.
  case invalid = 0
  /// The user trusts the certificate. Never used here.
  case proceed = 1
  /// The user does not trust the certificate. Never used here.
  case deny = 3
  /// The certificate is trusted.
  case unspecified = 4
  /// The certificate is not trusted.
  case recoverableTrustFailure = 5
  /// The certificate is not trusted, and this cannot be changed. Never used here.
  case fatalTrustFailure = 6
  /// The certificate could not be evaluated.
  case otherError = 7
}

/// The outcome of an evaluation.
struct TrustOutcome: Sendable {
  let chain: [SecCertificate]
  let result: SecTrustResultType
  /// `errSecSuccess` if the certificate is trusted.
  let status: OSStatus
  let reason: String
}

/// Evaluates whether the certificate is trusted: its chain must end in an anchor of the trust object and satisfy each
/// policy.
///
/// - Parameters:
///   - trust: The trust object, which stores the result.
///   - error: Receives the first fault, such as `errSecCertificateExpired`, `errSecHostNameMismatch`,
///     `errSecNotTrusted` if the chain does not end in an anchor, or `errSecCreateChainFailed` if a certificate is
///     missing. `errSecUnsupportedKeySize` and `errSecInvalidDigestAlgorithm` mean that the policy does not allow the
///     key or signature. `errSecCertificateValidityPeriodTooLong` means that a server certificate is valid for more
///     than 825 days.
/// - Returns: Whether the certificate is trusted.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
  let outcome = trust.evaluate()
  error?.pointee = outcome.error
  return outcome.error == nil
}

/// Evaluates whether the certificate is trusted. Deprecated by Apple since iOS 13.
///
/// - Returns: `errSecSuccess`, even if the certificate is not trusted.
@discardableResult
public func SecTrustEvaluate(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
  result.pointee = trust.evaluate().result
  return errSecSuccess
}

/// Evaluates whether the certificate is trusted, on a queue.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustEvaluateAsyncWithError(
  _ trust: SecTrust, _ queue: DispatchQueue, _ result: @escaping @Sendable (SecTrust, Bool, CFError?) -> Void
) -> OSStatus {
  queue.async {
    let outcome = trust.evaluate()
    result(trust, outcome.error == nil, outcome.error)
  }
  return errSecSuccess
}

/// Copies the result of the last evaluation.
///
/// - Parameters:
///   - trust: The trust object.
///   - result: Receives the result, or `.invalid` if there was no evaluation since the last change.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustGetTrustResult(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
  result.pointee = trust.state.withLock { $0.outcome?.result } ?? .invalid
  return errSecSuccess
}

/// Returns the known part of the chain from the certificate to its anchor. Evaluates the certificate if necessary.
///
/// - Returns: An array of `SecCertificate` objects, the evaluated one first; `nil` if the chain is empty.
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? {
  let chain = trust.currentOutcome().chain
  return chain.isEmpty ? nil : NSArray(array: chain)
}

/// Returns the length of the chain. Evaluates the certificate if necessary.
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> CFIndex { trust.currentOutcome().chain.count }

/// Returns the certificate at an index of the chain, where 0 is the evaluated certificate. `nil` if there is none.
/// Deprecated by Apple since iOS 15.
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ index: CFIndex) -> SecCertificate? {
  let chain = trust.currentOutcome().chain
  return chain.indices.contains(index) ? chain[index] : nil
}

extension TrustOutcome {
  fileprivate var error: CFError? {
    guard status != errSecSuccess else { return nil }
    let sentence = SecCopyErrorMessageString(status, nil).map { String(describing: $0) } ?? ""
    return CFError(
      domain: NSOSStatusErrorDomain, code: Int(status),
      userInfo: [NSLocalizedDescriptionKey: sentence, NSLocalizedFailureReasonErrorKey: reason])
  }
}

extension SecTrust {
  /// Returns the last outcome, or evaluates the certificate if there is none.
  fileprivate func currentOutcome() -> TrustOutcome { state.withLock { $0.outcome } ?? evaluate() }

  /// Evaluates each policy until one is not met, and stores the outcome.
  fileprivate func evaluate() -> TrustOutcome {
    state.withLock { state in
      let date = KeychainDate(
        secondsSinceReferenceDate: state.verifyTime ?? Date().timeIntervalSinceReferenceDate)
      var outcome = TrustOutcome(chain: [], result: .otherError, status: errSecPolicyNotFound, reason: "no policy")
      for policy in state.policies {
        outcome = Self.evaluate(state, policy.purpose, at: date)
        if outcome.status != errSecSuccess { break }
        guard policy.requiresRevocationResponse else { continue }
        outcome = TrustOutcome(
          chain: outcome.chain, result: .recoverableTrustFailure, status: errSecIncompleteCertRevocationCheck,
          reason: "a virtual device cannot check whether a certificate is revoked")
        break
      }
      state.outcome = outcome
      return outcome
    }
  }

  private static func evaluate(
    _ state: State, _ purpose: TrustEvaluation.Purpose, at date: KeychainDate
  ) -> TrustOutcome {
    do throws(CertificateError) {
      let evaluation = try TrustEvaluation(
        certificates: state.certificates.map(\.der), anchors: state.anchors.map(\.der), at: date, for: purpose)
      let chain = evaluation.chain.compactMap { SecCertificateCreateWithData(nil, NSData(data: Data($0))) }
      guard let failure = evaluation.failure else {
        return TrustOutcome(chain: chain, result: .unspecified, status: errSecSuccess, reason: "")
      }
      return TrustOutcome(
        chain: chain, result: .recoverableTrustFailure, status: failure.status, reason: failure.reason)
    } catch {
      return TrustOutcome(chain: [], result: .otherError, status: errSecParam, reason: error.reason)
    }
  }
}

extension TrustEvaluation.Failure {
  /// Source: Apple `SecPolicyChecks.list`.
  fileprivate var status: OSStatus {
    switch self {
    case .issuerMissing: errSecCreateChainFailed
    case .anchorUnknown, .signatureInvalid, .other: errSecNotTrusted
    case .expired: errSecCertificateExpired
    case .notYetValid: errSecCertificateNotValidYet
    case .hostMismatch: errSecHostNameMismatch
    case .noAuthority: errSecNoBasicConstraintsCA
    case .otherPurpose: errSecInvalidExtendedKeyUsage
    case .pathTooLong: errSecPathLengthConstraintExceeded
    case .unknownCriticalExtension: errSecUnknownCriticalExtensionFlag
    case .weakKey: errSecUnsupportedKeySize
    case .weakSignature: errSecInvalidDigestAlgorithm
    case .validityTooLong: errSecCertificateValidityPeriodTooLong
    case .serverPurposeMissing: errSecInvalidExtendedKeyUsage
    }
  }

  fileprivate var reason: String {
    switch self {
    case .issuerMissing: "a certificate between this one and an anchor is missing"
    case .anchorUnknown: "the chain ends in a certificate that is not an anchor"
    case .expired: "a certificate in the chain has expired"
    case .notYetValid: "a certificate in the chain is not valid yet"
    case .hostMismatch: "the certificate is for other names"
    case .noAuthority: "a certificate issued another one but is not an authority"
    case .otherPurpose: "a certificate in the chain is not for this purpose"
    case .pathTooLong: "the chain is longer than one of its authorities allows"
    case .unknownCriticalExtension: "a certificate has an unknown critical extension"
    case .signatureInvalid: "a certificate was not signed by its issuer"
    case .weakKey: "a key in the chain is too small or of a kind that is not allowed"
    case .weakSignature: "a certificate in the chain was signed with a digest that is not allowed"
    case .validityTooLong:
      "the server's certificate is valid for more than \(CertificateRequirements.maximumServerDayCount) days"
    case .serverPurposeMissing: "the server's certificate does not name servers in its extended key usage"
    case .other(let reason): reason
    }
  }
}
