import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// Returns a certificate or key of the OpenSSL test vectors.
private func vector(_ section: String, named name: String) throws -> TestVectors {
  try TestVectors.certificates()[section].element(named: name)
}

@Suite("Certificates, keys and identities", .onAPhone)
struct CertificatesAndKeysTests {
  let certificateData: Data
  let keyData: Data
  let label: Data

  init() throws {
    certificateData = Data(try vector("certificates", named: "P-256 of an RSA issuer")["der_hex"].bytes)
    keyData = Data(try vector("keys", named: "P-256")["private_hex"].bytes)
    label = Data(try vector("keys", named: "P-256")["label_hex"].bytes)
  }

  private func certificate() throws -> SecCertificate {
    try #require(SecCertificateCreateWithData(nil, certificateData as CFData))
  }

  private func privateKey() throws -> SecKey {
    let attributes: [CFString: Any] = [
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeyClass: kSecAttrKeyClassPrivate,
    ]
    return try #require(SecKeyCreateWithData(keyData as CFData, attributes as CFDictionary, nil))
  }

  @Test("A certificate provides its data, name, and serial number")
  func certificates() throws {
    let certificate = try certificate()
    #expect(SecCertificateCopyData(certificate) as Data == certificateData)
    #expect(SecCertificateCopySubjectSummary(certificate) as String? == "Änna  von Beispiel")
    #expect(SecCertificateCopySerialNumberData(certificate, nil) as Data? == Data([0x00, 0x80, 0xFF]))
    #expect(CFGetTypeID(certificate) == SecCertificateGetTypeID())
  }

  @Test("No certificate is created from invalid or truncated data")
  func invalidCertificates() {
    #expect(SecCertificateCreateWithData(nil, Data("no certificate".utf8) as CFData) == nil)
    #expect(SecCertificateCreateWithData(nil, certificateData.dropLast() as CFData) == nil)
  }

  @Test(
    "Keys of every type provide their data, their attributes and the public key of their pair",
    arguments: ["RSA 2048", "P-256", "P-384", "P-521"])
  func keys(name: String) throws {
    let vector = try vector("keys", named: name)
    // Type 42 is RSA.
    let type = try vector["type"].integer == 42 ? kSecAttrKeyTypeRSA : kSecAttrKeyTypeEC
    let size = try vector["size"].integer
    let publicKeyData = Data(try vector["public_hex"].bytes)
    let privateKeyData = Data(try vector["private_hex"].bytes)
    for (keyClass, data) in [(kSecAttrKeyClassPublic, publicKeyData), (kSecAttrKeyClassPrivate, privateKeyData)] {
      let parameters: [CFString: Any] = [
        kSecAttrKeyType: type, kSecAttrKeyClass: keyClass, kSecAttrKeySizeInBits: size,
      ]
      let key = try #require(SecKeyCreateWithData(data as CFData, parameters as CFDictionary, nil))

      #expect(CFGetTypeID(key) == SecKeyGetTypeID())
      #expect(SecKeyGetBlockSize(key) == (size + 7) / 8)
      #expect(SecKeyCopyExternalRepresentation(key, nil) as Data? == data)
      let attributes = try #require(SecKeyCopyAttributes(key) as? [String: Any])
      #expect(attributes[kSecAttrKeySizeInBits as String] as? Int == size)
      #expect(attributes[kSecAttrApplicationLabel as String] as? Data == Data(try vector["label_hex"].bytes))
      #expect(attributes[kSecAttrKeyType as String] as? String == type as String)
      #expect(attributes[kSecAttrKeyClass as String] as? String == keyClass as String)
      #expect(attributes[kSecValueData as String] as? Data == data)
      let publicKey = try #require(SecKeyCopyPublicKey(key))
      #expect(SecKeyCopyExternalRepresentation(publicKey, nil) as Data? == publicKeyData)
    }
  }

  @Test("Invalid key data and missing or contradictory attributes are errSecParam (-50)")
  func invalidKeys() throws {
    let cases: [(data: Data, attributes: [CFString: Any])] = [
      (Data("no key".utf8), [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPrivate]),
      (keyData, [kSecAttrKeyType: kSecAttrKeyTypeEC, kSecAttrKeyClass: kSecAttrKeyClassPublic]),
      (keyData, [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPrivate]),
      (keyData, [kSecAttrKeyClass: kSecAttrKeyClassPrivate]),
      (keyData, [kSecAttrKeyType: kSecAttrKeyTypeEC]),
      // There is no key type 74.
      (keyData, [kSecAttrKeyType: "74", kSecAttrKeyClass: kSecAttrKeyClassPrivate]),
    ]
    for (data, attributes) in cases {
      var error: Unmanaged<CFError>?
      #expect(SecKeyCreateWithData(data as CFData, attributes as CFDictionary, &error) == nil)
      let failure = try #require(error?.takeRetainedValue())
      #expect(CFErrorGetCode(failure) == Int(errSecParam))
      #expect(CFErrorGetDomain(failure) as String == NSOSStatusErrorDomain)
    }
  }

