import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// A PKCS#12 file of the test vectors.
struct PKCS12Case: CustomTestStringConvertible, Sendable {
  struct Identity: Equatable, Sendable {
    let certificate: Data
    /// The SHA-1 digest of the public key, as in the key's application label.
    let keyDigest: Data
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
        certificate: Data(try $0["certificate"].bytes), keyDigest: Data(try $0["key"].bytes),
        label: try? $0["label"].string)
    }
  }

  static let all = (try? TestVectors.trust()["files"].elements.map(PKCS12Case.init)) ?? []

  static func named(_ name: String) throws -> PKCS12Case { try #require(all.first { $0.name == name }) }

  /// Imports the file with its password.
  ///
  /// - Parameter otherData: The data to import instead of the file, with the same password.
  func open(_ otherData: Data? = nil) -> (status: OSStatus, items: [[String: Any]]?) {
    var items: CFArray?
    let options = password.map { [kSecImportExportPassphrase: $0] as NSDictionary } ?? NSDictionary()
    let status = SecPKCS12Import((otherData ?? file) as CFData, options, &items)
    return (status, items as? [[String: Any]])
  }
}

@Suite("PKCS#12 import", .onAPhone)
struct PKCS12Tests {
  @Test("The PKCS#12 vectors are complete")
  func vectors() { #expect(PKCS12Case.all.count == 19) }

  @Test(
    "The import returns the identities with the correct password, and otherwise a status", arguments: PKCS12Case.all)
  func opening(_ example: PKCS12Case) throws {
    let (status, items) = example.open()
    #expect(Int(status) == example.status)
    #expect((items == nil) == (example.status != 0), "a failed import returns no items")
    #expect(try (items ?? []).map(checkedIdentity) == example.identities)
  }

  /// Checks that the parts of an imported item belong together, and returns its identity.
  private func checkedIdentity(of item: [String: Any]) throws -> PKCS12Case.Identity {
    let identity = try #require(item[kSecImportItemIdentity as String] as? SecIdentity)
    var copiedCertificate: SecCertificate?
    var copiedKey: SecKey?
    #expect(SecIdentityCopyCertificate(identity, &copiedCertificate) == errSecSuccess)
    #expect(SecIdentityCopyPrivateKey(identity, &copiedKey) == errSecSuccess)
    let certificate = try #require(copiedCertificate)
    let privateKey = try #require(copiedKey)

    let chain = try #require(item[kSecImportItemCertChain as String] as? [SecCertificate])
    #expect(chain.first == certificate)
    #expect(item[kSecImportItemTrust as String] is SecTrust)
    try checkSignature(of: privateKey, with: certificate)

    let attributes = try #require(SecKeyCopyAttributes(privateKey) as? [String: Any])
    return PKCS12Case.Identity(
      certificate: SecCertificateCopyData(certificate) as Data,
      keyDigest: try #require(attributes[kSecAttrApplicationLabel as String] as? Data),
      label: item[kSecImportItemLabel as String] as? String)
  }

  /// Checks that the certificate verifies a signature of the key.
  private func checkSignature(of privateKey: SecKey, with certificate: SecCertificate) throws {
    let message = Data("signed".utf8) as CFData
    let isEllipticCurveKey = SecKeyIsAlgorithmSupported(privateKey, .sign, .ecdsaSignatureMessageX962SHA256)
    let algorithm: SecKeyAlgorithm =
      isEllipticCurveKey ? .ecdsaSignatureMessageX962SHA256 : .rsaSignatureMessagePKCS1v15SHA256
    let signature = try #require(SecKeyCreateSignature(privateKey, algorithm, message, nil))
    let publicKey = try #require(SecCertificateCopyKey(certificate))
    #expect(SecKeyVerifySignature(publicKey, algorithm, message, signature, nil))
  }

  @Test("An imported identity can be added to the keychain, and deleted by its persistent reference")
  func addingIdentity() throws {
    let item = try #require(try PKCS12Case.named("a key with its certificate and its root").open().items?.first)
    #expect((item[kSecImportItemCertChain as String] as? [SecCertificate])?.count == 2)
    let identity = try #require(item[kSecImportItemIdentity as String])
    let newItem: [CFString: Any] = [kSecValueRef: identity, kSecReturnPersistentRef: true]
    var reference: CFTypeRef?
    #expect(SecItemAdd(newItem as CFDictionary, &reference) == errSecSuccess)
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
    let item = try #require(try PKCS12Case.named("a key with its certificate and its root").open().items?.first)
    let chain = try #require(item[kSecImportItemCertChain as String] as? [SecCertificate])
    var name: CFString?
    var addresses: CFArray?
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
      var result: CFTypeRef?
      #expect(SecItemCopyMatching(query as CFDictionary, &result) == status)
      #expect(result as? [SecCertificate] == (status == errSecSuccess ? [chain[0]] : nil), "\(address)")
    }
    let queryWithNumber: [CFString: Any] = [kSecClass: kSecClassCertificate, kSecMatchEmailAddressIfPresent: 7]
    #expect(SecItemCopyMatching(queryWithNumber as CFDictionary, nil) == errSecParam)
  }

