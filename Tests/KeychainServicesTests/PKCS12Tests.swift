import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// A PKCS#12 file of the test vectors.
struct PKCS12Case: CustomTestStringConvertible, Sendable {
  struct Identity: Equatable, Sendable {
    let certificate: Data
    /// The SHA-1 digest of the public key.
    let key: Data
    let label: String?
  }

  let name: String
  let file: Data
  let password: String?
  let status: Int
  let identities: [Identity]

  var testDescription: String { name }

  init(_ vector: TestVectors) throws {
    name = try vector["name"].string
    file = Data(try vector["file_hex"].bytes)
    password = try? vector["password"].string
    status = try vector["status"].integer
    identities = try vector["identities"].elements.map {
      Identity(
        certificate: Data(try $0["certificate"].bytes), key: Data(try $0["key"].bytes), label: try? $0["label"].string)
    }
  }

  static let all = (try? TestVectors.trust()["files"].elements.map(PKCS12Case.init)) ?? []

  static func named(_ name: String) throws -> PKCS12Case { try #require(all.first { $0.name == name }) }

  func open(_ data: Data? = nil) -> (OSStatus, [[String: Any]]?) {
    var items: CFArray?
    let options = password.map { [kSecImportExportPassphrase: $0] as NSDictionary } ?? NSDictionary()
    let status = SecPKCS12Import((data ?? file) as CFData, options, &items)
    return (status, items as? [[String: Any]])
  }
}

@Suite("PKCS#12 import", .onAPhone)
struct PKCS12Tests {
  @Test("The PKCS#12 vectors are complete")
  func vectors() { #expect(PKCS12Case.all.count == 19) }

  @Test(
    "The import returns the identities with the correct password, and otherwise a status", arguments: PKCS12Case.all)
  func opening(_ file: PKCS12Case) throws {
    let (status, items) = file.open()
    #expect(Int(status) == file.status)
    #expect((items == nil) == (file.status != 0), "a failed import returns no items")
    var found: [PKCS12Case.Identity] = []
    for item in items ?? [] {
      let identity = try #require(item[kSecImportItemIdentity as String] as? SecIdentity)
      var (certificate, key) = (SecCertificate?.none, SecKey?.none)
      #expect(SecIdentityCopyCertificate(identity, &certificate) == errSecSuccess)
      #expect(SecIdentityCopyPrivateKey(identity, &key) == errSecSuccess)
      let leaf = try #require(certificate)
      let privateKey = try #require(key)
      let attributes = try #require(SecKeyCopyAttributes(privateKey) as? [String: Any])
      found.append(
        PKCS12Case.Identity(
          certificate: SecCertificateCopyData(leaf) as Data,
          key: try #require(attributes[kSecAttrApplicationLabel as String] as? Data),
          label: item[kSecImportItemLabel as String] as? String))
      let chain = try #require(item[kSecImportItemCertChain as String] as? [SecCertificate])
      #expect(chain.first == leaf)
      #expect(item[kSecImportItemTrust as String] is SecTrust)
      // The key signs data that its certificate verifies.
      let message = Data("signed".utf8) as CFData
      let algorithm =
        SecKeyIsAlgorithmSupported(privateKey, .sign, .ecdsaSignatureMessageX962SHA256)
        ? SecKeyAlgorithm.ecdsaSignatureMessageX962SHA256 : .rsaSignatureMessagePKCS1v15SHA256
      let signature = try #require(SecKeyCreateSignature(privateKey, algorithm, message, nil))
      let publicKey = try #require(SecCertificateCopyKey(leaf))
      #expect(SecKeyVerifySignature(publicKey, algorithm, message, signature, nil))
    }
    #expect(found == file.identities)
  }

  @Test("An imported identity can be added to the keychain, and deleted by its persistent reference")
  func addingIdentity() throws {
    let items = try #require(try PKCS12Case.named("a key with its certificate and its root").open().1)
    let item = try #require(items.first)
    #expect((item[kSecImportItemCertChain as String] as? [SecCertificate])?.count == 2)
    let identity = try #require(item[kSecImportItemIdentity as String])
    let query: [CFString: Any] = [kSecValueRef: identity, kSecReturnPersistentRef: true]
    var reference: CFTypeRef?
    #expect(SecItemAdd(query as CFDictionary, &reference) == errSecSuccess)
    let search: [CFString: Any] = [kSecClass: kSecClassIdentity, kSecReturnPersistentRef: true]
    #expect(SecItemCopyMatching(search as CFDictionary, &reference) == errSecSuccess)
    let deletion: [CFString: Any] = [kSecValuePersistentRef: try #require(reference)]
    #expect(SecItemDelete(deletion as CFDictionary) == errSecSuccess)
    #expect(SecItemCopyMatching(search as CFDictionary, nil) == errSecItemNotFound)
    for kind in [kSecClassCertificate, kSecClassKey] {
      #expect(SecItemCopyMatching([kSecClass: kind] as NSDictionary, nil) == errSecItemNotFound)
    }
  }

  @Test("An imported certificate has a name and email addresses, and is found by each address")
  func names() throws {
    let item = try #require(try PKCS12Case.named("a key with its certificate and its root").open().1?.first)
    let chain = try #require(item[kSecImportItemCertChain as String] as? [SecCertificate])
    var (name, addresses) = (CFString?.none, CFArray?.none)
    #expect(SecCertificateCopyCommonName(chain[0], &name) == errSecSuccess && name as String? == "Anna")
    #expect(SecCertificateCopyEmailAddresses(chain[0], &addresses) == errSecSuccess)
    #expect(Set(addresses as? [String] ?? []) == ["anna@example.org", "a@example.net"])
    #expect(SecCertificateCopyEmailAddresses(chain[1], &addresses) == errSecSuccess && addresses?.count == 0)

    for certificate in chain { #expect(SecItemAdd([kSecValueRef: certificate] as NSDictionary, nil) == errSecSuccess) }
    for (address, status) in [
      ("anna@example.org", errSecSuccess), ("A@EXAMPLE.NET", errSecSuccess), ("b@example.org", errSecItemNotFound),
    ] {
      let query: [CFString: Any] = [
        kSecClass: kSecClassCertificate, kSecMatchEmailAddressIfPresent: address, kSecMatchLimit: kSecMatchLimitAll,
        kSecReturnRef: true,
      ]
      var found: CFTypeRef?
      #expect(SecItemCopyMatching(query as CFDictionary, &found) == status)
      #expect(found as? [SecCertificate] == (status == errSecSuccess ? [chain[0]] : nil), "\(address)")
    }
    let wrong: [CFString: Any] = [kSecClass: kSecClassCertificate, kSecMatchEmailAddressIfPresent: 7]
    #expect(SecItemCopyMatching(wrong as CFDictionary, nil) == errSecParam)
  }

  @Test("A certificate and a key form an identity, and a generated key pair is stored")
  func keyPairs() throws {
    var (publicKey, privateKey) = (SecKey?.none, SecKey?.none)
    let parameters: [CFString: Any] = [
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256,
      kSecPrivateKeyAttrs: [kSecAttrIsPermanent: true, kSecAttrApplicationTag: Data("pair".utf8)] as [CFString: Any],
    ]
    #expect(SecKeyGeneratePair(parameters as CFDictionary, &publicKey, &privateKey) == errSecSuccess)
    let (generatedPublicKey, key) = (try #require(publicKey), try #require(privateKey))
    #expect(SecKeyCopyPublicKey(key) == generatedPublicKey)
    let query: [CFString: Any] = [kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("pair".utf8)]
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
    (publicKey, privateKey) = (nil, nil)
    let wrong: [CFString: Any] = [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeySizeInBits: 3]
    #expect(SecKeyGeneratePair(wrong as CFDictionary, &publicKey, &privateKey) == errSecParam)
    #expect(publicKey == nil && privateKey == nil)

    let item = try #require(try PKCS12Case.named("RSA").open().1?.first)
    let certificate = try #require((item[kSecImportItemCertChain as String] as? [SecCertificate])?.first)
    let identity = try #require(SecIdentityCreate(nil, certificate, key))
    var found: SecCertificate?
    #expect(SecIdentityCopyCertificate(identity, &found) == errSecSuccess && found == certificate)
  }

  @Test("The import of a damaged or truncated file returns no other identity")
  func damage() throws {
    let file = try PKCS12Case.named("without encryption, with a MAC")
    for index in stride(from: 0, to: file.file.count, by: 7) {
      var changed = file.file
      changed[index] ^= 0x41
      for data in [changed, file.file.prefix(index)] {
        let (status, items) = file.open(Data(data))
        #expect([errSecSuccess, errSecAuthFailed, errSecDecode].contains(status), "at \(index)")
        // The MAC does not cover the outer structure of the file, so a change there may remain undetected.
        let identities = (items ?? []).compactMap {
          ($0[kSecImportItemCertChain as String] as? [SecCertificate])?.first
        }
        #expect(
          identities.map { SecCertificateCopyData($0) as Data } == (status == 0 ? [file.identities[0].certificate] : [])
        )
      }
    }
  }

  @Test("The import refuses a MAC with too many iterations")
  func macIterations() throws {
    // A file without a MAC, followed by a MAC of RFC 9579: PBMAC1 with PBKDF2 and HMAC-SHA-256.
    let withoutMAC = try PKCS12Case.named("without a MAC")
    let file = Array(withoutMAC.file)
    try #require(file[0] == 0x30 && file[1] == 0x82)
    func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
      let count = contents.count
      return [tag] + (count < 128 ? [UInt8(count)] : [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]) + contents
    }
    let hmac = element(0x30, [0x06, 0x08, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x09, 0x05, 0x00])
    func mac(iterations: [UInt8]) -> [UInt8] {
      let derivation = element(
        0x30,
        [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C]
          + element(
            0x30, element(0x04, [1, 2, 3, 4, 5, 6, 7, 8]) + element(0x02, iterations) + [0x02, 0x01, 0x20] + hmac))
      let pbmac1 = element(
        0x30, [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0E] + element(0x30, derivation + hmac))
      let digest = element(0x30, pbmac1 + element(0x04, [UInt8](repeating: 0, count: 32)))
      return element(0x30, digest + element(0x04, [1]) + [0x02, 0x01, 0x01])
    }
    // 2,147,483,647 iterations exceed the limit. With 2,048, only the MAC itself is wrong.
    for (iterations, status) in [([0x7F, 0xFF, 0xFF, 0xFF], errSecDecode), ([0x08, 0x00], errSecAuthFailed)]
      as [([UInt8], OSStatus)]
    {
      let data = Data(element(0x30, Array(file.dropFirst(4)) + mac(iterations: iterations)))
      #expect(withoutMAC.open(data).0 == status, "\(iterations)")
    }
  }

  @Test("The import refuses a file of more than 1 MiB and a password that is not a string")
  func limits() throws {
    var items: CFArray?
    let large = Data(repeating: 0x30, count: 1 << 20 + 1)
    #expect(SecPKCS12Import(large as CFData, NSDictionary(), &items) == errSecDecode)
    let options: NSDictionary = [kSecImportExportPassphrase: 12]
    #expect(SecPKCS12Import(large as CFData, options, &items) == errSecParam)
    #expect(items == nil)
  }
}
