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
    let key = try TestVectors.certificates()["keys"].element(named: name)
    let type = name.hasPrefix("RSA") ? kSecAttrKeyTypeRSA : kSecAttrKeyTypeECSECPrimeRandom
    privateKey = try Self.key(Data(try key["private_hex"].bytes), type, kSecAttrKeyClassPrivate)
    publicKey = try Self.key(Data(try key["public_hex"].bytes), type, kSecAttrKeyClassPublic)
    signatures = try vector["signatures"].elements.map { try Example($0, input: "data_hex", output: "signature_hex") }
    ciphertexts = try vector["ciphertexts"].elements.map {
      try Example($0, input: "plaintext_hex", output: "ciphertext_hex")
    }
    exchanges = try vector["exchanges"].elements.map {
      try Example($0, input: "info_hex", output: "result_hex", otherKey: "other_hex")
    }
  }

  static func key(_ data: Data, _ type: CFString, _ keyClass: CFString) throws -> SecKey {
    let attributes: [CFString: Any] = [kSecAttrKeyType: type, kSecAttrKeyClass: keyClass]
    return try #require(SecKeyCreateWithData(data as CFData, attributes as CFDictionary, nil))
  }

  static let all = (try? TestVectors.keyOperations()["keys"].elements.map(KeyOperations.init)) ?? []
}

extension KeyOperations.Example {
  /// Creates an example from the members of a vector with these names.
  init(_ vector: TestVectors, input: String, output: String, otherKey: String? = nil) throws {
    algorithm = SecKeyAlgorithm(rawValue: try vector["algorithm"].string as CFString)
    self.input = Data(try vector[input].bytes)
    self.output = Data(try vector[output].bytes)
    if let otherKey { self.otherKey = Data(try vector[otherKey].bytes) }
  }
}

/// Makes a call, and returns its value or the status of its error.
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
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data, signature: Data
) -> Result<Bool, KeyFailure> {
  result { SecKeyVerifySignature(key, algorithm, data as CFData, signature as CFData, $0) ? true : nil }
}

private func encrypted(_ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data) -> Result<Data, KeyFailure> {
  result { SecKeyCreateEncryptedData(key, algorithm, data as CFData, $0) as Data? }
}

private func decrypted(_ key: SecKey, _ algorithm: SecKeyAlgorithm, _ data: Data) -> Result<Data, KeyFailure> {
  result { SecKeyCreateDecryptedData(key, algorithm, data as CFData, $0) as Data? }
}

