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

  @Test("A Secure Enclave key signs, exchanges keys, and decrypts, but cannot be exported")
  func uses() throws {
    let key = try key(parameters())
    #expect(try statusOfSigning(key) == 0)
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

    let publicKey = try #require(SecKeyCopyPublicKey(key))
    let publicKeyData = try #require(SecKeyCopyExternalRepresentation(publicKey, nil) as Data?)
    #expect(publicKeyData.count == 65 && publicKeyData.first == 4)
    let ecies = SecKeyAlgorithm.eciesEncryptionCofactorVariableIVX963SHA256AESGCM
    let sealed = try #require(SecKeyCreateEncryptedData(publicKey, ecies, Self.message, nil))
    #expect(SecKeyCreateDecryptedData(key, ecies, sealed, nil) as Data? == Self.message as Data)

    let software: [CFString: Any] = [kSecAttrKeyType: kSecAttrKeyTypeEC, kSecAttrKeySizeInBits: 256]
    let other = try self.key(software as CFDictionary)
    let ecdh = SecKeyAlgorithm.ecdhKeyExchangeStandard
    let enclaveSecret = SecKeyCopyKeyExchangeResult(
      key, ecdh, try #require(SecKeyCopyPublicKey(other)), NSDictionary(), nil)
    let softwareSecret = SecKeyCopyKeyExchangeResult(other, ecdh, publicKey, NSDictionary(), nil)
    #expect(enclaveSecret != nil && enclaveSecret as Data? == softwareSecret as Data?)

    #expect(SecKeyIsAlgorithmSupported(key, .sign, Self.algorithm))
    #expect(!SecKeyIsAlgorithmSupported(key, .verify, Self.algorithm))
    #expect(!SecKeyIsAlgorithmSupported(key, .sign, .rsaSignatureMessagePKCS1v15SHA256))
  }

  @Test("A permanent Secure Enclave key is found again and signs after a restart")
  func permanentKey() throws {
    let client = try DefaultKeychain.client()
    let created = try key(parameters(kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, permanent: true))
    let query: [CFString: Any] = [
      kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("enclave".utf8), kSecReturnRef: true,
    ]
    try client.restart()
    var found: CFTypeRef?
    #expect(SecItemCopyMatching(query as CFDictionary, &found) == errSecSuccess)
    let key = try #require(found as? SecKey)
    #expect(key == created)
    #expect(try statusOfSigning(key) == Int(errSecInteractionNotAllowed), "its class is locked until the first unlock")
    try client.unlock(passcode: TestEnvironment.passcode)
    #expect(try statusOfSigning(key) == 0)
    #expect(SecKeyCopyExternalRepresentation(key, nil) == nil)
    #expect(SecItemDelete(query as CFDictionary) == errSecSuccess)
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecItemNotFound)
  }

  @Test("A Secure Enclave key requires its protection class and the authentication of its access control")
  func guarded() throws {
    let client = try DefaultKeychain.client()
    let plain = try key(parameters())
    let requiringUser = try key(parameters(flags: [.privateKeyUsage, .userPresence]))
    let always = try key(parameters(kSecAttrAccessibleAlwaysThisDeviceOnly))
    #expect(try statusOfSigning(requiringUser) == Int(errSecInteractionNotAllowed), "no authentication is available")
    client.authenticationOutcome = .deny
    #expect(try statusOfSigning(requiringUser) == Int(errSecAuthFailed))
    client.authenticationOutcome = .cancel
    #expect(try statusOfSigning(requiringUser) == Int(errSecUserCanceled))
    client.authenticationOutcome = .allow
    #expect(try statusOfSigning(requiringUser) == 0)
    try client.lock()
    #expect(try statusOfSigning(plain) == Int(errSecInteractionNotAllowed))
    #expect(try statusOfSigning(always) == 0)
    #expect(SecKeyCreateRandomKey(try parameters(), nil) == nil, "no key can be created while its class is locked")
  }

  @Test("A Secure Enclave key works on no other phone, and is in no backup")
  func bound() throws {
    let environment = try TestEnvironment.current
    let key = try key(parameters(kSecAttrAccessibleAfterFirstUnlock, permanent: true))
    let other = try environment.phone()
    #expect(try DefaultKeychain.using(other) { try statusOfSigning(key) } == Int(errSecDecode))
    let backup = try environment.backUp(DefaultKeychain.client(), password: TestEnvironment.password)
    let new = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: new)
    let query: [CFString: Any] = [kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("enclave".utf8)]
    #expect(DefaultKeychain.using(new) { SecItemCopyMatching(query as CFDictionary, nil) } == errSecItemNotFound)
    #expect(try statusOfSigning(key) == 0)
  }

  @Test(
    "A Secure Enclave key must be on P-256, with Apple's token and, if its class requires one, a passcode",
    arguments: [
      ("type", "42", errSecParam), ("bsiz", "384", errSecParam), ("tkid", "com.example.token", errSecUnimplemented),
    ] as [(String, String, OSStatus)])
  func refused(_ attribute: String, _ value: String, _ status: OSStatus) throws {
    var changed = try #require(parameters() as? [String: Any])
    changed[attribute] = value
    var error: Unmanaged<CFError>?
    #expect(SecKeyCreateRandomKey(changed as CFDictionary, &error) == nil)
    #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(status))

    let phoneWithoutPasscode = try KeychainClient.onNewDevice()
    let guarded = try parameters(kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
    #expect(DefaultKeychain.using(phoneWithoutPasscode) { SecKeyCreateRandomKey(guarded, &error) } == nil)
    #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(errSecAuthFailed))
  }
}