  @Test("An identity is found if the keychain has its certificate and its key, and provides both")
  func identity() throws {
    let identities: [CFString: Any] = [kSecClass: kSecClassIdentity, kSecReturnRef: true]
    var result: CFTypeRef?
    let newCertificate: [CFString: Any] = [kSecValueRef: try certificate()]
    #expect(SecItemAdd(newCertificate as CFDictionary, nil) == errSecSuccess)
    #expect(SecItemCopyMatching(identities as CFDictionary, &result) == errSecItemNotFound)
    let newKey: [CFString: Any] = [kSecValueRef: try privateKey(), kSecAttrLabel: "mail"]
    #expect(SecItemAdd(newKey as CFDictionary, nil) == errSecSuccess)

    #expect(SecItemCopyMatching(identities as CFDictionary, &result) == errSecSuccess)
    let identity = try #require(result as? SecIdentity)
    #expect(CFGetTypeID(identity) == SecIdentityGetTypeID())
    var identityCertificate: SecCertificate?
    var identityKey: SecKey?
    #expect(SecIdentityCopyCertificate(identity, &identityCertificate) == errSecSuccess)
    #expect(SecIdentityCopyPrivateKey(identity, &identityKey) == errSecSuccess)
    #expect(try #require(identityCertificate) == certificate())
    #expect(try #require(identityKey) == privateKey())
    #expect(try SecKeyCopyExternalRepresentation(#require(identityKey), nil) as Data? == keyData)
  }

  @Test("An identity is still an identity after a backup and a restore")
  func restoredIdentity() throws {
    let environment = try TestEnvironment.current
    for reference in [try certificate(), try privateKey()] as [AnyObject] {
      #expect(SecItemAdd([kSecValueRef: reference] as [CFString: Any] as CFDictionary, nil) == errSecSuccess)
    }
    let backup = try environment.backUp(DefaultKeychain.client(), password: TestEnvironment.password)
    let newPhone = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: newPhone)

