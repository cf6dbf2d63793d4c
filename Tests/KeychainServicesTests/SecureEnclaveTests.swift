import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing
import VirtualDevice

@Suite("Secure Enclave keys", .onAPhone)
struct SecureEnclaveTests {
  private static var message: CFData { Data("what is signed".utf8) as CFData }
  private static let algorithm = SecKeyAlgorithm.ecdsaSignatureMessageX962SHA256

  private func parameters(
    _ accessible: CFString = kSecAttrAccessibleWhenUnlockedThisDeviceOnly, permanent: Bool = false,
    flags: SecAccessControlCreateFlags? = nil
  ) throws -> CFDictionary {
    var own: [CFString: Any] = [kSecAttrIsPermanent: permanent, kSecAttrApplicationTag: Data("enclave".utf8)]
    if let flags {
      own[kSecAttrAccessControl] = try #require(SecAccessControlCreateWithFlags(nil, accessible, flags, nil))
    } else {
      own[kSecAttrAccessible] = accessible
    }
    let parameters: [CFString: Any] = [
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256,
      kSecAttrTokenID: kSecAttrTokenIDSecureEnclave, kSecPrivateKeyAttrs: own,
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
    let known = try #require(SecKeyCopyExternalRepresentation(publicKey, nil) as Data?)
    #expect(known.count == 65 && known.first == 4)
    let ecies = SecKeyAlgorithm.eciesEncryptionCofactorVariableIVX963SHA256AESGCM
    let sealed = try #require(SecKeyCreateEncryptedData(publicKey, ecies, Self.message, nil))
    #expect(SecKeyCreateDecryptedData(key, ecies, sealed, nil) as Data? == Self.message as Data)

    let software: [CFString: Any] = [kSecAttrKeyType: kSecAttrKeyTypeEC, kSecAttrKeySizeInBits: 256]
    let other = try self.key(software as CFDictionary)
    let ecdh = SecKeyAlgorithm.ecdhKeyExchangeStandard
    let ours = SecKeyCopyKeyExchangeResult(key, ecdh, try #require(SecKeyCopyPublicKey(other)), NSDictionary(), nil)
    let theirs = SecKeyCopyKeyExchangeResult(other, ecdh, publicKey, NSDictionary(), nil)
    #expect(ours != nil && ours as Data? == theirs as Data?)

    #expect(SecKeyIsAlgorithmSupported(key, .sign, Self.algorithm))
    #expect(!SecKeyIsAlgorithmSupported(key, .verify, Self.algorithm))
    #expect(!SecKeyIsAlgorithmSupported(key, .sign, .rsaSignatureMessagePKCS1v15SHA256))
  }

  @Test("A permanent Secure Enclave key is found again and signs after a restart")
  func kept() throws {
    let client = try DefaultKeychain.client()
    let made = try key(parameters(kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, permanent: true))
    let query: [CFString: Any] = [
      kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("enclave".utf8), kSecReturnRef: true,
    ]
    try client.restart()
    var found: CFTypeRef?
    #expect(SecItemCopyMatching(query as CFDictionary, &found) == errSecSuccess)
    let key = try #require(found as? SecKey)
    #expect(key == made)
    #expect(try statusOfSigning(key) == Int(errSecInteractionNotAllowed), "its class is locked until the first unlock")
    try client.unlock(passcode: Desk.passcode)
    #expect(try statusOfSigning(key) == 0)
    #expect(SecKeyCopyExternalRepresentation(key, nil) == nil)
    #expect(SecItemDelete(query as CFDictionary) == errSecSuccess)
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecItemNotFound)
  }

  @Test("A Secure Enclave key requires its protection class and the authentication of its access control")
  func guarded() throws {
    let client = try DefaultKeychain.client()
    let plain = try key(parameters())
    let asking = try key(parameters(flags: [.privateKeyUsage, .userPresence]))
    let always = try key(parameters(kSecAttrAccessibleAlwaysThisDeviceOnly))
    #expect(try statusOfSigning(asking) == Int(errSecInteractionNotAllowed), "no authentication is available")
    client.authenticationOutcome = .deny
    #expect(try statusOfSigning(asking) == Int(errSecAuthFailed))
    client.authenticationOutcome = .cancel
    #expect(try statusOfSigning(asking) == Int(errSecUserCanceled))
    client.authenticationOutcome = .allow
    #expect(try statusOfSigning(asking) == 0)
    try client.lock()
    #expect(try statusOfSigning(plain) == Int(errSecInteractionNotAllowed))
    #expect(try statusOfSigning(always) == 0)
    #expect(SecKeyCreateRandomKey(try parameters(), nil) == nil, "no key can be created while its class is locked")
  }

  @Test("A Secure Enclave key works on no other phone, and is in no backup")
  func bound() throws {
    let desk = try Desk.ofTheTest
    let key = try key(parameters(kSecAttrAccessibleAfterFirstUnlock, permanent: true))
    let other = try desk.phone()
    #expect(try DefaultKeychain.using(other) { try statusOfSigning(key) } == Int(errSecDecode))
    let backup = try desk.backUp(DefaultKeychain.client(), password: Desk.password)
    let new = try desk.phone()
    try desk.restore(backup, password: Desk.password, onto: new)
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

    let bare = try KeychainClient.onNewDevice()
    let guarded = try parameters(kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
    #expect(DefaultKeychain.using(bare) { SecKeyCreateRandomKey(guarded, &error) } == nil)
    #expect(CFErrorGetCode(try #require(error?.takeRetainedValue())) == Int(errSecAuthFailed))
  }
}
