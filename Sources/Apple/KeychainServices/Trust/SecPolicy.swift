// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import KeychainCrypto

/// What a certificate is to be good for.
public final class SecPolicy: Sendable {
  let purpose: TrustEvaluation.Purpose
  /// How revocation is to be looked at; `nil` for a policy that does not ask for it.
  let revocationFlags: CFOptionFlags?

  init(_ purpose: TrustEvaluation.Purpose, revocationFlags: CFOptionFlags? = nil) {
    self.purpose = purpose
    self.revocationFlags = revocationFlags
  }

  /// A virtual device asks nobody, so there is never an answer.
  var requiresRevocationAnswer: Bool {
    revocationFlags.map { $0 & kSecRevocationRequirePositiveResponse != 0 } ?? false
  }
}

extension SecPolicy: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .policy }
}

/// The policy of a chain that is whole, whatever its certificates may be used for.
public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(.basic) }

/// The policy of TLS.
///
/// - Parameters:
///   - server: True for the certificate of a server, false for that of a client.
///   - hostname: The name or the address by which the server is spoken to; `nil` for any. Not looked at for a client.
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
  SecPolicy(server ? .server(host: hostname.map { String(describing: $0) }) : .client)
}

/// Returns the policy of certificates that are not revoked.
///
/// Nothing is fetched on a virtual device: the chain has to be whole, and if a positive response is required the evaluation
/// ends with `errSecIncompleteCertRevocationCheck`.
///
/// Source: Apple `SecPolicy.c` (`SecPolicyCreateRevocation`).
/// - Parameter revocationFlags: The constants of which the names begin with `kSecRevocation`.
/// - Returns: `nil` for bits that no constant has.
public func SecPolicyCreateRevocation(_ revocationFlags: CFOptionFlags) -> SecPolicy? {
  guard revocationFlags >> 5 == 0 else { return nil }
  return SecPolicy(.basic, revocationFlags: revocationFlags)
}

/// What a policy is: its identifier, and the name of the host or the side of the connection where it has one.
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

/// Returns the number that `CFGetTypeID` gives for a policy.
public func SecPolicyGetTypeID() -> CFTypeID { CoreFoundationType.policy.rawValue }

// MARK: Constants. Source: Apple `SecPolicy.h` and `SecPolicy.c`.

/// The identifier of a chain that is whole.
nonisolated(unsafe) public let kSecPolicyAppleX509Basic: CFString = "1.2.840.113635.100.1.2"
/// The identifier of TLS.
nonisolated(unsafe) public let kSecPolicyAppleSSL: CFString = "1.2.840.113635.100.1.3"
/// The identifier of certificates that are not revoked.
nonisolated(unsafe) public let kSecPolicyAppleRevocation: CFString = "1.2.840.113635.100.1.21"
/// Ask by OCSP.
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Look into a CRL.
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Look into a CRL before asking by OCSP.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// Trust only what somebody says is not revoked; on a virtual device, nothing.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// Look only at what was fetched before.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// Both methods.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags = kSecRevocationOCSPMethod | kSecRevocationCRLMethod
/// A policy's property: its identifier.
nonisolated(unsafe) public let kSecPolicyOid: CFString = "SecPolicyOid"
/// A policy's property: the name of the host.
nonisolated(unsafe) public let kSecPolicyName: CFString = "SecPolicyName"
/// A policy's property: true for a client's certificate.
nonisolated(unsafe) public let kSecPolicyClient: CFString = "SecPolicyClient"
