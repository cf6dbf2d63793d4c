// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// An X.509 certificate.
public final class SecCertificate: Sendable {
  let item: KeychainItem

  init(_ item: KeychainItem) { self.item = item }

  var reference: SecItemReference { .certificate(item) }
  var der: [UInt8] { item.secret?.withBytes { Array($0) } ?? [] }
}

extension SecCertificate: Hashable {
  public static func == (left: SecCertificate, right: SecCertificate) -> Bool { left.der == right.der }
  public func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

/// Reads a certificate.
///
/// - Parameters:
///   - allocator: Not used.
///   - data: DER.
/// - Returns: `nil` if the data is not a certificate.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
  guard let facts = try? CertificateAttributes(der: Array(Data(referencing: data))) else { return nil }
  return SecCertificate(KeychainItem(facts))
}

/// The certificate in DER.
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { NSData(data: Data(certificate.der)) }

/// What a person knows the certificate by: its common name, or what else comes first in its subject.
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> CFString? {
  guard let facts = try? CertificateAttributes(der: certificate.der) else { return nil }
  return facts.subjectSummary.map { NSString(string: $0) }
}

/// Gives the certificate's common name.
///
/// - Returns: `errSecSuccess`, also where it has none and `commonName` receives `nil`.
@discardableResult
public func SecCertificateCopyCommonName(
  _ certificate: SecCertificate, _ commonName: UnsafeMutablePointer<CFString?>
) -> OSStatus {
  guard let facts = try? CertificateAttributes(der: certificate.der) else { return errSecDecode }
  commonName.pointee = facts.commonName.map { NSString(string: $0) }
  return errSecSuccess
}

/// Gives the e-mail addresses of the certificate's subject and of its alternative names.
///
/// - Returns: `errSecSuccess`, also where it has none and `emailAddresses` receives an empty array.
@discardableResult
public func SecCertificateCopyEmailAddresses(
  _ certificate: SecCertificate, _ emailAddresses: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
  guard let facts = try? CertificateAttributes(der: certificate.der) else { return errSecDecode }
  emailAddresses.pointee = NSArray(array: facts.emailAddresses.map { NSString(string: $0) })
  return errSecSuccess
}

/// Returns the issuer's name in DER, normalized as keychains compare it.
///
/// Source: Apple `SecCertificate.c` (`SecCertificateCopyNormalizedIssuerSequence`).
/// - Returns: `nil` if the certificate cannot be read.
public func SecCertificateCopyNormalizedIssuerSequence(_ certificate: SecCertificate) -> CFData? {
  (try? CertificateAttributes(der: certificate.der)).map { NSData(data: Data($0.issuerSequence)) }
}

/// Returns the subject's name in DER, normalized as keychains compare it.
///
/// Source: Apple `SecCertificate.c` (`SecCertificateCopyNormalizedSubjectSequence`).
/// - Returns: `nil` if the certificate cannot be read.
public func SecCertificateCopyNormalizedSubjectSequence(_ certificate: SecCertificate) -> CFData? {
  (try? CertificateAttributes(der: certificate.der)).map { NSData(data: Data($0.subjectSequence)) }
}

/// The serial number's bytes, as in the certificate.
public func SecCertificateCopySerialNumberData(
  _ certificate: SecCertificate, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  certificate.item[.serialNumber]?.dataValue.map { NSData(data: Data($0)) }
}

/// The certificate's public key; `nil` for one that keychains don't store, such as Ed25519.
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
  guard let facts = try? CertificateAttributes(der: certificate.der), let key = try? facts.publicKeyMaterial else {
    return nil
  }
  return SecKey(KeychainItem(key))
}

/// Returns the number that `CFGetTypeID` gives for a certificate.
public func SecCertificateGetTypeID() -> CFTypeID { CoreFoundationType.certificate.rawValue }

extension SecCertificate: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .certificate }
}
