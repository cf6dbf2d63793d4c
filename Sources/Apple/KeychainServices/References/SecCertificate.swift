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

/// Creates a certificate.
///
/// - Parameters:
///   - allocator: Not used.
///   - data: The certificate in DER.
/// - Returns: The certificate, or `nil` if the data is not a certificate.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
  guard let attributes = try? CertificateAttributes(der: Array(Data(referencing: data))) else { return nil }
  return SecCertificate(KeychainItem(attributes))
}

/// Returns the certificate in DER.
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { NSData(data: Data(certificate.der)) }

/// Returns a short name of the certificate for users: its common name, or else another part of its subject.
///
/// - Returns: The name, or `nil` if the subject has none or the certificate cannot be read.
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> CFString? {
  guard let attributes = try? CertificateAttributes(der: certificate.der) else { return nil }
  return attributes.subjectSummary.map { NSString(string: $0) }
}

/// Copies the certificate's common name.
///
/// - Returns: `errSecSuccess`, with `nil` in `commonName` if there is none; `errSecDecode` if the certificate cannot be
///   read.
@discardableResult
public func SecCertificateCopyCommonName(
  _ certificate: SecCertificate, _ commonName: UnsafeMutablePointer<CFString?>
) -> OSStatus {
  guard let attributes = try? CertificateAttributes(der: certificate.der) else { return errSecDecode }
  commonName.pointee = attributes.commonName.map { NSString(string: $0) }
  return errSecSuccess
}

/// Copies the e-mail addresses of the certificate's subject and alternative names.
///
/// - Returns: `errSecSuccess`, with an empty array in `emailAddresses` if there are none; `errSecDecode` if the
///   certificate cannot be read.
@discardableResult
public func SecCertificateCopyEmailAddresses(
  _ certificate: SecCertificate, _ emailAddresses: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
  guard let attributes = try? CertificateAttributes(der: certificate.der) else { return errSecDecode }
  emailAddresses.pointee = NSArray(array: attributes.emailAddresses.map { NSString(string: $0) })
  return errSecSuccess
}

/// Returns the issuer's name in DER, normalized for comparisons.
///
/// Source: Apple `SecCertificate.c` (`SecCertificateCopyNormalizedIssuerSequence`).
///
/// - Returns: `nil` if the certificate cannot be read.
public func SecCertificateCopyNormalizedIssuerSequence(_ certificate: SecCertificate) -> CFData? {
  (try? CertificateAttributes(der: certificate.der)).map { NSData(data: Data($0.issuerSequence)) }
}

/// Returns the subject's name in DER, normalized for comparisons.
///
/// Source: Apple `SecCertificate.c` (`SecCertificateCopyNormalizedSubjectSequence`).
///
/// - Returns: `nil` if the certificate cannot be read.
public func SecCertificateCopyNormalizedSubjectSequence(_ certificate: SecCertificate) -> CFData? {
  (try? CertificateAttributes(der: certificate.der)).map { NSData(data: Data($0.subjectSequence)) }
}

/// Returns the bytes of the serial number.
///
/// - Parameters:
///   - certificate: The certificate.
///   - error: Not changed, because the call never sets an error.
/// - Returns: The bytes, or `nil` if the certificate comes from a keychain item without a serial number.
public func SecCertificateCopySerialNumberData(
  _ certificate: SecCertificate, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  certificate.item[.serialNumber]?.dataValue.map { NSData(data: Data($0)) }
}

/// Returns the certificate's public key; `nil` if keychains do not support its type, such as Ed25519.
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
  guard let attributes = try? CertificateAttributes(der: certificate.der), let key = try? attributes.publicKeyMaterial
  else {
    return nil
  }
  return SecKey(KeychainItem(key))
}

/// Returns the type identifier of certificates, as `CFGetTypeID` does.
public func SecCertificateGetTypeID() -> CFTypeID { CoreFoundationType.certificate.rawValue }

extension SecCertificate: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .certificate }
}
