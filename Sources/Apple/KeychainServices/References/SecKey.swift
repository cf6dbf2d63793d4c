// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// A public or private key, RSA or on one of the curves P-256, P-384 and P-521.
public final class SecKey: Sendable {
  let item: KeychainItem

  init(_ item: KeychainItem) { self.item = item }

  var reference: SecItemReference { .key(item) }

  fileprivate var keyType: KeyMaterial.KeyType? {
    item[.type]?.integerValue.flatMap(KeyMaterial.KeyType.init(rawValue:))
  }

  var isRSA: Bool { keyType == .rsa }

  var role: KeyMaterial.Role? {
    item[.keyClass]?.integerValue.flatMap(KeyMaterial.Role.init(rawValue:))
  }

  /// Returns the key's material.
  ///
  /// - Throws: `.parameter` for a key without bytes, or of a type without an external representation; `.unimplemented`
  ///   for a key in the Secure Enclave.
  func material() throws(SecItemError) -> KeyMaterial {
    guard tokenValue == nil else { throw SecItemError(.unimplemented, "the key cannot leave its chip") }
    guard let secret = item.secret, let keyType, let role else {
      throw SecItemError(.parameter, "the key has no external representation")
    }
    return try secret.withBytes { (bytes) throws(SecItemError) in try KeyMaterial(bytes, keyType, role) }
  }
}

extension SecKey: Hashable {
  public static func == (left: SecKey, right: SecKey) -> Bool {
    left.role == right.role && left.keyType == right.keyType
      && left.item[.applicationLabel] == right.item[.applicationLabel]
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(item[.applicationLabel]) }
}

/// Creates a key from its external representation.
///
/// - Parameters:
///   - keyData: PKCS#1 for RSA; 04‖X‖Y for a public key on a curve; 04‖X‖Y‖K for a private key on a curve.
///   - attributes: The attributes, at least `kSecAttrKeyType` and `kSecAttrKeyClass`.
///   - error: Receives `errSecParam` if the data is not a key with these attributes.
/// - Returns: The key, or `nil` if there is an error.
public func SecKeyCreateWithData(
  _ keyData: CFData, _ attributes: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
  translatingErrors(to: error) { () throws(SecItemError) in
    let query = try SecItemQuery(attributes)
    guard let keyType = query[kSecAttrKeyType as String]?.cssmNumber.flatMap(KeyMaterial.KeyType.init(rawValue:)),
      let role = query[kSecAttrKeyClass as String]?.cssmNumber.flatMap(KeyMaterial.Role.init(rawValue:))
    else {
      throw SecItemError(.parameter, "the type must be RSA or EC, and the class must be public or private")
    }
    let data = SensitiveBytes(copying: Array(Data(referencing: keyData)))
    return SecKey(
      KeychainItem(try data.withBytes { (bytes) throws(SecItemError) in try KeyMaterial(bytes, keyType, role) }))
  }
}

/// Returns the key's external representation, as for `SecKeyCreateWithData`.
///
/// - Returns: The representation, or `nil` if there is an error: `errSecUnimplemented` for a private key in the Secure
///   Enclave, `errSecParam` for a key without an external representation.
public func SecKeyCopyExternalRepresentation(
  _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  translatingErrors(to: error) { () throws(SecItemError) in
    try key.material().externalRepresentation.withBytes { NSData(data: Data($0)) }
  }
}

/// Returns the key's attributes, and its bytes unless it is in the Secure Enclave.
///
/// The key class and the key type are strings, like Apple's constants for them.
///
/// Source: Apple `SecKey.m` (`SecKeyCopyAttributeDictionaryWithLocalKey`), `SecCTKKey.m` (`SecCTKKeyCopyAttributes`).
public func SecKeyCopyAttributes(_ key: SecKey) -> CFDictionary? {
  var attributes: SecItemQuery = [kSecClass as String: .string(kSecClassKey as String)]
  for (code, value) in key.item.attributes { attributes[code.rawValue] = .init(attribute: value) }
  for code in [AttributeCode.keyClass, .type] {
    if let number = key.item[code]?.integerValue { attributes[code.rawValue] = .string("\(number)") }
  }
  if let material = try? key.material() {
    attributes[kSecValueData as String] = .secret(material.externalRepresentation)
  }
  return SecItemValue.dictionary(attributes).object as? NSDictionary
}

