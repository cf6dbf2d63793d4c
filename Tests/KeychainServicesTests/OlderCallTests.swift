import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// Sources: Apple `SecKey.m`, `SecSharedCredential.h`, `SecPolicy.c`, `SecCertificate.c`.
@Suite("Older Security calls that published packages still use")
struct OlderCallTests {
  private static let digest = [UInt8](repeating: 7, count: 32)

  /// Signs the digest.
  ///
  /// - Parameter capacity: The number of bytes that the call may write.
  private func sign(
    _ key: SecKey, _ padding: SecPadding, capacity: Int = 512
  ) -> (status: OSStatus, signature: [UInt8]) {
    var bytes = [UInt8](repeating: 0, count: 512)
    var count = capacity
    let status = SecKeyRawSign(key, padding, Self.digest, Self.digest.count, &bytes, &count)
    return (status, Array(bytes.prefix(count)))
  }

  @Test("The padding determines the algorithm of SecKeyRawSign")
  func signing() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.dropFirst().first)
    let cases: [(key: KeyOperations, padding: SecPadding, algorithm: SecKeyAlgorithm)] = [
      (rsa, .PKCS1SHA256, .rsaSignatureDigestPKCS1v15SHA256), (rsa, .PKCS1, .rsaSignatureDigestPKCS1v15Raw),
      (rsa, [], .rsaSignatureRaw), (curve, .sigRaw, .ecdsaSignatureRFC4754),
      (curve, .PKCS1, .ecdsaSignatureDigestX962SHA256), (curve, [], .ecdsaSignatureDigestX962),
    ]
    let otherDigest = [UInt8](repeating: 8, count: 32)
    for (key, padding, algorithm) in cases {
      let (status, signature) = sign(key.privateKey, padding)
      #expect(status == errSecSuccess)
      let digestData = Data(Self.digest) as CFData
      #expect(SecKeyVerifySignature(key.publicKey, algorithm, digestData, Data(signature) as CFData, nil))
      #expect(SecKeyRawVerify(key.publicKey, padding, Self.digest, 32, signature, signature.count) == errSecSuccess)
      #expect(SecKeyRawVerify(key.publicKey, padding, otherDigest, 32, signature, signature.count) == errSSLCrypto)
    }
  }

  @Test("SecKeyRawSign with an unsupported padding, a small buffer or a public key is errSecParam")
  func refusedSigning() throws {
    let rsa = try #require(KeyOperations.all.first)
    #expect(sign(rsa.privateKey, .PKCS1SHA1).status == errSecParam)
    #expect(sign(rsa.privateKey, .PKCS1MD5).status == errSecParam)
    // A signature with this key has 256 bytes.
    #expect(sign(rsa.privateKey, .PKCS1, capacity: 255).status == errSecParam)
    #expect(sign(rsa.publicKey, .PKCS1).status == errSecParam)
  }

  @Test("SecKeyEncrypt and SecKeyDecrypt support raw RSA, PKCS#1, and OAEP, but no elliptic curves")
  func encrypting() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.last)
    let keyByteCount = 256
    for padding in [SecPadding.PKCS1, .OAEP, []] {
      var ciphertext = [UInt8](repeating: 0, count: keyByteCount)
      var count = keyByteCount
      #expect(SecKeyEncrypt(rsa.publicKey, padding, Self.digest, 32, &ciphertext, &count) == errSecSuccess)
      #expect(count == keyByteCount)
      var plaintext = [UInt8](repeating: 0, count: keyByteCount)
      var length = keyByteCount
      #expect(SecKeyDecrypt(rsa.privateKey, padding, ciphertext, count, &plaintext, &length) == errSecSuccess)
      #expect(Array(plaintext.prefix(length)) == Self.digest)
      // The plaintext has 32 bytes.
      var tooSmallLength = 31
      #expect(SecKeyDecrypt(rsa.privateKey, padding, ciphertext, count, &plaintext, &tooSmallLength) == errSecParam)
      #expect(SecKeyEncrypt(curve.publicKey, padding, Self.digest, 32, &ciphertext, &count) == errSecParam)
    }
  }

  @Test("Adding a shared web credential fails with errSecMissingEntitlement")
  func sharedCredentials() async {
    let code = await withCheckedContinuation { continuation in
      SecAddSharedWebCredential("example.org", "anna", "secret") { error in
        continuation.resume(returning: error.map { CFErrorGetCode($0) })
      }
    }
    #expect(code == Int(errSecMissingEntitlement))
  }

  @Test("A generated password has four groups and all three kinds of characters, and differs from the next one")
  func generatedPassword() throws {
    let password = try #require(SecCreateSharedWebCredentialPassword()) as String
    let groups = password.split(separator: "-")
    #expect(groups.map(\.count) == [3, 3, 3, 3])
    // The characters that look alike, such as l and 1, are missing.
    for characters in ["abcdefghkmnopqrstuvwxy", "ABCDEFGHJKLMNPQRSTUVWXYZ", "3456789"] {
      #expect(password.contains { characters.contains($0) })
    }
    #expect(SecCreateSharedWebCredentialPassword() as String? != password)
  }

  @Test("A revocation policy checks nothing, and fails if it requires a positive response")
  func revocation() throws {
    // Apple defines the bits 0 to 4.
    #expect(SecPolicyCreateRevocation(1 << 5) == nil)
    let chain = try TrustCase.named("a complete chain of a server")
    for (flags, status) in [
      (kSecRevocationUseAnyAvailableMethod, nil),
      (kSecRevocationOCSPMethod | kSecRevocationRequirePositiveResponse, Int(errSecIncompleteCertRevocationCheck)),
    ] as [(CFOptionFlags, Int?)] {
      let policy = try #require(SecPolicyCreateRevocation(flags))
      let properties = SecPolicyCopyProperties(policy) as? [String: Any]
      #expect(properties?[kSecPolicyOid as String] as? String == "1.2.840.113635.100.1.21")
      let trust = try chain.trust([chain.secPolicy, policy] as NSArray)
      var error: CFError?
      #expect(SecTrustEvaluateWithError(trust, &error) == (status == nil))
      #expect(error.map { CFErrorGetCode($0) } == status)
    }
  }

  @Test("The normalized names of a certificate are DER, and the issuer's name equals the next subject's in the chain")
  func names() throws {
    let chain = try TrustCase.named("a complete chain of a server").certificates
    let issuer = try #require(SecCertificateCopyNormalizedIssuerSequence(chain[0]) as Data?)
    let subject = try #require(SecCertificateCopyNormalizedSubjectSequence(chain[0]) as Data?)
    // 0x30 is the tag of a SEQUENCE.
    #expect(issuer != subject && issuer.first == 0x30 && subject.first == 0x30)
    if chain.count > 1 {
      #expect(SecCertificateCopyNormalizedSubjectSequence(chain[1]) as Data? == issuer)
    }
  }

  @Test("An NSError of the LocalAuthentication domain converts to LAError, and other errors do not")
  func authenticationErrors() {
    // All codes of the domain are negative.
    let error: any Error = NSError(domain: LAErrorDomain, code: -5)
    #expect((error as? LAError)?.code == .passcodeNotSet)
    #expect(LAError(_nsError: NSError(domain: LAErrorDomain, code: -2))?.code == .userCancel)
    // The codes of LAError are negative.
    #expect(LAError(_nsError: NSError(domain: LAErrorDomain, code: 5)) == nil)
    #expect(LAError(_nsError: NSError(domain: NSOSStatusErrorDomain, code: -5)) == nil)
    let domain: CFErrorDomain = CFErrorGetDomain(NSError(domain: LAErrorDomain, code: -5))
    #expect(domain as String == LAErrorDomain)
  }
}
