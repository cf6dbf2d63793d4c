// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// Makes a key pair, and stores its halves where they are to be permanent.
///
/// - Parameters:
///   - parameters: `kSecAttrKeyType` (RSA or EC) and `kSecAttrKeySizeInBits`; attributes of both halves beside them, of
///     one half under `kSecPrivateKeyAttrs` and `kSecPublicKeyAttrs`. A half with `kSecAttrIsPermanent` is added to the
///     keychain with its attributes, such as `kSecAttrApplicationTag` and `kSecAttrAccessControl`.
///     With `kSecAttrTokenID` of the Secure Enclave, on P-256 alone, the private key is wrapped by the virtual device's chip:
///     it signs, agrees and decrypts there and on no other device, and is not given out.
///   - error: Receives `errSecParam` for a type or size that is not made, `errSecUnimplemented` for another token, and what
///     `SecItemAdd` ends with.
/// - Returns: The private key, `nil` if there is an error.
public func SecKeyCreateRandomKey(
  _ parameters: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
  reporting(to: error) { () throws(SecItemError) in
    let request = KeyRequest(query: try SecItemQuery(parameters))
    if request.query[kSecAttrTokenID as String] != nil { return try request.makeEnclaveKey() }
    let key = try request.makeKey()
    try request.store(key, with: kSecPrivateKeyAttrs)
    try request.store(try key.publicPart(), with: kSecPublicKeyAttrs)
    return SecKey(KeychainItem(key))
  }
}

/// Makes a key pair and gives both halves, stored where they are to be permanent. Deprecated by Apple since iOS 15.
///
/// - Parameters:
///   - parameters: As for `SecKeyCreateRandomKey`.
///   - publicKey: Receives the public key.
///   - privateKey: Receives the private key.
/// - Returns: `errSecSuccess`, or what the error of `SecKeyCreateRandomKey` would be; then neither is touched.
public func SecKeyGeneratePair(
  _ parameters: CFDictionary, _ publicKey: UnsafeMutablePointer<SecKey?>?,
  _ privateKey: UnsafeMutablePointer<SecKey?>?
) -> OSStatus {
  var error: Unmanaged<CFError>?
  guard let made = SecKeyCreateRandomKey(parameters, &error) else {
    let code = error?.takeRetainedValue().code ?? 0
    return OSStatus(exactly: code) ?? errSecInternal
  }
  publicKey?.pointee = SecKeyCopyPublicKey(made)
  privateKey?.pointee = made
  return errSecSuccess
}

/// What a caller asks of a new pair of keys.
private struct KeyRequest {
  let query: SecItemQuery

  /// The private key.
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

  /// The private key in the Secure Enclave, stored where it is to be permanent, as is its public half.
  func makeEnclaveKey() throws(SecItemError) -> SecKey {
    guard query[kSecAttrTokenID as String] == .string(kSecAttrTokenIDSecureEnclave as String) else {
      throw SecItemError(.unimplemented, "a virtual device has no token other than its Secure Enclave")
    }
    guard query[kSecAttrKeyType as String]?.cssmNumber == KeyMaterial.KeyType.ellipticCurve.rawValue,
      query[kSecAttrKeySizeInBits as String]?.cssmNumber == 256
    else { throw SecItemError(.parameter, "the Secure Enclave makes only P-256 keys") }
    let own = attributes(kSecPrivateKeyAttrs)
    let control = own[kSecAttrAccessControl as String]?.accessControlValue
    let named = own[kSecAttrAccessible as String]?.stringValue
    guard
      let protection = control?.protection ?? ProtectionClass(rawValue: named ?? ProtectionClass.whenUnlocked.rawValue)
    else { throw SecItemError(.parameter, "the protection class is unknown") }
    let key = try SecKey.inSecureEnclave(protection: protection, accessControl: control)
    guard let token = key.tokenValue, let publicKey = try key.publicOnToken else { return key }
    try store(key.item, with: kSecPrivateKeyAttrs) { attributes in
      attributes["toid"] = .data(token.objectID)
      attributes[kSecValueData as String] = .data(publicKey.publicKey)
    }
    try store(KeychainItem(publicKey), with: kSecPublicKeyAttrs) { $0[kSecAttrTokenID as String] = nil }
    return key
  }

  /// What is said of a half: of both, and of itself.
  private func attributes(_ ownAttributes: CFString) -> SecItemQuery {
    var attributes = query
    for half in [kSecPrivateKeyAttrs, kSecPublicKeyAttrs] { attributes[half as String] = nil }
    attributes.merge(query[ownAttributes as String]?.dictionaryValue ?? [:]) { _, own in own }
    return attributes
  }

  /// Adds a half where it is to be permanent.
  func store(_ key: KeyMaterial, with ownAttributes: CFString) throws(SecItemError) {
    try store(KeychainItem(key), with: ownAttributes) { _ in }
  }

  private func store(
    _ key: KeychainItem, with ownAttributes: CFString, changing change: (inout SecItemQuery) -> Void
  ) throws(SecItemError) {
    var attributes = attributes(ownAttributes)
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