/// Returns the public key of a private key, or any other key itself.
///
/// - Returns: The key, or `nil` if the private key's bytes cannot be read.
public func SecKeyCopyPublicKey(_ key: SecKey) -> SecKey? {
  guard key.role == .privateKey else { return key }
  if let publicKey = try? key.tokenPublicKey { return SecKey(KeychainItem(publicKey)) }
  guard let material = try? key.material(), let publicKey = try? material.publicMaterial else { return nil }
  return SecKey(KeychainItem(publicKey))
}

/// Returns the key's size in bytes, rounded up; 0 if the key has no `kSecAttrKeySizeInBits`.
public func SecKeyGetBlockSize(_ key: SecKey) -> Int {
  let bits = key.item[.keySizeInBits]?.integerValue.flatMap { Int(exactly: $0) } ?? 0
  return bits / 8 + (bits % 8 == 0 ? 0 : 1)
}

/// Returns the type identifier of keys, as `CFGetTypeID` does.
public func SecKeyGetTypeID() -> CFTypeID { CoreFoundationType.key.rawValue }

/// Runs the closure. If it throws, stores the error in `target`, unless that is `nil`, and returns `nil`.
func translatingErrors<Value>(
  to target: UnsafeMutablePointer<Unmanaged<CFError>?>?, _ body: () throws(SecItemError) -> Value
) -> Value? {
  do throws(SecItemError) {
    return try body()
  } catch {
    target?.pointee = Unmanaged.passRetained(CFError(error))
    return nil
  }
}

extension KeyMaterial {
  init(
    _ bytes: UnsafeRawBufferPointer, _ keyType: KeyType, _ role: Role
  ) throws(SecItemError) {
    do throws(CertificateError) {
      try self.init(externalRepresentation: bytes, keyType: keyType, role: role)
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }
}

extension SecItemValue {
  /// The number, or the number in a string. Apple's constants for key types and classes are such strings.
  var cssmNumber: Int64? { numberValue ?? stringValue.flatMap { Int64($0) } }

  /// Creates a value for callers. Returns `nil` if callers never receive values of the kind.
  fileprivate init?(attribute value: PropertyValue) {
    switch value {
    case .string(let text): self = .string(text)
    case .data(let bytes): self = .data(bytes)
    case .integer(let number): self = .number(number)
    case .boolean(let flag): self = .boolean(flag)
    case .real(let number): self = .real(number)
    case .date(let date): self = .date(date)
    case .null, .unsignedInteger, .uid, .array, .dictionary, .set: return nil
    }
  }
}

extension SecKey: SecurityObject {
  static var coreFoundationType: CoreFoundationType { .key }
}

/// Private keys in the Secure Enclave of the virtual device.
extension SecKey {
  /// The value on the token, or `nil` if the key is not on a token.
  var tokenValue: TokenValue? { role == .privateKey ? TokenValue(of: item) : nil }

  /// The public key from the token, or `nil` if the key is not on a token.
  var tokenPublicKey: KeyMaterial? {
    get throws(SecItemError) {
      guard let tokenValue else { return nil }
      guard let value = tokenValue.value else { throw SecItemError(.parameter, "the token has no public key") }
      return try value.withRawBytes { (bytes) throws(SecItemError) in
        try KeyMaterial(bytes, .ellipticCurve, .publicKey)
      }
    }
  }

  /// Creates a key in the Secure Enclave of the current device.
  ///
  /// - Parameters:
  ///   - protection: The class whose key must be in memory to use the private key.
  ///   - accessControl: The required authentication, or `nil` if there is none.
  static func inSecureEnclave(
    protection: ProtectionClass, accessControl: AccessControl?
  ) throws(SecItemError) -> SecKey {
    let pair: KeyMaterial
    do throws(CertificateError) { pair = try .generate(on: .p256) } catch {
      throw SecItemError(.internalError, error.reason)
    }
    // The representation is the public key, followed by the private number.
    let privateNumber = pair.externalRepresentation.withBytes { bytes in
      SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[pair.publicKey.count...]))
    }
    guard let client = try? DefaultKeychain.client() else {
      throw SecItemError(.notAvailable, "there is no device to make the key on")
    }
    let objectID = try client.call { (session) throws(SecItemError) in
      try session.enclaveObjectID(of: privateNumber, protection: protection)
    }
    var item = KeychainItem(pair)
    item[.tokenID] = .string(kSecAttrTokenIDSecureEnclave as String)
    for code: AttributeCode in [.isSensitive, .wasAlwaysSensitive, .wasNeverExtractable] { item[code] = .integer(1) }
    item[.isExtractable] = .integer(0)
    item.secret = try TokenValue(
      objectID: objectID, accessControl: accessControl?.operations, value: pair.publicKey
    ).encoded()
    return SecKey(item)
  }
}
