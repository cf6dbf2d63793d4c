import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// A key pair of the test vectors, with the results of Python's `cryptography` package.
struct KeyOperations: CustomTestStringConvertible, Sendable {
  /// An input of an algorithm and its output.
  struct Example: Sendable {
    let algorithm: SecKeyAlgorithm
    let input: Data
    let output: Data
    /// The public key of the other party in a key exchange.
    var otherKey = Data()
  }

  let name: String
  let privateKey: SecKey
  let publicKey: SecKey
  let signatures: [Example]
  let ciphertexts: [Example]
  let exchanges: [Example]

  var testDescription: String { name }

  init(_ vector: TestVectors) throws {
    let name = try vector["name"].string
    self.name = name
    let pair = try TestVectors.certificates()["keys"].elements.first { (try? $0["name"].string) == name }
    let key = try #require(pair)
    let type = name.hasPrefix("RSA") ? kSecAttrKeyTypeRSA : kSecAttrKeyTypeECSECPrimeRandom
    privateKey = try Self.key(Data(try key["private_hex"].bytes), type, kSecAttrKeyClassPrivate)
    publicKey = try Self.key(Data(try key["public_hex"].bytes), type, kSecAttrKeyClassPublic)
    signatures = try vector["signatures"].elements.map { try Example($0, "data_hex", "signature_hex") }
    ciphertexts = try vector["ciphertexts"].elements.map { try Example($0, "plaintext_hex", "ciphertext_hex") }
    exchanges = try vector["exchanges"].elements.map {
      try Example($0, "info_hex", "result_hex", otherKey: "other_hex")
    }
  }

  static func key(_ data: Data, _ type: CFString, _ keyClass: CFString) throws -> SecKey {
    let attributes: [CFString: Any] = [kSecAttrKeyType: type, kSecAttrKeyClass: keyClass]
    return try #require(SecKeyCreateWithData(data as CFData, attributes as CFDictionary, nil))
  }

  static let all = (try? TestVectors.keyOperations()["keys"].elements.map(KeyOperations.init)) ?? []
}

extension KeyOperations.Example {
  init(_ vector: TestVectors, _ input: String, _ output: String, otherKey: String? = nil) throws {
    algorithm = SecKeyAlgorithm(rawValue: try vector["algorithm"].string as CFString)
    self.input = Data(try vector[input].bytes)
    self.output = Data(try vector[output].bytes)
    if let otherKey { self.otherKey = Data(try vector[otherKey].bytes) }
  }
}

/// Returns the value of a call, or the status of its error.
private func result<Value>(
  _ call: (UnsafeMutablePointer<Unmanaged<CFError>?>) -> Value?
) -> Result<Value, KeyFailure> {
  var error: Unmanaged<CFError>?
  if let value = call(&error) { return .success(value) }
  return .failure(KeyFailure(status: error.map { OSStatus(CFErrorGetCode($0.takeRetainedValue())) }))
}

private struct KeyFailure: Error, Equatable { let status: OSStatus? }

private func signed(_ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data) -> Result<Data, KeyFailure> {
  result { SecKeyCreateSignature(key, algorithm, data as CFData, $0) as Data? }
}

private func verified(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data, _ signature: Data
) -> Result<Bool, KeyFailure> {
  result { SecKeyVerifySignature(key, algorithm, data as CFData, signature as CFData, $0) ? true : nil }
}

private func encrypted(_ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data) -> Result<Data, KeyFailure> {
  result { SecKeyCreateEncryptedData(key, algorithm, data as CFData, $0) as Data? }
}

private func decrypted(_ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data) -> Result<Data, KeyFailure> {
  result { SecKeyCreateDecryptedData(key, algorithm, data as CFData, $0) as Data? }
}

private func flipped(_ data: Data, _ index: Int) -> Data {
  var bytes = [UInt8](data)
  bytes[index] ^= 1
  return Data(bytes)
}

@Suite("Key operations")
struct KeyOperationTests {
  @Test("The key vectors contain the expected operations")
  func vectors() {
    #expect(KeyOperations.all.map(\.name) == ["RSA 2048", "P-256", "P-384", "P-521"])
    #expect(KeyOperations.all.map(\.signatures.count) == [22, 20, 20, 20])
    #expect(KeyOperations.all.map(\.ciphertexts.count) == [12, 9, 9, 9])
    #expect(KeyOperations.all.map(\.exchanges.count) == [0, 6, 6, 6])
  }

