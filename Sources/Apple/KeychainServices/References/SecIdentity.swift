// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
import KeychainFormats
import VirtualDevice

/// A certificate and its private key.
public final class SecIdentity: Sendable {
  fileprivate let certificate: KeychainItem
  fileprivate let key: KeychainItem

  init(certificate: KeychainItem, key: KeychainItem) {
    self.certificate = certificate
    self.key = key
  }

  var reference: SecItemReference { .identity(certificate: certificate, key: key) }
}

extension SecIdentity: Hashable {
  /// Returns whether both have the same certificate. The keys are not compared.
  public static func == (left: SecIdentity, right: SecIdentity) -> Bool {
    SecCertificate(left.certificate) == SecCertificate(right.certificate)
  }

  public func hash(into hasher: inout Hasher) { SecCertificate(certificate).hash(into: &hasher) }
}

/// Creates an identity.
///
/// - Parameters:
///   - allocator: Not used.
///   - certificate: The certificate.
///   - privateKey: The private key. As on Apple's systems, it may belong to another certificate.
/// - Returns: The identity; never `nil`.
public func SecIdentityCreate(
  _ allocator: CFAllocator?, _ certificate: SecCertificate, _ privateKey: SecKey
) -> SecIdentity? {
  SecIdentity(certificate: certificate.item, key: privateKey.item)
}

/// Copies the certificate of an identity.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecIdentityCopyCertificate(
  _ identity: SecIdentity, _ certificate: UnsafeMutablePointer<SecCertificate?>
) -> OSStatus {
  certificate.pointee = SecCertificate(identity.certificate)
  return errSecSuccess
}

/// Copies the private key of an identity.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecIdentityCopyPrivateKey(
  _ identity: SecIdentity, _ privateKey: UnsafeMutablePointer<SecKey?>
) -> OSStatus {
  privateKey.pointee = SecKey(identity.key)
  return errSecSuccess
}

/// Returns the type identifier of identities, as `CFGetTypeID` does.
public func SecIdentityGetTypeID() -> CFTypeID { CoreFoundationType.identity.rawValue }

extension SecIdentity: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .identity }
}