  @Test("A generated key pair is stored if it is permanent")
  func keyPairs() throws {
    var publicKey: SecKey?
    var privateKey: SecKey?
    let parameters: [CFString: Any] = [
      kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256,
      kSecPrivateKeyAttrs: [kSecAttrIsPermanent: true, kSecAttrApplicationTag: Data("pair".utf8)] as [CFString: Any],
    ]
    #expect(SecKeyGeneratePair(parameters as CFDictionary, &publicKey, &privateKey) == errSecSuccess)
    #expect(try SecKeyCopyPublicKey(#require(privateKey)) == publicKey)
    let query: [CFString: Any] = [kSecClass: kSecClassKey, kSecAttrApplicationTag: Data("pair".utf8)]
    #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
  }

  @Test("Generating a key pair of an impossible size fails with errSecParam and returns no key")
  func impossibleKeyPair() {
    var publicKey: SecKey?
    var privateKey: SecKey?
    let parameters: [CFString: Any] = [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeySizeInBits: 3]
    #expect(SecKeyGeneratePair(parameters as CFDictionary, &publicKey, &privateKey) == errSecParam)
    #expect(publicKey == nil && privateKey == nil)
  }

  @Test("An identity can be created from a certificate and a key that do not belong together")
  func createdIdentity() throws {
    let item = try #require(try PKCS12Case.named("RSA").open().items?.first)
    let certificate = try #require((item[kSecImportItemCertChain as String] as? [SecCertificate])?.first)
    let parameters: NSDictionary = [kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256]
    let key = try #require(SecKeyCreateRandomKey(parameters, nil))
    let identity = try #require(SecIdentityCreate(nil, certificate, key))
    var copiedCertificate: SecCertificate?
    #expect(SecIdentityCopyCertificate(identity, &copiedCertificate) == errSecSuccess)
    #expect(copiedCertificate == certificate)
  }

  @Test("The import of a damaged or truncated file returns the original identity or none")
  func damage() throws {
    let example = try PKCS12Case.named("without encryption, with a MAC")
    // Only every seventh byte, because an import takes time.
    for index in stride(from: 0, to: example.file.count, by: 7) {
      var changedFile = example.file
      changedFile[index] ^= 0x41
      for data in [changedFile, example.file.prefix(index)] {
        let (status, items) = example.open(Data(data))
        #expect([errSecSuccess, errSecAuthFailed, errSecDecode].contains(status), "at \(index)")
        // The MAC does not cover the outer structure of the file, so a change there may remain undetected.
        let certificates = (items ?? []).compactMap {
          ($0[kSecImportItemCertChain as String] as? [SecCertificate])?.first
        }
        let expectedCertificates = status == errSecSuccess ? [example.identities[0].certificate] : []
        #expect(certificates.map { SecCertificateCopyData($0) as Data } == expectedCertificates)
      }
    }
  }

  @Test("The import refuses a MAC with too many iterations")
  func macIterations() throws {
    let withoutMAC = try PKCS12Case.named("without a MAC")
    // The header of the outer SEQUENCE: the tag, and a length of two bytes.
    try #require(withoutMAC.file.prefix(2) == Data([0x30, 0x82]))
    let contents = Array(withoutMAC.file.dropFirst(4))
    // 2,147,483,647 iterations exceed the limit. With 2,048, only the MAC itself is wrong.
    let cases: [(iterations: [UInt8], status: OSStatus)] = [
      ([0x7F, 0xFF, 0xFF, 0xFF], errSecDecode), ([0x08, 0x00], errSecAuthFailed),
    ]
    for (iterations, status) in cases {
      let file = Data(sequence(contents + macData(iterations: iterations)))
      #expect(withoutMAC.open(file).status == status, "\(iterations)")
    }
  }

  /// Returns the MAC of a file: PBMAC1 with PBKDF2 and HMAC-SHA-256, and a MAC of zeros. Source: RFC 9579.
  ///
  /// The tags are 0x02 for an INTEGER, 0x04 for an OCTET STRING, 0x05 for NULL, and 0x06 for an OBJECT IDENTIFIER.
  private func macData(iterations: [UInt8]) -> [UInt8] {
    let hmacSHA256 = sequence([0x06, 0x08, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x09, 0x05, 0x00])
    let pbkdf2ID: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C]
    let pbmac1ID: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0E]
    let salt = element(0x04, [1, 2, 3, 4, 5, 6, 7, 8])
    let keyByteCount: [UInt8] = [0x02, 0x01, 0x20]
    let derivation = sequence(
      pbkdf2ID + sequence(salt + element(0x02, iterations) + keyByteCount + hmacSHA256))
    let pbmac1 = sequence(pbmac1ID + sequence(derivation + hmacSHA256))
    let digestInfo = sequence(pbmac1 + element(0x04, [UInt8](repeating: 0, count: 32)))
    // The salt and the iterations of the file's own MAC are unused.
    return sequence(digestInfo + element(0x04, [1]) + element(0x02, [1]))
  }

  private func sequence(_ contents: [UInt8]) -> [UInt8] { element(0x30, contents) }

  /// Encodes an ASN.1 element of at most 65,535 bytes.
  private func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    let length = count < 128 ? [UInt8(count)] : [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
    return [tag] + length + contents
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
