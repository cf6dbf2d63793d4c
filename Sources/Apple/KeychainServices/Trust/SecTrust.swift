// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import VirtualDevice

/// Certificates with the policies and anchors by which they are looked at.
///
/// A virtual device trusts no authority of its own: where no anchors are set, nothing is trusted.
public final class SecTrust: Sendable {
  struct State {
    /// First the one that is asked about.
    let certificates: [SecCertificate]
    var policies: [SecPolicy]
    var anchors: [SecCertificate] = []
    /// Seconds since the reference date; `nil` for the moment of the evaluation.
    var moment: Double?
    var isNetworkFetchAllowed = true
    /// `nil` before an evaluation, and after a change of what it goes by.
    var outcome: TrustOutcome?

    mutating func change(_ change: (inout State) -> Void) {
      change(&self)
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

/// Puts certificates together for an evaluation.
///
/// - Parameters:
///   - certificates: A `SecCertificate`, or an array of them: first the one asked about, then any that may lie between it
///     and an anchor. At most 100.
///   - policies: A `SecPolicy`, an array of them, all of which have to be satisfied, or `nil` for the basic one.
///   - trust: Receives the object.
/// - Returns: `errSecParam` for anything else, and then `trust` is not touched.
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

/// Sets the policies, all of which have to be satisfied.
///
/// - Parameters:
///   - trust: What is changed; an earlier result is forgotten.
///   - policies: A `SecPolicy` or an array of them.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
  guard let policies = policyList(policies) else { return errSecParam }
  trust.state.withLock { $0.change { $0.policies = policies } }
  return errSecSuccess
}

/// Gives the policies.
@discardableResult
public func SecTrustCopyPolicies(_ trust: SecTrust, _ policies: UnsafeMutablePointer<CFArray?>) -> OSStatus {
  policies.pointee = NSArray(array: trust.state.withLock { $0.policies })
  return errSecSuccess
}

/// Sets the certificates that are trusted for themselves.
///
/// - Parameters:
///   - trust: What is changed; an earlier result is forgotten.
///   - anchorCertificates: `SecCertificate`s, at most 100; `nil` for none.
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchorCertificates: CFArray?) -> OSStatus {
  guard let anchors = objects(anchorCertificates ?? NSArray(), of: SecCertificate.self),
    anchors.count <= TrustEvaluation.maximumCertificateCount
  else { return errSecParam }
  trust.state.withLock { $0.change { $0.anchors = anchors } }
  return errSecSuccess
}

/// Whether the anchors that were set are the only ones. A virtual device has no others, so nothing changes.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ anchorCertificatesOnly: Bool) -> OSStatus {
  trust.state.withLock { $0.change { _ in } }
  return errSecSuccess
}

/// Gives the anchors that were set, `nil` if none are.
@discardableResult
public func SecTrustCopyCustomAnchorCertificates(
  _ trust: SecTrust, _ anchors: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
  let set = trust.state.withLock { $0.anchors }
  anchors.pointee = set.isEmpty ? nil : NSArray(array: set)
  return errSecSuccess
}

/// Sets the moment at which the chain has to be valid; without it the one of the evaluation by this computer's clock.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ verifyDate: CFDate) -> OSStatus {
  trust.state.withLock { $0.change { $0.moment = verifyDate.timeIntervalSinceReferenceDate } }
  return errSecSuccess
}

/// The moment at which the chain has to be valid, in seconds since 2001-01-01 00:00 UTC; now where none was set.
public func SecTrustGetVerifyTime(_ trust: SecTrust) -> CFAbsoluteTime {
  trust.state.withLock { $0.moment } ?? Date().timeIntervalSinceReferenceDate
}

/// Whether certificates might be fetched. Nothing here fetches any: the value is kept and has no effect.
@discardableResult
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: Bool) -> OSStatus {
  trust.state.withLock { $0.isNetworkFetchAllowed = allowFetch }
  return errSecSuccess
}

/// Gives the value that was set, true where none was.
@discardableResult
public func SecTrustGetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: UnsafeMutablePointer<Bool>) -> OSStatus {
  allowFetch.pointee = trust.state.withLock { $0.isNetworkFetchAllowed }
  return errSecSuccess
}

/// The public key of the certificate that is asked about; `nil` for one that keychains don't store.
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? {
  trust.state.withLock { $0.certificates.first }.flatMap { SecCertificateCopyKey($0) }
}

/// Apple's former name of `SecTrustCopyKey`.
public func SecTrustCopyPublicKey(_ trust: SecTrust) -> SecKey? { SecTrustCopyKey(trust) }

/// Returns the number that `CFGetTypeID` gives for a trust object.
public func SecTrustGetTypeID() -> CFTypeID { CoreFoundationType.trust.rawValue }

/// - Returns: `nil` for objects of another kind, and for an empty list.
private func policyList(_ value: CFTypeRef?) -> [SecPolicy]? {
  guard let value else { return [SecPolicy(.basic)] }
  guard let policies = objects(value, of: SecPolicy.self), !policies.isEmpty else { return nil }
  return policies
}

/// One object, or an array of them.
///
/// - Returns: `nil` if there is one of another kind.
private func objects<Object: AnyObject>(_ value: CFTypeRef, of type: Object.Type) -> [Object]? {
  if let object = value as? Object { return [object] }
  guard let array = value as? NSArray else { return nil }
  let objects = array.compactMap { $0 as? Object }
  return objects.count == array.count ? objects : nil
}
