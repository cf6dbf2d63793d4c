// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// Creates a key pair, and stores its keys if they are permanent.
///
/// - Parameters:
///   - parameters: `kSecAttrKeyType` (RSA or EC), `kSecAttrKeySizeInBits`, attributes of both keys, and attributes of
///     one key in `kSecPrivateKeyAttrs` and `kSecPublicKeyAttrs`. A key with `kSecAttrIsPermanent` is added to the
///     keychain with its attributes, such as `kSecAttrApplicationTag` and `kSecAttrAccessControl`. If `kSecAttrTokenID`
///     is the Secure Enclave, which supports only P-256, the virtual device wraps the private key. The key can then be
///     used only on this device and cannot be exported.
///   - error: Receives `errSecParam` for an unsupported type or size, `errSecUnimplemented` for a token that is not the
///     Secure Enclave, and the statuses of `SecItemAdd`.
/// - Returns: The private key, or `nil` if there is an error.
public func SecKeyCreateRandomKey(
  _ parameters: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
  translatingErrors(to: error) { () throws(SecItemError) in
    let request = KeyRequest(query: try SecItemQuery(parameters))
    if request.query[kSecAttrTokenID as String] != nil { return try request.makeEnclaveKey() }
    let key = try request.makeKey()
    try request.store(key, with: kSecPrivateKeyAttrs)
    try request.store(try key.publicPart(), with: kSecPublicKeyAttrs)
    return SecKey(KeychainItem(key))
  }
}

/// Creates a key pair and stores its keys if they are permanent. Deprecated by Apple since iOS 15.
///
/// - Parameters:
///   - parameters: The parameters, as for `SecKeyCreateRandomKey`.
///   - publicKey: Receives the public key.
///   - privateKey: Receives the private key.
/// - Returns: `errSecSuccess`, or the error code of `SecKeyCreateRandomKey`. After an error, no key is set.
public func SecKeyGeneratePair(
  _ parameters: CFDictionary, _ publicKey: UnsafeMutablePointer<SecKey?>?,
  _ privateKey: UnsafeMutablePointer<SecKey?>?
) -> OSStatus {
  var error: Unmanaged<CFError>?
  guard let newKey = SecKeyCreateRandomKey(parameters, &error) else {
    return error.flatMap { OSStatus(exactly: $0.takeRetainedValue().code) } ?? errSecInternal
  }
  publicKey?.pointee = SecKeyCopyPublicKey(newKey)
  privateKey?.pointee = newKey
  return errSecSuccess
}

/// The parameters of a new key pair.
private struct KeyRequest {
  let query: SecItemQuery

  /// Creates the private key.
  func makeKey() throws(SecItemError) -> KeyMaterial {
    guard let keyType = query[kSecAttrKeyType as String]?.cssmNumber.flatMap(KeyMaterial.KeyType.init(rawValue:)),
      let size = query[kSecAttrKeySizeInBits as String]?.cssmNumber.flatMap({ Int(exactly: $0) })
    else {
      throw SecItemError(.parameter, "the type must be RSA or EC, and the size must be a number of bits")
    }
    do throws(CertificateError) {
      switch keyType {
      case .rsa: return try .generateRSA(sizeInBits: size)
      case .ellipticCurve:
        guard let curve = EllipticCurve(rawValue: size) else {
          throw CertificateError(.unsupported, "an EC key must have 256, 384 or 521 bits")
        }
        return try .generate(on: curve)
      }
    } catch {
      throw SecItemError(error.code == .failed ? .internalError : .parameter, error.reason)
    }
  }

  /// Creates the private key in the Secure Enclave, and stores both keys if they are permanent.
  func makeEnclaveKey() throws(SecItemError) -> SecKey {
    guard query[kSecAttrTokenID as String] == .string(kSecAttrTokenIDSecureEnclave as String) else {
      throw SecItemError(.unimplemented, "a virtual device has no token other than its Secure Enclave")
    }
    guard query[kSecAttrKeyType as String]?.cssmNumber == KeyMaterial.KeyType.ellipticCurve.rawValue,
      query[kSecAttrKeySizeInBits as String]?.cssmNumber == 256
    else { throw SecItemError(.parameter, "the Secure Enclave makes only P-256 keys") }
    let privateAttributes = attributes(kSecPrivateKeyAttrs)
    let control = privateAttributes[kSecAttrAccessControl as String]?.accessControlValue
    let protectionName =
      privateAttributes[kSecAttrAccessible as String]?.stringValue ?? ProtectionClass.whenUnlocked.rawValue
    guard let protection = control?.protection ?? ProtectionClass(rawValue: protectionName) else {
      throw SecItemError(.parameter, "the protection class is unknown")
    }
    let key = try SecKey.inSecureEnclave(protection: protection, accessControl: control)
    guard let token = key.tokenValue, let publicKey = try key.tokenPublicKey else {
      throw SecItemError(.internalError, "a new key in the Secure Enclave has no token")
    }
    try store(key.item, with: kSecPrivateKeyAttrs) { attributes in
      // The token's identifier for the key, for which Apple has no public constant.
      attributes["toid"] = .data(token.objectID)
      attributes[kSecValueData as String] = .data(publicKey.publicKey)
    }
    try store(KeychainItem(publicKey), with: kSecPublicKeyAttrs) { $0[kSecAttrTokenID as String] = nil }
    return key
  }

  /// Returns the attributes of a key. The attributes for this key take precedence over the attributes for both keys.
  ///
  /// - Parameter keyAttributesName: The name of the parameter with the attributes for this key only, such as
  ///   `kSecPrivateKeyAttrs`.
  private func attributes(_ keyAttributesName: CFString) -> SecItemQuery {
    var attributes = query
    for name in [kSecPrivateKeyAttrs, kSecPublicKeyAttrs] { attributes[name as String] = nil }
    attributes.merge(query[keyAttributesName as String]?.dictionaryValue ?? [:]) { _, own in own }
    return attributes
  }

  /// Stores a key if it is permanent.
  func store(_ key: KeyMaterial, with keyAttributesName: CFString) throws(SecItemError) {
    try store(KeychainItem(key), with: keyAttributesName) { _ in }
  }

  private func store(
    _ key: KeychainItem, with keyAttributesName: CFString, changing change: (inout SecItemQuery) -> Void
  ) throws(SecItemError) {
    var attributes = attributes(keyAttributesName)
    change(&attributes)
    guard [.boolean(true), .number(1)].contains(attributes[kSecAttrIsPermanent as String]) else { return }
    attributes[kSecClass as String] = .string(kSecClassKey as String)
    attributes[kSecValueRef as String] = .reference(.key(key))
    guard let client = try? DefaultKeychain.client() else {
      throw SecItemError(.notAvailable, "there is no device to store the key on")
    }
    _ = try client.add(attributes)
  }
}

extension KeyMaterial {
  fileprivate func publicPart() throws(SecItemError) -> KeyMaterial {
    do throws(CertificateError) { return try publicMaterial } catch { throw SecItemError(.internalError, error.reason) }
  }
}
