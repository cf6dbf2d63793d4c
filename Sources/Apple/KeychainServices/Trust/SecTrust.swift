// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import VirtualDevice

/// Certificates with the policies and anchors for their evaluation.
///
/// A virtual device trusts no authority by default. Without anchors, nothing is trusted.
public final class SecTrust: Sendable {
  struct State {
    /// The certificates. The first is evaluated.
    let certificates: [SecCertificate]
    var policies: [SecPolicy]
    var anchors: [SecCertificate] = []
    /// The date of the evaluation in seconds since the reference date, or `nil` to use the current date.
    var verifyTime: Double?
    var isNetworkFetchAllowed = true
    /// The last outcome; `nil` before an evaluation and after a change.
    var outcome: TrustOutcome?

    /// Changes the state, and discards the outcome.
    mutating func change(_ body: (inout State) -> Void) {
      body(&self)
      outcome = nil
    }
  }

  let state: Locked<State>

  init(_ certificates: [SecCertificate], _ policies: [SecPolicy]) {
    state = Locked(State(certificates: certificates, policies: policies))
  }
}

extension SecTrust: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .trust }
}

/// Creates a trust object for an evaluation.
///
/// - Parameters:
///   - certificates: A `SecCertificate`, or an array of at most 100: first the certificate to evaluate, then
///     certificates that may link it to an anchor.
///   - policies: A `SecPolicy`, or an array of policies that must all be met. The default is the basic policy.
///   - trust: Receives the object.
/// - Returns: `errSecSuccess`; `errSecParam` if an object has another type or an array has too many or no elements.
///   After an error, `trust` is unchanged.
@discardableResult
public func SecTrustCreateWithCertificates(
  _ certificates: CFTypeRef, _ policies: CFTypeRef?, _ trust: UnsafeMutablePointer<SecTrust?>
) -> OSStatus {
  guard let certificates = objects(certificates, of: SecCertificate.self), !certificates.isEmpty,
    certificates.count <= TrustEvaluation.maximumCertificateCount, let policies = policyList(policies)
  else { return errSecParam }
  trust.pointee = SecTrust(certificates, policies)
  return errSecSuccess
}

/// Sets the policies, which must all be met.
///
/// - Parameters:
///   - trust: The trust object, whose last result is discarded.
///   - policies: A `SecPolicy` or an array of policies.
/// - Returns: `errSecSuccess`; `errSecParam` if an object has another type or the array is empty.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
  guard let policies = policyList(policies) else { return errSecParam }
  trust.state.withLock { $0.change { $0.policies = policies } }
  return errSecSuccess
}

/// Copies the policies.
///
/// - Parameters:
///   - trust: The trust object.
///   - policies: Receives an array of `SecPolicy` objects.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustCopyPolicies(_ trust: SecTrust, _ policies: UnsafeMutablePointer<CFArray?>) -> OSStatus {
  policies.pointee = NSArray(array: trust.state.withLock { $0.policies })
  return errSecSuccess
}

/// Sets the trusted anchor certificates.
///
/// - Parameters:
///   - trust: The trust object, whose last result is discarded.
///   - anchorCertificates: An array of at most 100 `SecCertificate` objects, or `nil` to remove all.
/// - Returns: `errSecSuccess`; `errSecParam` if an object has another type or there are too many.
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchorCertificates: CFArray?) -> OSStatus {
  guard let anchors = objects(anchorCertificates ?? NSArray(), of: SecCertificate.self),
    anchors.count <= TrustEvaluation.maximumCertificateCount
  else { return errSecParam }
  trust.state.withLock { $0.change { $0.anchors = anchors } }
  return errSecSuccess
}

/// Sets whether only the custom anchors are trusted. This has no effect, because a virtual device has no other anchors.
///
/// - Parameters:
///   - trust: The trust object, whose last result is discarded.
///   - anchorCertificatesOnly: Not used.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ anchorCertificatesOnly: Bool) -> OSStatus {
  trust.state.withLock { $0.change { _ in } }
  return errSecSuccess
}

/// Copies the custom anchors, which `SecTrustSetAnchorCertificates` sets.
///
/// - Parameters:
///   - trust: The trust object.
///   - anchors: Receives an array of `SecCertificate` objects, or `nil` if there are no custom anchors.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustCopyCustomAnchorCertificates(
  _ trust: SecTrust, _ anchors: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
  let certificates = trust.state.withLock { $0.anchors }
  anchors.pointee = certificates.isEmpty ? nil : NSArray(array: certificates)
  return errSecSuccess
}

/// Sets the date at which the chain must be valid. The default is the time of the evaluation, by this computer's clock.
///
/// - Parameters:
///   - trust: The trust object, whose last result is discarded.
///   - verifyDate: The date.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ verifyDate: CFDate) -> OSStatus {
  trust.state.withLock { $0.change { $0.verifyTime = verifyDate.timeIntervalSinceReferenceDate } }
  return errSecSuccess
}

/// Returns the date at which the chain must be valid, in seconds since 2001-01-01 00:00 UTC. The default is now.
public func SecTrustGetVerifyTime(_ trust: SecTrust) -> CFAbsoluteTime {
  trust.state.withLock { $0.verifyTime } ?? Date().timeIntervalSinceReferenceDate
}

/// Sets whether certificates may be fetched. The value is stored without effect, because nothing is ever fetched.
///
/// - Parameters:
///   - trust: The trust object.
///   - allowFetch: The value, which `SecTrustGetNetworkFetchAllowed` returns.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: Bool) -> OSStatus {
  trust.state.withLock { $0.isNetworkFetchAllowed = allowFetch }
  return errSecSuccess
}

/// Gets whether certificates may be fetched.
///
/// - Parameters:
///   - trust: The trust object.
///   - allowFetch: Receives the value of `SecTrustSetNetworkFetchAllowed`. The default is true.
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustGetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: UnsafeMutablePointer<Bool>) -> OSStatus {
  allowFetch.pointee = trust.state.withLock { $0.isNetworkFetchAllowed }
  return errSecSuccess
}

/// Returns the public key of the evaluated certificate; `nil` if keychains do not support its type.
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? {
  trust.state.withLock { $0.certificates.first }.flatMap { SecCertificateCopyKey($0) }
}

/// Apple's former name of `SecTrustCopyKey`.
public func SecTrustCopyPublicKey(_ trust: SecTrust) -> SecKey? { SecTrustCopyKey(trust) }

/// Returns the type identifier of trust objects, as `CFGetTypeID` does.
public func SecTrustGetTypeID() -> CFTypeID { CoreFoundationType.trust.rawValue }

/// Returns the policies, by default the basic policy. `nil` if an object has another type or an array is empty.
private func policyList(_ value: CFTypeRef?) -> [SecPolicy]? {
  guard let value else { return [SecPolicy(.basic)] }
  guard let policies = objects(value, of: SecPolicy.self), !policies.isEmpty else { return nil }
  return policies
}

/// Returns one object or the elements of an array, or `nil` if any has another type.
private func objects<Object: AnyObject>(_ value: CFTypeRef, of type: Object.Type) -> [Object]? {
  if let object = value as? Object { return [object] }
  guard let array = value as? NSArray else { return nil }
  let objects = array.compactMap { $0 as? Object }
  return objects.count == array.count ? objects : nil
}
