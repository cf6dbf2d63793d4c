// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

// MARK: Keys of the dictionaries. Source: Apple `SecImportExport.h` and `SecImportExport.c`.

/// Of the options: the password of the file.
nonisolated(unsafe) public let kSecImportExportPassphrase: CFString = "passphrase"
/// Of an item: its friendly name, where it has one.
nonisolated(unsafe) public let kSecImportItemLabel: CFString = "label"
/// Of an item: what links its key and its certificate in the file, where there is such a thing.
nonisolated(unsafe) public let kSecImportItemKeyID: CFString = "keyid"
/// Of an item: a `SecTrust` with the basic policy over its certificate and all others of the file.
nonisolated(unsafe) public let kSecImportItemTrust: CFString = "trust"
/// Of an item: its certificate and those that lead from it, as far as the file has them.
nonisolated(unsafe) public let kSecImportItemCertChain: CFString = "chain"
/// Of an item: its certificate with its private key.
nonisolated(unsafe) public let kSecImportItemIdentity: CFString = "identity"

/// Opens a PKCS#12 file. Nothing is added to the keychain: that is `SecItemAdd` with the identity.
///
/// - Parameters:
///   - pkcs12_data: The file, at most 1 MiB.
///   - options: `kSecImportExportPassphrase` with the password; without it the empty one is tried.
///   - items: Receives a dictionary for each private key that has its certificate in the file.
/// - Returns: `errSecSuccess`; `errSecAuthFailed` where the password is wrong, which a file that was changed looks like
///   too; `errSecDecode` for something else than such a file, and for one that takes more work to open than is taken or
///   holds keys that keychains don't store; `errSecParam` for a password that is not text. Then `items` is not touched.
@discardableResult
public func SecPKCS12Import(
  _ pkcs12_data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
  let given = options.object(forKey: kSecImportExportPassphrase).map { try? SecItemValue($0 as AnyObject).stringValue }
  guard let text = given ?? "" else { return errSecParam }
  let password = Secret(utf8: text)
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

/// - Returns: `nil` for a key without its certificate.
private func item(_ key: PKCS12File.Key, of file: PKCS12File) -> NSDictionary? {
  guard let certificate = file.certificate(of: key) else { return nil }
  let own = SecCertificate(KeychainItem(certificate))
  let others = file.certificates.filter { $0 != certificate }.map { SecCertificate(KeychainItem($0)) }
  let trust = SecTrust([own] + others, [SecPolicyCreateBasicX509()])
  let identity = SecIdentity(certificate: own.item, key: KeychainItem(key.material))
  var item: [CFString: Any] = [
    kSecImportItemIdentity: identity, kSecImportItemTrust: trust,
    kSecImportItemCertChain: SecTrustCopyCertificateChain(trust) ?? NSArray(array: [own]),
  ]
  if let label = key.label { item[kSecImportItemLabel] = NSString(string: label) }
  if let keyID = key.localKeyID { item[kSecImportItemKeyID] = NSData(data: Data(keyID)) }
  return NSDictionary(dictionary: item)
}
