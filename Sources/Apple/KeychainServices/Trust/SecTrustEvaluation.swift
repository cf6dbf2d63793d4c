// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Dispatch
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// What an evaluation ends with. Source: Apple `SecTrust.h`.
public enum SecTrustResultType: UInt32, Sendable {
  /// There was no evaluation, or what it goes by was changed since.
  case invalid = 0
  /// A person said that it is trusted; nothing here gives it.
  case proceed = 1
  /// A person said that it is not; nothing here gives it.
  case deny = 3
  /// It is trusted, and nobody had to be asked.
  case unspecified = 4
  /// It is not trusted.
  case recoverableTrustFailure = 5
  /// It is not trusted, and nobody could change that; nothing here gives it.
  case fatalTrustFailure = 6
  /// It could not be evaluated.
  case otherError = 7
}

/// What an evaluation found.
struct TrustOutcome: Sendable {
  let chain: [SecCertificate]
  let result: SecTrustResultType
  /// `errSecSuccess` where it is trusted.
  let status: OSStatus
  let reason: String
}

/// Whether the certificate is trusted: it leads to an anchor that was set, and satisfies each policy.
///
/// - Parameters:
///   - trust: What is evaluated, and keeps the result.
///   - error: Receives the first thing that is wrong, such as `errSecCertificateExpired`, `errSecHostNameMismatch`,
///     `errSecNotTrusted` for a chain that ends in no anchor, or `errSecCreateChainFailed` where a certificate is missing.
///     `errSecUnsupportedKeySize` and `errSecInvalidDigestAlgorithm` mean that the policy does not allow the key or
///     signature. `errSecCertificateValidityPeriodTooLong` means that a server certificate is valid for more than 825
///     days.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
  let outcome = trust.evaluated()
  error?.pointee = outcome.error
  return outcome.error == nil
}

/// Evaluates, and gives the result. Deprecated by Apple since iOS 13.
///
/// - Returns: Always `errSecSuccess`: that the certificate is not trusted is a result.
@discardableResult
public func SecTrustEvaluate(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
  result.pointee = trust.evaluated().result
  return errSecSuccess
}

/// Evaluates, and hands what comes out to the queue.
///
/// - Returns: Always `errSecSuccess`.
@discardableResult
public func SecTrustEvaluateAsyncWithError(
  _ trust: SecTrust, _ queue: DispatchQueue, _ result: @escaping @Sendable (SecTrust, Bool, CFError?) -> Void
) -> OSStatus {
  queue.async {
    let outcome = trust.evaluated()
    result(trust, outcome.error == nil, outcome.error)
  }
  return errSecSuccess
}

/// Gives the result of the last evaluation, `.invalid` where there is none.
@discardableResult
public func SecTrustGetTrustResult(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
  result.pointee = trust.state.withLock { $0.outcome?.result } ?? .invalid
  return errSecSuccess
}

/// The chain from the certificate to its anchor, as far as it leads; evaluates where that was not done.
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? {
  let chain = trust.latest().chain
  return chain.isEmpty ? nil : NSArray(array: chain)
}

/// How long that chain is; evaluates where that was not done.
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> CFIndex { trust.latest().chain.count }

/// A certificate of that chain, the one asked about first; `nil` beyond its end. Deprecated by Apple since iOS 15.
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ index: CFIndex) -> SecCertificate? {
  let chain = trust.latest().chain
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
  /// The result that is there, or that of an evaluation.
  fileprivate func latest() -> TrustOutcome { state.withLock { $0.outcome } ?? evaluated() }

  /// Evaluates each policy, until one is not satisfied.
  fileprivate func evaluated() -> TrustOutcome {
    state.withLock { state in
      let moment = KeychainDate(
        secondsSinceReferenceDate: state.moment ?? Date().timeIntervalSinceReferenceDate)
      var outcome = TrustOutcome(chain: [], result: .otherError, status: errSecPolicyNotFound, reason: "no policy")
      for policy in state.policies {
        outcome = Self.evaluate(state, policy.purpose, at: moment)
        if outcome.status != errSecSuccess { break }
        guard policy.requiresRevocationAnswer else { continue }
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
    _ state: State, _ purpose: TrustEvaluation.Purpose, at moment: KeychainDate
  ) -> TrustOutcome {
    do throws(CertificateError) {
      let evaluation = try TrustEvaluation(
        certificates: state.certificates.map(\.der), anchors: state.anchors.map(\.der), at: moment, for: purpose)
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
    case .validityTooLong: "the server's certificate is valid for more than 825 days"
    case .serverPurposeMissing: "the server's certificate does not name servers in its extended key usage"
    case .other(let words): words
    }
  }
}