    let query: [CFString: Any] = [kSecClass: kSecClassIdentity, kSecAttrApplicationLabel: label, kSecReturnRef: true]
    var result: CFTypeRef?
    let status = newPhone.perform { SecItemCopyMatching(query as CFDictionary, &result) }
    #expect(status == errSecSuccess)
    #expect(result is SecIdentity)
  }

  @Test("The public key of a certificate is the public key of its private key")
  func certificateKey() throws {
    let key = try #require(SecCertificateCopyKey(certificate()))
    #expect(try key == #require(SecKeyCopyPublicKey(privateKey())))
  }

  @Test(
    "A random key differs from others, equals the key created from its representation, and is not stored",
    // The type (73 is EC, 42 is RSA), the size in bits, and the size of the representation in bytes.
    arguments: [("73", 256, 97), ("73", 384, 145), ("73", 521, 199), ("42", 2048, nil)] as [(String, Int, Int?)])
  func randomKeys(_ type: String, _ size: Int, _ byteCount: Int?) throws {
    let parameters: [CFString: Any] = [kSecAttrKeyType: type as CFString, kSecAttrKeySizeInBits: size]
    let key = try #require(SecKeyCreateRandomKey(parameters as CFDictionary, nil))
    let otherKey = try #require(SecKeyCreateRandomKey(parameters as CFDictionary, nil))
    #expect(key != otherKey)
    let bytes = try #require(SecKeyCopyExternalRepresentation(key, nil)) as Data
    // An EC key is 04‖X‖Y‖K. The length of an RSA key varies.
    if let byteCount { #expect(bytes.count == byteCount) }
    #expect(SecKeyGetBlockSize(key) == (size + 7) / 8)
    let attributes: [CFString: Any] = [kSecAttrKeyType: type as CFString, kSecAttrKeyClass: kSecAttrKeyClassPrivate]
    #expect(SecKeyCreateWithData(bytes as CFData, attributes as CFDictionary, nil) == key)
    let storedKeys: [CFString: Any] = [kSecClass: kSecClassKey]
    #expect(SecItemCopyMatching(storedKeys as CFDictionary, nil) == errSecItemNotFound)
  }

  @Test("Only the permanent key of a pair is stored in the keychain, with its own and the pair's attributes")
  func permanentKeys() throws {
    let tag = Data("generated".utf8)
    let parameters: [CFString: Any] = [
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256, kSecAttrLabel: "pair",
      kSecPrivateKeyAttrs: [kSecAttrIsPermanent: true, kSecAttrApplicationTag: tag] as [CFString: Any],
      kSecPublicKeyAttrs: [kSecAttrIsPermanent: false] as [CFString: Any],
    ]
    let key = try #require(SecKeyCreateRandomKey(parameters as CFDictionary, nil))
    let query: [CFString: Any] = [
      kSecClass: kSecClassKey, kSecAttrApplicationTag: tag, kSecAttrLabel: "pair", kSecReturnRef: true,
      kSecMatchLimit: kSecMatchLimitAll,
    ]
    var result: CFTypeRef?
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    #expect(result as? [SecKey] == [key])
    let publicKeys: [CFString: Any] = [kSecClass: kSecClassKey, kSecAttrKeyClass: kSecAttrKeyClassPublic]
    #expect(SecItemCopyMatching(publicKeys as CFDictionary, nil) == errSecItemNotFound)
  }

  @Test("Creating an impossible or forbidden key fails with the status for its reason")
  func impossibleKeys() throws {
    let ec = kSecAttrKeyTypeECSECPrimeRandom
    let cases: [(parameters: [CFString: Any], status: OSStatus)] = [
      ([kSecAttrKeyType: ec], errSecParam), ([kSecAttrKeySizeInBits: 256], errSecParam),
      ([kSecAttrKeyType: ec, kSecAttrKeySizeInBits: 255], errSecParam),
      ([kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeySizeInBits: 1016], errSecParam),
      ([kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeySizeInBits: 4104], errSecParam),
      (
        [kSecAttrKeyType: ec, kSecAttrKeySizeInBits: 384, kSecAttrTokenID: kSecAttrTokenIDSecureEnclave],
        errSecParam
      ),
      (
        [
          kSecAttrKeyType: ec, kSecAttrKeySizeInBits: 256, kSecAttrIsPermanent: true,
          kSecAttrAccessGroup: "another.app",
        ], errSecMissingEntitlement
      ),
    ]
    for (parameters, status) in cases {
      var error: Unmanaged<CFError>?
      #expect(SecKeyCreateRandomKey(parameters as CFDictionary, &error) == nil)
      #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(status))
    }
  }

  /// The key types as strings, each with the number that the keychain returns for it. The number is `nil` if the
  /// keychain returns the string itself, because it is not the decimal form of a 32-bit integer.
  ///
  /// Source: Apple `SecDbItem.c` (`copyNumber`).
  static let symmetricKeyTypes: [(String, Int?)] = [
    (kSecAttrKeyTypeAES as String, nil), (kSecAttrKeyTypeDES as String, 14), (kSecAttrKeyType3DES as String, 17),
    (kSecAttrKeyTypeRC2 as String, 23), (kSecAttrKeyTypeRC4 as String, 25), (kSecAttrKeyTypeCAST as String, 56),
    (kSecAttrKeyTypeDSA as String, 43),
  ]

  @Test(
    "A symmetric key of any type can be stored, found by its type, and read, but has no external representation",
    arguments: symmetricKeyTypes)
  func symmetricKeys(type: String, storedNumber: Int?) throws {
    let query: [CFString: Any] = [kSecClass: kSecClassKey, kSecAttrKeyType: type]
    let newKey: [CFString: Any] = [
      kSecAttrKeyClass: kSecAttrKeyClassSymmetric, kSecAttrApplicationTag: Data("symmetric".utf8),
      kSecValueData: Data(repeating: 7, count: 32),
    ]
    #expect(SecItemAdd(query.merging(newKey) { $1 } as CFDictionary, nil) == errSecSuccess)

    var result: CFTypeRef?
    let attributeQuery = query.merging([kSecReturnData: true, kSecReturnAttributes: true]) { $1 }
    #expect(SecItemCopyMatching(attributeQuery as CFDictionary, &result) == errSecSuccess)
    let attributes = try #require(result as? [String: Any])
    #expect(attributes[kSecValueData as String] as? Data == Data(repeating: 7, count: 32))
    // The number of symmetric keys.
    #expect(attributes[kSecAttrKeyClass as String] as? Int == 2)
    let storedType = attributes[kSecAttrKeyType as String]
    if let storedNumber {
      #expect(storedType as? Int == storedNumber)
    } else {
      // AES: 0x80000001 does not fit in a 32-bit integer.
      #expect(storedType as? String == type && type == "2147483649")
    }

    let referenceQuery = query.merging([kSecReturnRef: true]) { $1 }
    #expect(SecItemCopyMatching(referenceQuery as CFDictionary, &result) == errSecSuccess)
    let key = try #require(result as? SecKey)
    #expect(SecKeyCopyExternalRepresentation(key, nil) == nil)
  }

  @Test("Adding a key twice is errSecDuplicateItem (-25299)")
  func duplicateKey() throws {
    let key: [CFString: Any] = [kSecValueRef: try privateKey()]
    #expect(SecItemAdd(key as CFDictionary, nil) == errSecSuccess)
    #expect(SecItemAdd(key as CFDictionary, nil) == errSecDuplicateItem)
  }

  @Test("A stored key is found by its tag, label and type")
  func findKeys() throws {
    let tag = Data("tag".utf8)
    let newKey: [CFString: Any] = [kSecValueRef: try privateKey(), kSecAttrApplicationTag: tag]
    #expect(SecItemAdd(newKey as CFDictionary, nil) == errSecSuccess)
    let query: [CFString: Any] = [
      kSecClass: kSecClassKey, kSecAttrApplicationTag: tag, kSecAttrApplicationLabel: label,
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecReturnRef: true,
    ]
    var result: CFTypeRef?
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    #expect(try #require(result as? SecKey) == privateKey())
  }
}
