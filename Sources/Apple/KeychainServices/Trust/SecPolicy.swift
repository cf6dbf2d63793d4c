// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import KeychainCrypto

/// A policy for the evaluation of certificates.
public final class SecPolicy: Sendable {
  let purpose: TrustEvaluation.Purpose
  /// The flags for checking revocation; `nil` if the policy does not check it.
  let revocationFlags: CFOptionFlags?

  init(_ purpose: TrustEvaluation.Purpose, revocationFlags: CFOptionFlags? = nil) {
    self.purpose = purpose
    self.revocationFlags = revocationFlags
  }

  /// Whether a positive revocation response is required. A virtual device never gets one.
  var requiresRevocationResponse: Bool {
    revocationFlags.map { $0 & kSecRevocationRequirePositiveResponse != 0 } ?? false
  }
}

extension SecPolicy: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .policy }
}

/// Returns the policy for a complete chain, regardless of the certificates' purposes.
public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(.basic) }

/// Returns the policy for TLS.
///
/// - Parameters:
///   - server: Whether the certificate is a server's. Otherwise, it is a client's.
///   - hostname: The server's name or address, or `nil` to accept any. Ignored for a client.
/// - Returns: The policy.
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
  SecPolicy(server ? .server(host: hostname.map { String(describing: $0) }) : .client)
}

/// Returns the policy that checks whether certificates are revoked.
///
/// A virtual device fetches nothing. The chain must be complete, and if a positive response is required, the evaluation
/// ends with `errSecIncompleteCertRevocationCheck`.
///
/// Source: Apple `SecPolicy.c` (`SecPolicyCreateRevocation`).
///
/// - Parameter revocationFlags: A combination of the constants that begin with `kSecRevocation`.
/// - Returns: The policy, or `nil` if there are unknown flags.
public func SecPolicyCreateRevocation(_ revocationFlags: CFOptionFlags) -> SecPolicy? {
  // Apple defines the lowest five flags.
  guard revocationFlags >> 5 == 0 else { return nil }
  return SecPolicy(.basic, revocationFlags: revocationFlags)
}

/// Returns a policy's properties: its identifier, the host name if there is one, and whether it is for clients.
public func SecPolicyCopyProperties(_ policyRef: SecPolicy) -> CFDictionary? {
  let properties: [CFString: Any] =
    switch policyRef.purpose {
    case .basic where policyRef.revocationFlags != nil: [kSecPolicyOid: kSecPolicyAppleRevocation]
    case .basic: [kSecPolicyOid: kSecPolicyAppleX509Basic]
    case .client: [kSecPolicyOid: kSecPolicyAppleSSL, kSecPolicyClient: true]
    case .server(nil): [kSecPolicyOid: kSecPolicyAppleSSL]
    case .server(let host?): [kSecPolicyOid: kSecPolicyAppleSSL, kSecPolicyName: NSString(string: host)]
    }
  return NSDictionary(dictionary: properties)
}

/// Returns the type identifier of policies, as `CFGetTypeID` does.
public func SecPolicyGetTypeID() -> CFTypeID { CoreFoundationType.policy.rawValue }

// MARK: Constants. Source: Apple `SecPolicy.h` and `SecPolicy.c`.

/// The identifier of the basic policy.
nonisolated(unsafe) public let kSecPolicyAppleX509Basic: CFString = "1.2.840.113635.100.1.2"
/// The identifier of the TLS policy.
nonisolated(unsafe) public let kSecPolicyAppleSSL: CFString = "1.2.840.113635.100.1.3"
/// The identifier of the revocation policy.
nonisolated(unsafe) public let kSecPolicyAppleRevocation: CFString = "1.2.840.113635.100.1.21"
/// Check revocation by OCSP.
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Check revocation in a CRL.
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Check a CRL before OCSP.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// Require a positive response. A virtual device never gets one, so nothing is trusted.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// Use only responses that were fetched before.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// Use both methods.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags = kSecRevocationOCSPMethod | kSecRevocationCRLMethod
/// The property with a policy's identifier.
nonisolated(unsafe) public let kSecPolicyOid: CFString = "SecPolicyOid"
/// The property with a policy's host name.
nonisolated(unsafe) public let kSecPolicyName: CFString = "SecPolicyName"
/// The property that is true for a client's certificate.
nonisolated(unsafe) public let kSecPolicyClient: CFString = "SecPolicyClient"
