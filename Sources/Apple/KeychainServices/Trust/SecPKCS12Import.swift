// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

// MARK: Keys of the dictionaries. Source: Apple `SecImportExport.h` and `SecImportExport.c`.

/// The password of the file, in the options.
nonisolated(unsafe) public let kSecImportExportPassphrase: CFString = "passphrase"
/// The friendly name of an item, if it has one.
nonisolated(unsafe) public let kSecImportItemLabel: CFString = "label"
/// The identifier that links a key and its certificate in the file, if there is one.
nonisolated(unsafe) public let kSecImportItemKeyID: CFString = "keyid"
/// A `SecTrust` of an item, with the basic policy, the item's certificate and all other certificates in the file.
nonisolated(unsafe) public let kSecImportItemTrust: CFString = "trust"
/// The certificate chain of an item, with the certificates in the file.
nonisolated(unsafe) public let kSecImportItemCertChain: CFString = "chain"
/// The certificate of an item with its private key.
nonisolated(unsafe) public let kSecImportItemIdentity: CFString = "identity"

/// Decrypts a PKCS#12 file. Nothing is added to the keychain: call `SecItemAdd` with the identity.
///
/// - Parameters:
///   - pkcs12_data: The file, at most 1 MiB.
///   - options: A dictionary with the password as `kSecImportExportPassphrase`. The default is an empty password.
///   - items: Receives a dictionary for each private key whose certificate is in the file. Not changed after an error.
/// - Returns: `errSecSuccess`; `errSecAuthFailed` if the password is wrong or the file was changed; `errSecDecode` if
///   the data is not a PKCS#12 file, needs too much work to decrypt, or contains keys that keychains do not support;
///   `errSecParam` if the password is not a string; `errSecInternal` if the cryptographic library fails.
@discardableResult
public func SecPKCS12Import(
  _ pkcs12_data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
  // A doubly optional string. It is `nil` if the option is missing. The inner string is `nil` if the option is not a
  // string.
  let option = options.object(forKey: kSecImportExportPassphrase).map { try? SecItemValue($0 as AnyObject).stringValue }
  guard let passphrase = option ?? "" else { return errSecParam }
  let password = Secret(utf8: passphrase)
  do throws(CertificateError) {
    let file = try PKCS12File(der: Array(Data(referencing: pkcs12_data)), password: password)
    items.pointee = NSArray(array: file.keys.compactMap { item($0, of: file) })
    return errSecSuccess
  } catch {
    return switch error.code {
    case .wrongPassword: errSecAuthFailed
    case .failed: errSecInternal
    case .malformed, .encrypted, .unexpectedKind, .unsupported, .overLimit, .mismatch: errSecDecode
    }
  }
}

/// Returns the dictionary for a key, or `nil` if its certificate is not in the file.
private func item(_ key: PKCS12File.Key, of file: PKCS12File) -> NSDictionary? {
  guard let certificate = file.certificate(of: key) else { return nil }
  let keyCertificate = SecCertificate(KeychainItem(certificate))
  let otherCertificates = file.certificates.filter { $0 != certificate }.map { SecCertificate(KeychainItem($0)) }
  let trust = SecTrust([keyCertificate] + otherCertificates, [SecPolicyCreateBasicX509()])
  let identity = SecIdentity(certificate: keyCertificate.item, key: KeychainItem(key.material))
  var item: [CFString: Any] = [
    kSecImportItemIdentity: identity, kSecImportItemTrust: trust,
    kSecImportItemCertChain: SecTrustCopyCertificateChain(trust) ?? NSArray(array: [keyCertificate]),
  ]
  if let label = key.label { item[kSecImportItemLabel] = NSString(string: label) }
  if let keyID = key.localKeyID { item[kSecImportItemKeyID] = NSData(data: Data(keyID)) }
  return NSDictionary(dictionary: item)
}
