import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing
import VirtualDevice

@Suite("Secure Enclave keys", .onAPhone)
struct SecureEnclaveTests {
  private static var message: CFData { Data("message".utf8) as CFData }
  private static let algorithm = SecKeyAlgorithm.ecdsaSignatureMessageX962SHA256

  private func parameters(
    _ accessible: CFString = kSecAttrAccessibleWhenUnlockedThisDeviceOnly, permanent: Bool = false,
    flags: SecAccessControlCreateFlags? = nil
  ) throws -> CFDictionary {
    var keyAttributes: [CFString: Any] = [kSecAttrIsPermanent: permanent, kSecAttrApplicationTag: Data("enclave".utf8)]
    if let flags {
      keyAttributes[kSecAttrAccessControl] = try #require(SecAccessControlCreateWithFlags(nil, accessible, flags, nil))
    } else {
      keyAttributes[kSecAttrAccessible] = accessible
    }
    let parameters: [CFString: Any] = [
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256,
      kSecAttrTokenID: kSecAttrTokenIDSecureEnclave, kSecPrivateKeyAttrs: keyAttributes,
    ]
    return parameters as CFDictionary
  }

  private func key(_ parameters: CFDictionary) throws -> SecKey {
    try #require(SecKeyCreateRandomKey(parameters, nil))
  }

  /// Returns 0 if the key signs and its public key verifies the signature, or the code of the error.
  private func statusOfSigning(_ key: SecKey) throws -> Int {
    var error: Unmanaged<CFError>?
    guard let signature = SecKeyCreateSignature(key, Self.algorithm, Self.message, &error) else {
      return CFErrorGetCode(try #require(error?.takeRetainedValue()))
    }
    let publicKey = try #require(SecKeyCopyPublicKey(key))
    #expect(SecKeyVerifySignature(publicKey, Self.algorithm, Self.message, signature, nil))
    return 0
  }

  @Test("A Secure Enclave key signs with P-256 only, and does not verify")
  func signing() throws {
    let key = try key(parameters())
    #expect(try statusOfSigning(key) == 0)
    #expect(SecKeyIsAlgorithmSupported(key, .sign, Self.algorithm))
    #expect(!SecKeyIsAlgorithmSupported(key, .verify, Self.algorithm))
    #expect(!SecKeyIsAlgorithmSupported(key, .sign, .rsaSignatureMessagePKCS1v15SHA256))
  }

  @Test("A Secure Enclave key cannot be exported, and its attributes contain no data")
  func attributes() throws {
    let key = try key(parameters())
    var error: Unmanaged<CFError>?
    #expect(SecKeyCopyExternalRepresentation(key, &error) == nil)
    #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(errSecUnimplemented))
    let attributes = try #require(SecKeyCopyAttributes(key) as? [String: Any])
    #expect(attributes[kSecAttrTokenID as String] as? String == kSecAttrTokenIDSecureEnclave as String)
    #expect(attributes[kSecAttrIsExtractable as String] as? Int == 0)
    #expect(attributes[kSecAttrKeySizeInBits as String] as? Int == 256)
    #expect(attributes[kSecAttrKeyType as String] as? String == kSecAttrKeyTypeECSECPrimeRandom as String)
    #expect(attributes[kSecAttrKeyClass as String] as? String == kSecAttrKeyClassPrivate as String)
    #expect(attributes[kSecValueData as String] == nil)
  }

  @Test("A Secure Enclave key decrypts data for its public key, an uncompressed point")
  func decrypting() throws {
    let key = try key(parameters())
    let publicKey = try #require(SecKeyCopyPublicKey(key))
    let publicKeyData = try #require(SecKeyCopyExternalRepresentation(publicKey, nil) as Data?)
    #expect(publicKeyData.count == 65 && publicKeyData.first == 4)
    let ecies = SecKeyAlgorithm.eciesEncryptionCofactorVariableIVX963SHA256AESGCM
    let ciphertext = try #require(SecKeyCreateEncryptedData(publicKey, ecies, Self.message, nil))
    #expect(SecKeyCreateDecryptedData(key, ecies, ciphertext, nil) as Data? == Self.message as Data)
  }

  @Test("A Secure Enclave key exchanges keys with a software key")
  func exchanging() throws {
    let enclaveKey = try key(parameters())
    let softwareParameters: [CFString: Any] = [kSecAttrKeyType: kSecAttrKeyTypeEC, kSecAttrKeySizeInBits: 256]
    let softwareKey = try key(softwareParameters as CFDictionary)
    func exchange(_ privateKey: SecKey, _ otherKey: SecKey) throws -> Data? {
      let publicKey = try #require(SecKeyCopyPublicKey(otherKey))
      return SecKeyCopyKeyExchangeResult(privateKey, .ecdhKeyExchangeStandard, publicKey, NSDictionary(), nil) as Data?
    }
    let secret = try #require(try exchange(enclaveKey, softwareKey))
    #expect(try exchange(softwareKey, enclaveKey) == secret)
  }

  @Test("A permanent Secure Enclave key is found again and signs after a restart")
  func permanentKey() throws {
    let client = try DefaultKeychain.client()
    let createdKey = try key(parameters(kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, permanent: true))
    let query: [CFString: Any] = [
      kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("enclave".utf8), kSecReturnRef: true,
    ]
    try client.restart()
    var result: CFTypeRef?
    #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    let key = try #require(result as? SecKey)
    #expect(key == createdKey)
    #expect(try statusOfSigning(key) == Int(errSecInteractionNotAllowed), "its class key is not in memory")
    try client.unlock(passcode: TestEnvironment.passcode)
    #expect(try statusOfSigning(key) == 0)
    #expect(SecKeyCopyExternalRepresentation(key, nil) == nil)
    #expect(SecItemDelete(query as CFDictionary) == errSecSuccess)
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecItemNotFound)
  }

