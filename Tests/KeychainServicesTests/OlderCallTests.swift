import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// Sources: Apple `SecKey.m`, `SecSharedCredential.h`, `SecPolicy.c`, `SecCertificate.c`.
@Suite("Older Security calls that published packages still use")
struct OlderCallTests {
  private static let digest = [UInt8](repeating: 7, count: 32)

  private func signature(_ key: SecKey, _ padding: SecPadding, capacity: Int = 512) -> (OSStatus, [UInt8]) {
    var (bytes, count) = ([UInt8](repeating: 0, count: 512), capacity)
    let status = SecKeyRawSign(key, padding, Self.digest, Self.digest.count, &bytes, &count)
    return (status, Array(bytes.prefix(count)))
  }

  @Test("SecKeyRawSign uses the algorithm of the padding")
  func signing() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.dropFirst().first)
    let cases: [(KeyOperations, SecPadding, SecKeyAlgorithm)] = [
      (rsa, .PKCS1SHA256, .rsaSignatureDigestPKCS1v15SHA256), (rsa, .PKCS1, .rsaSignatureDigestPKCS1v15Raw),
      (rsa, [], .rsaSignatureRaw), (curve, .sigRaw, .ecdsaSignatureRFC4754),
      (curve, .PKCS1, .ecdsaSignatureDigestX962SHA256), (curve, [], .ecdsaSignatureDigestX962),
    ]
    for (key, padding, algorithm) in cases {
      let (status, signed) = signature(key.privateKey, padding)
      #expect(status == errSecSuccess)
      let digest = Data(Self.digest) as CFData
      #expect(SecKeyVerifySignature(key.publicKey, algorithm, digest, Data(signed) as CFData, nil))
      #expect(SecKeyRawVerify(key.publicKey, padding, Self.digest, 32, signed, signed.count) == errSecSuccess)
      let other = [UInt8](repeating: 8, count: 32)
      #expect(SecKeyRawVerify(key.publicKey, padding, other, 32, signed, signed.count) == errSSLCrypto)
    }
    #expect(signature(rsa.privateKey, .PKCS1SHA1).0 == errSecParam)
    #expect(signature(rsa.privateKey, .PKCS1MD5).0 == errSecParam)
    #expect(signature(rsa.privateKey, .PKCS1, capacity: 255).0 == errSecParam)
    #expect(signature(rsa.publicKey, .PKCS1).0 == errSecParam)
  }

  @Test("SecKeyEncrypt and SecKeyDecrypt support raw RSA, PKCS#1, and OAEP, but no elliptic curves")
  func encrypting() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.last)
    for padding in [SecPadding.PKCS1, .OAEP, []] {
      var (ciphertext, count) = ([UInt8](repeating: 0, count: 256), 256)
      #expect(SecKeyEncrypt(rsa.publicKey, padding, Self.digest, 32, &ciphertext, &count) == errSecSuccess)
      #expect(count == 256)
      var (plaintext, length) = ([UInt8](repeating: 0, count: 256), 256)
      #expect(SecKeyDecrypt(rsa.privateKey, padding, ciphertext, count, &plaintext, &length) == errSecSuccess)
      #expect(Array(plaintext.prefix(length)) == Self.digest)
      length = 31
      #expect(SecKeyDecrypt(rsa.privateKey, padding, ciphertext, count, &plaintext, &length) == errSecParam)
      #expect(SecKeyEncrypt(curve.publicKey, padding, Self.digest, 32, &ciphertext, &count) == errSecParam)
    }
  }

  @Test("A shared web credential is refused, and a generated password contains all three kinds of characters")
  func sharedCredentials() async throws {
    let code = await withCheckedContinuation { continuation in
      SecAddSharedWebCredential("example.org", "anna", "secret") { error in
        continuation.resume(returning: error.map { CFErrorGetCode($0) })
      }
    }
    #expect(code == Int(errSecMissingEntitlement))
    let password = try #require(SecCreateSharedWebCredentialPassword()) as String
    let groups = password.split(separator: "-")
    #expect(groups.map(\.count) == [3, 3, 3, 3])
    for set in ["abcdefghkmnopqrstuvwxy", "ABCDEFGHJKLMNPQRSTUVWXYZ", "3456789"] {
      #expect(password.contains { set.contains($0) })
    }
    #expect(SecCreateSharedWebCredentialPassword() as String? != password)
  }

  @Test("A revocation policy checks nothing, and fails if it requires a positive response")
  func revocation() throws {
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

  @Test("The normalized names of a certificate are DER sequences that can be compared")
  func names() throws {
    let chain = try TrustCase.named("a complete chain of a server").certificates
    let issuer = try #require(SecCertificateCopyNormalizedIssuerSequence(chain[0]) as Data?)
    let subject = try #require(SecCertificateCopyNormalizedSubjectSequence(chain[0]) as Data?)
    #expect(issuer != subject && issuer.first == 0x30 && subject.first == 0x30)
    if chain.count > 1 {
      #expect(SecCertificateCopyNormalizedSubjectSequence(chain[1]) as Data? == issuer)
    }
  }

  @Test("An NSError of the LocalAuthentication domain converts to LAError, and other errors do not")
  func authenticationErrors() {
    let error: any Error = NSError(domain: LAErrorDomain, code: -5)
    #expect((error as? LAError)?.code == .passcodeNotSet)
    #expect(LAError(_nsError: NSError(domain: LAErrorDomain, code: -2))?.code == .userCancel)
    #expect(LAError(_nsError: NSError(domain: LAErrorDomain, code: 5)) == nil)
    #expect(LAError(_nsError: NSError(domain: NSOSStatusErrorDomain, code: -5)) == nil)
    let domain: CFErrorDomain = CFErrorGetDomain(NSError(domain: LAErrorDomain, code: -5))
    #expect(domain as String == LAErrorDomain)
  }
}