/// Returns the data with a flipped bit in one byte.
private func flipped(_ data: Data, at index: Int) -> Data { Data([UInt8](data).flipping(bit: 8 * index)) }

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
      let original = verified(key.publicKey, example.algorithm, example.input, signature: example.output)
      #expect(original == .success(true), "\(name)")
      for index in [0, example.output.count / 2, example.output.count - 1] {
        let changed = verified(
          key.publicKey, example.algorithm, example.input, signature: flipped(example.output, at: index))
        #expect(changed == .failure(.init(status: errSecVerifyFailed)), "\(name), byte \(index)")
      }
      let longer = verified(key.publicKey, example.algorithm, example.input, signature: example.output + [0])
      #expect(longer == .failure(.init(status: errSecVerifyFailed)), "\(name), longer")
      let otherInput = verified(
        key.publicKey, example.algorithm, flipped(example.input, at: 9), signature: example.output)
      #expect(otherInput == .failure(.init(status: errSecVerifyFailed)), "\(name), other data")
    }
  }

  @Test(
    "Signatures are valid, and the signatures of deterministic algorithms equal Python's",
    arguments: KeyOperations.all)
  func signing(key: KeyOperations) throws {
    for example in key.signatures {
      let name = example.algorithm.rawValue as String
      let signature = try signed(key.privateKey, example.algorithm, example.input).get()
      let verification = verified(key.publicKey, example.algorithm, example.input, signature: signature)
      #expect(verification == .success(true), "\(name)")
      let isRandomized = name.contains("PSS") || name.contains("ECDSA")
      #expect((signature == example.output) != isRandomized, "\(name)")
    }
  }

  @Test(
    "Python's ciphertexts decrypt, and changed ciphertexts of authenticated algorithms do not",
    arguments: KeyOperations.all)
  func decrypting(key: KeyOperations) {
    for example in key.ciphertexts {
      let name = example.algorithm.rawValue as String
      #expect(decrypted(key.privateKey, example.algorithm, example.output) == .success(example.input), "\(name)")
      // Raw RSA and PKCS#1 do not authenticate the data.
      guard !name.hasSuffix("raw"), !name.hasSuffix("PKCS1") else { continue }
      for index in [0, example.output.count / 2, example.output.count - 1] {
        let changed = decrypted(key.privateKey, example.algorithm, flipped(example.output, at: index))
        #expect(changed == .failure(.init(status: errSecParam)), "\(name), byte \(index)")
      }
      for count in [0, 16, example.output.count - 1] {
        let truncated = decrypted(key.privateKey, example.algorithm, example.output.prefix(count))
        #expect(truncated == .failure(.init(status: errSecParam)), "\(name), \(count) bytes")
      }
    }
  }

  @Test("A changed PKCS#1 ciphertext decrypts to unrelated data, the same in each call (SecKeyAdaptors.m)")
  func decryptingChangedCiphertext() throws {
    let rsa = try #require(KeyOperations.all.first)
    let example = try #require(rsa.ciphertexts.first { $0.algorithm == .rsaEncryptionPKCS1 })
    // PKCS#1 pads with at least 11 bytes.
    let maximumByteCount = 256 - 11
    for index in [1, example.output.count / 2, example.output.count - 1] {
      let changed = flipped(example.output, at: index)
      let plaintext = try decrypted(rsa.privateKey, example.algorithm, changed).get()
      #expect(plaintext != example.input && plaintext.count <= maximumByteCount)
      #expect(try decrypted(rsa.privateKey, example.algorithm, changed).get() == plaintext)
    }
  }

  @Test("An OAEP ciphertext for another key is errSecParam")
  func decryptingWithAnotherKey() throws {
    let rsa = try #require(KeyOperations.all.first)
    let parameters: NSDictionary = [kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeySizeInBits: 2048]
    let otherKey = try #require(SecKeyCreateRandomKey(parameters, nil))
    for example in rsa.ciphertexts where (example.algorithm.rawValue as String).contains("OAEP") {
      #expect(decrypted(otherKey, example.algorithm, example.output) == .failure(.init(status: errSecParam)))
    }
  }

  @Test(
    "Encrypted data decrypts with the private key, and two ciphertexts of the same data differ except with raw RSA",
    arguments: KeyOperations.all)
  func encrypting(key: KeyOperations) throws {
    for example in key.ciphertexts {
      let name = example.algorithm.rawValue as String
      let ciphertext = try encrypted(key.publicKey, example.algorithm, example.input).get()
      #expect(decrypted(key.privateKey, example.algorithm, ciphertext) == .success(example.input), "\(name)")
      #expect(ciphertext.count == example.output.count, "\(name)")
      let secondCiphertext = try encrypted(key.publicKey, example.algorithm, example.input).get()
      #expect((ciphertext == secondCiphertext) == name.hasSuffix("raw"), "\(name)")
    }
  }

  /// Replaces the kind of exchange, the third part, in a name like `algid:keyexchange:ECDH:SHA256`.
  private func algorithm(_ algorithm: SecKeyAlgorithm, exchange: String) -> SecKeyAlgorithm {
    var parts = (algorithm.rawValue as String).split(separator: ":").map(String.init)
    parts[2] = exchange
    return SecKeyAlgorithm(rawValue: parts.joined(separator: ":") as CFString)
  }

  @Test("A key exchange computes the same secret as Python's cryptography package", arguments: KeyOperations.all)
  func exchanging(key: KeyOperations) throws {
    for example in key.exchanges {
      let otherKey = try KeyOperations.key(example.otherKey, kSecAttrKeyTypeEC, kSecAttrKeyClassPublic)
      let parameters: [String: Any] = [
        SecKeyKeyExchangeParameter.requestedSize.rawValue as String: example.output.count,
        SecKeyKeyExchangeParameter.sharedInfo.rawValue as String: example.input,
      ]
      for exchange in ["ECDH", "ECDHC"] {
        let algorithm = algorithm(example.algorithm, exchange: exchange)
        let secret = result {
          SecKeyCopyKeyExchangeResult(key.privateKey, algorithm, otherKey, parameters as CFDictionary, $0) as Data?
        }
        #expect(secret == .success(example.output), "\(algorithm.rawValue)")
      }
    }
  }

  @Test("A key supports only the algorithms that its class, type, and size allow")
  func supported() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.last)
    let keys = [rsa.privateKey, rsa.publicKey, curve.privateKey, curve.publicKey]
    // `isSupported` has a value for each key: RSA private, RSA public, curve private, curve public.
    let cases: [(algorithm: SecKeyAlgorithm, operation: SecKeyOperationType, isSupported: [Bool])] = [
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
    for (algorithm, operation, isSupported) in cases {
      let results = keys.map { SecKeyIsAlgorithmSupported($0, operation, algorithm) }
      #expect(results == isSupported, "\(algorithm.rawValue) \(operation)")
    }
  }

  @Test("A 1,024-bit RSA key is too small for algorithms with SHA-512")
  func smallKey() throws {
    let vector = try TestVectors.certificates()["keys"].element(named: "RSA 1024")
    let key = try KeyOperations.key(Data(try vector["public_hex"].bytes), kSecAttrKeyTypeRSA, kSecAttrKeyClassPublic)
    // Two SHA-512 digests and two bytes are 130 bytes, but the key has 128.
    #expect(!SecKeyIsAlgorithmSupported(key, .verify, .rsaSignatureMessagePSSSHA512))
    #expect(!SecKeyIsAlgorithmSupported(key, .encrypt, .rsaEncryptionOAEPSHA512))
    #expect(SecKeyIsAlgorithmSupported(key, .encrypt, .rsaEncryptionOAEPSHA256))
  }

  private static let parameterFailure = KeyFailure(status: errSecParam)

  private func bytes(_ count: Int) -> Data { Data(repeating: 7, count: count) }

  @Test("Signing with a wrong key class or type, or data of a wrong length, is errSecParam")
  func refusedSignatures() throws {
    let rsa = try #require(KeyOperations.all.first)
    let curve = try #require(KeyOperations.all.dropFirst().first)
    let cases: [(key: SecKey, algorithm: SecKeyAlgorithm, data: Data)] = [
      (rsa.publicKey, .rsaSignatureMessagePKCS1v15SHA256, bytes(31)),
      (rsa.privateKey, .ecdsaSignatureMessageX962SHA256, bytes(31)),
      // A SHA-256 digest has 32 bytes.
      (rsa.privateKey, .rsaSignatureDigestPKCS1v15SHA256, bytes(31)),
      (curve.privateKey, .ecdsaSignatureDigestX962SHA256, bytes(31)),
      // The key has 256 bytes.
      (rsa.privateKey, .rsaSignatureRaw, bytes(257)),
    ]
    for (key, algorithm, data) in cases {
      #expect(signed(key, algorithm, data) == .failure(Self.parameterFailure), "\(algorithm.rawValue)")
    }
  }

  @Test("Encrypting more data than the padding of an RSA key leaves room for is errSecParam")
  func refusedEncryption() throws {
    let rsa = try #require(KeyOperations.all.first)
    // OAEP with SHA-256 needs 66 of the key's 256 bytes, PKCS#1 needs 11.
    #expect(encrypted(rsa.publicKey, .rsaEncryptionOAEPSHA256, bytes(191)) == .failure(Self.parameterFailure))
    #expect(encrypted(rsa.publicKey, .rsaEncryptionPKCS1, bytes(246)) == .failure(Self.parameterFailure))
  }

  @Test("A key exchange without the requested size, or with a key on a different curve, is errSecParam")
  func refusedExchanges() throws {
    let curve = try #require(KeyOperations.all.dropFirst().first)
    let otherCurve = try #require(KeyOperations.all.last)
    let cases: [(key: SecKey, algorithm: SecKeyAlgorithm)] = [
      (curve.publicKey, .ecdhKeyExchangeStandardX963SHA256), (otherCurve.publicKey, .ecdhKeyExchangeStandard),
    ]
    for (key, algorithm) in cases {
      let secret = result {
        SecKeyCopyKeyExchangeResult(curve.privateKey, algorithm, key, [:] as CFDictionary, $0) as Data?
      }
      #expect(secret == .failure(Self.parameterFailure), "\(algorithm.rawValue)")
    }
  }
}