  @Test("A Secure Enclave key requires its class key and the authentication of its access control")
  func authentication() throws {
    let client = try DefaultKeychain.client()
    let plainKey = try key(parameters())
    let guardedKey = try key(parameters(flags: [.privateKeyUsage, .userPresence]))
    let alwaysKey = try key(parameters(kSecAttrAccessibleAlwaysThisDeviceOnly))
    #expect(try statusOfSigning(guardedKey) == Int(errSecInteractionNotAllowed), "no authentication is available")
    client.authenticationOutcome = .deny
    #expect(try statusOfSigning(guardedKey) == Int(errSecAuthFailed))
    client.authenticationOutcome = .cancel
    #expect(try statusOfSigning(guardedKey) == Int(errSecUserCanceled))
    client.authenticationOutcome = .allow
    #expect(try statusOfSigning(guardedKey) == 0)
    try client.lock()
    #expect(try statusOfSigning(plainKey) == Int(errSecInteractionNotAllowed))
    #expect(try statusOfSigning(alwaysKey) == 0)
    #expect(SecKeyCreateRandomKey(try parameters(), nil) == nil, "the class key is not in memory")
  }

  @Test("A Secure Enclave key works on no other phone, and is in no backup")
  func bound() throws {
    let environment = try TestEnvironment.current
    let key = try key(parameters(kSecAttrAccessibleAfterFirstUnlock, permanent: true))
    let otherPhone = try environment.phone()
    #expect(try DefaultKeychain.using(otherPhone) { try statusOfSigning(key) } == Int(errSecDecode))
    let backup = try environment.backUp(DefaultKeychain.client(), password: TestEnvironment.password)
    let newPhone = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: newPhone)
    let query: [CFString: Any] = [kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("enclave".utf8)]
    #expect(DefaultKeychain.using(newPhone) { SecItemCopyMatching(query as CFDictionary, nil) } == errSecItemNotFound)
    #expect(try statusOfSigning(key) == 0)
  }

  @Test(
    "A Secure Enclave key of another type, size or token cannot be created",
    // 42 is RSA.
    arguments: [
      ("type", "42", errSecParam), ("bsiz", "384", errSecParam), ("tkid", "com.example.token", errSecUnimplemented),
    ] as [(String, String, OSStatus)])
  func refused(_ attribute: String, _ value: String, _ status: OSStatus) throws {
    var changed = try #require(parameters() as? [String: Any])
    changed[attribute] = value
    var error: Unmanaged<CFError>?
    #expect(SecKeyCreateRandomKey(changed as CFDictionary, &error) == nil)
    #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(status))
  }

  @Test("A Secure Enclave key of the passcode class cannot be created without a passcode")
  func noPasscode() throws {
    let phone = try KeychainClient.onNewDevice()
    let parameters = try parameters(kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
    var error: Unmanaged<CFError>?
    #expect(DefaultKeychain.using(phone) { SecKeyCreateRandomKey(parameters, &error) } == nil)
    #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(errSecAuthFailed))
  }
}