  @Test("Signatures of Python's cryptography package are valid, and changed ones are not", arguments: KeyOperations.all)
  func verifying(key: KeyOperations) {
    for example in key.signatures {
      let name = example.algorithm.rawValue
      #expect(verified(key.publicKey, example.algorithm, example.input, example.output) == .success(true), "\(name)")
      for index in [0, example.output.count / 2, example.output.count - 1] {
        let other = verified(key.publicKey, example.algorithm, example.input, flipped(example.output, index))
        #expect(other == .failure(.init(status: errSecVerifyFailed)), "\(name), byte \(index)")
      }
      let longer = verified(key.publicKey, example.algorithm, example.input, example.output + [0])
      #expect(longer == .failure(.init(status: errSecVerifyFailed)), "\(name), longer")
      let changed = verified(key.publicKey, example.algorithm, flipped(example.input, 9), example.output)
      #expect(changed == .failure(.init(status: errSecVerifyFailed)), "\(name), other data")
    }
  }

  @Test(
    "Signatures are valid, and those of deterministic algorithms equal Python's",
    arguments: KeyOperations.all)
  func signing(key: KeyOperations) throws {
    for example in key.signatures {
      let name = example.algorithm.rawValue as String
      let signature = try signed(key.privateKey, example.algorithm, example.input).get()
      #expect(verified(key.publicKey, example.algorithm, example.input, signature) == .success(true), "\(name)")
      let isRandomized = name.contains("PSS") || name.contains("ECDSA")
      #expect((signature == example.output) != isRandomized, "\(name)")
    }
  }

  @Test(
    "Ciphertexts of Python's cryptography package decrypt, and changed authenticated ones do not",
    arguments: KeyOperations.all)
  func decrypting(key: KeyOperations) {
    for example in key.ciphertexts {
      let name = example.algorithm.rawValue as String
      #expect(decrypted(key.privateKey, example.algorithm, example.output) == .success(example.input), "\(name)")
      guard !name.hasSuffix("raw"), !name.hasSuffix("PKCS1") else { continue }
      for index in [0, example.output.count / 2, example.output.count - 1] {
        let other = decrypted(key.privateKey, example.algorithm, flipped(example.output, index))
        #expect(other == .failure(.init(status: errSecParam)), "\(name), byte \(index)")
      }
      for count in [0, 16, example.output.count - 1] {
        let cut = decrypted(key.privateKey, example.algorithm, example.output.prefix(count))
        #expect(cut == .failure(.init(status: errSecParam)), "\(name), \(count) bytes")
      }
    }
  }

  @Test("A PKCS#1 ciphertext for another key decrypts to other data, the same in each call (SecKeyAdaptors.m)")
  func decryptingWithAnotherKey() throws {
    let rsa = try #require(KeyOperations.all.first)
    let example = try #require(rsa.ciphertexts.first { $0.algorithm == .rsaEncryptionPKCS1 })
    for index in [1, example.output.count / 2, example.output.count - 1] {
      let other = try decrypted(rsa.privateKey, example.algorithm, flipped(example.output, index)).get()
      #expect(other != example.input && other.count <= 256 - 11)
      #expect(try decrypted(rsa.privateKey, example.algorithm, flipped(example.output, index)).get() == other)
    }
    let pair = SecKeyCreateRandomKey(
      [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeySizeInBits: 2048] as NSDictionary, nil)
    let another = try #require(pair)
    for example in rsa.ciphertexts where (example.algorithm.rawValue as String).contains("OAEP") {
      #expect(decrypted(another, example.algorithm, example.output) == .failure(.init(status: errSecParam)))
    }
  }

  @Test(
    "Encrypted data decrypts with the private key, and two ciphertexts of the same data differ",
    arguments: KeyOperations.all)
  func encrypting(key: KeyOperations) throws {
    for example in key.ciphertexts {
      let name = example.algorithm.rawValue as String
      let ciphertext = try encrypted(key.publicKey, example.algorithm, example.input).get()
      #expect(decrypted(key.privateKey, example.algorithm, ciphertext) == .success(example.input), "\(name)")
      #expect(ciphertext.count == example.output.count, "\(name)")
      let again = try encrypted(key.publicKey, example.algorithm, example.input).get()
      #expect((ciphertext == again) == name.hasSuffix("raw"), "\(name)")
    }
  }

  @Test("A key exchange computes the same secret as Python's cryptography package", arguments: KeyOperations.all)
  func exchanging(key: KeyOperations) throws {
    for example in key.exchanges {
      let other = try KeyOperations.key(example.otherKey, kSecAttrKeyTypeEC, kSecAttrKeyClassPublic)
      let parameters: [String: Any] = [
        SecKeyKeyExchangeParameter.requestedSize.rawValue as String: example.output.count,
        SecKeyKeyExchangeParameter.sharedInfo.rawValue as String: example.input,
      ]
      for name in ["ECDH", "ECDHC"] {
        let parts = (example.algorithm.rawValue as String).split(separator: ":")
        let algorithm = (Array(parts.prefix(2)) + [Substring(name)] + parts.dropFirst(3)).joined(separator: ":")
        let found = result {
          SecKeyCopyKeyExchangeResult(
            key.privateKey, SecKeyAlgorithm(rawValue: algorithm as CFString), other, parameters as CFDictionary, $0)
            as Data?
        }
        #expect(found == .success(example.output), "\(algorithm)")
      }
    }
  }

