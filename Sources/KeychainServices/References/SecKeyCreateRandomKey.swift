// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Certificates
import DataProtection
public import Foundation
import KeychainFormats
import SecItem

/// Makes a key pair, and stores its halves where they are to be permanent.
///
/// - Parameters:
///   - parameters: `kSecAttrKeyType` (RSA or EC) and `kSecAttrKeySizeInBits`; attributes of both halves beside them, of
///     one half under `kSecPrivateKeyAttrs` and `kSecPublicKeyAttrs`. A half with `kSecAttrIsPermanent` is added to the
///     keychain with its attributes, such as `kSecAttrApplicationTag` and `kSecAttrAccessControl`.
///   - error: Receives `errSecParam` for a type or size that is not made, `errSecUnimplemented` for a key in the Secure
///     Enclave, and what `SecItemAdd` ends with.
/// - Returns: The private key, `nil` where there is an error.
public func SecKeyCreateRandomKey(
  _ parameters: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
  reporting(to: error) { () throws(SecItemError) in
    let request = KeyRequest(query: try SecItemQuery(parameters))
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
    guard query[kSecAttrTokenID as String] == nil else {
      throw SecItemError(.unimplemented, "the chip of a virtual device makes no keys")
    }
    guard let keyType = query[kSecAttrKeyType as String]?.cssmNumber.flatMap(KeyMaterial.KeyType.init(rawValue:)),
      let size = query[kSecAttrKeySizeInBits as String]?.cssmNumber.flatMap({ Int(exactly: $0) })
    else {
      throw SecItemError(.parameter, "the type is RSA or EC, and the size a number of bits")
    }
    do throws(MaterialError) {
      switch keyType {
      case .rsa: return try .generateRSA(sizeInBits: size)
      case .ellipticCurve:
        guard let curve = EllipticCurve(rawValue: size) else {
          throw MaterialError(.unsupported, "keys are made on the curves of 256, 384 and 521 bits")
        }
        return try .generate(on: curve)
      }
    } catch {
      throw SecItemError(error.code == .failed ? .internalError : .parameter, error.reason)
    }
  }

  /// Adds a half where it is to be permanent.
  func store(_ key: KeyMaterial, with ownAttributes: CFString) throws(SecItemError) {
    var attributes = query
    for half in [kSecPrivateKeyAttrs, kSecPublicKeyAttrs] { attributes[half as String] = nil }
    attributes.merge(query[ownAttributes as String]?.dictionaryValue ?? [:]) { _, own in own }
    guard [.boolean(true), .number(1)].contains(attributes[kSecAttrIsPermanent as String]) else { return }
    attributes[kSecClass as String] = .string(kSecClassKey as String)
    attributes[kSecValueRef as String] = .reference(.key(KeychainItem(key)))
    guard let client = try? DefaultKeychain.client() else {
      throw SecItemError(.notAvailable, "there is no device to store the key on")
    }
    _ = try client.add(attributes)
  }
}

extension KeyMaterial {
  fileprivate func publicPart() throws(SecItemError) -> KeyMaterial {
    do throws(MaterialError) { return try publicHalf } catch { throw SecItemError(.internalError, error.reason) }
  }
}