  @Test("A key supports only the algorithms that its class, type, and size allow")
  func supported() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.last)
    let cases: [(SecKeyAlgorithm, SecKeyOperationType, [Bool])] = [
      (.rsaSignatureMessagePKCS1v15SHA256, .sign, [true, false, false, false]),
      (.rsaSignatureMessagePSSSHA512, .verify, [false, true, false, false]),
      (.rsaEncryptionOAEPSHA256AESGCM, .decrypt, [true, false, false, false]),
      (.ecdsaSignatureMessageX962SHA256, .sign, [false, false, true, false]),
      (.ecdsaSignatureDigestRFC4754, .verify, [false, false, false, true]),
      (.eciesEncryptionCofactorVariableIVX963SHA256AESGCM, .encrypt, [false, false, false, true]),
      (.ecdhKeyExchangeStandard, .keyExchange, [false, false, true, false]),
      (.ecdhKeyExchangeStandard, .sign, [false, false, false, false]),
      (SecKeyAlgorithm(rawValue: "algid:sign:RSA:message-PKCS1v15:MD5"), .sign, [false, false, false, false]),
      (SecKeyAlgorithm(rawValue: "algid:sign:RSA:message-PSS:SHA1:SHA256:32"), .sign, [false, false, false, false]),
      (SecKeyAlgorithm(rawValue: ""), .encrypt, [false, false, false, false]),
    ]
    for (algorithm, operation, expected) in cases {
      let keys = [rsa.privateKey, rsa.publicKey, curve.privateKey, curve.publicKey]
      let found = keys.map { SecKeyIsAlgorithmSupported($0, operation, algorithm) }
      #expect(found == expected, "\(algorithm.rawValue) \(operation)")
    }
    // Two SHA-512 digests and two bytes are 130 bytes, but a 1,024-bit key has 128.
    let small = try #require(
      try TestVectors.certificates()["keys"].elements.first { try $0["name"].string == "RSA 1024" })
    let key = try KeyOperations.key(Data(try small["public_hex"].bytes), kSecAttrKeyTypeRSA, kSecAttrKeyClassPublic)
    #expect(!SecKeyIsAlgorithmSupported(key, .verify, .rsaSignatureMessagePSSSHA512))
    #expect(!SecKeyIsAlgorithmSupported(key, .encrypt, .rsaEncryptionOAEPSHA512))
    #expect(SecKeyIsAlgorithmSupported(key, .encrypt, .rsaEncryptionOAEPSHA256))
  }

  @Test("A wrong key class, digest length, data length, or missing size is errSecParam")
  func refused() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.dropFirst().first)
    let parameter = KeyFailure(status: errSecParam)
    let data = Data(repeating: 7, count: 31)
    #expect(signed(rsa.publicKey, .rsaSignatureMessagePKCS1v15SHA256, data) == .failure(parameter))
    #expect(signed(rsa.privateKey, .ecdsaSignatureMessageX962SHA256, data) == .failure(parameter))
    #expect(signed(rsa.privateKey, .rsaSignatureDigestPKCS1v15SHA256, data) == .failure(parameter))
    #expect(signed(curve.privateKey, .ecdsaSignatureDigestX962SHA256, data) == .failure(parameter))
    #expect(signed(rsa.privateKey, .rsaSignatureRaw, Data(repeating: 7, count: 257)) == .failure(parameter))
    #expect(encrypted(rsa.publicKey, .rsaEncryptionOAEPSHA256, Data(repeating: 7, count: 191)) == .failure(parameter))
    #expect(encrypted(rsa.publicKey, .rsaEncryptionPKCS1, Data(repeating: 7, count: 246)) == .failure(parameter))
    let other = try #require(KeyOperations.all.last)
    for (key, algorithm) in [
      (curve.publicKey, SecKeyAlgorithm.ecdhKeyExchangeStandardX963SHA256), (other.publicKey, .ecdhKeyExchangeStandard),
    ] {
      let found = result {
        SecKeyCopyKeyExchangeResult(curve.privateKey, algorithm, key, [:] as CFDictionary, $0) as Data?
      }
      #expect(found == .failure(parameter))
    }
  }
}
