import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

/// A key of the vectors: made by the `openssl` command, described by Python's `cryptography` and `hashlib`.
struct KeyVector: CustomTestStringConvertible, Sendable {
  let name: String
  let type: Int64
  let size: Int
  let publicKey: [UInt8]
  let privateKey: [UInt8]
  let label: [UInt8]
  /// Files by the name of their form.
  let privateForms: [String: [UInt8]]
  let publicForms: [String: [UInt8]]

  var testDescription: String { name }

  init(_ vector: TestVectors) throws {
    name = try vector["name"].string
    type = Int64(try vector["type"].integer)
    size = try vector["size"].integer
    publicKey = try vector["public_hex"].bytes
    privateKey = try vector["private_hex"].bytes
    label = try vector["label_hex"].bytes
    privateForms = try vector["private"].members.mapValues { try $0.base64Bytes }
    publicForms = try vector["public"].members.mapValues { try $0.base64Bytes }
  }

  static var all: [KeyVector] {
    get throws { try TestVectors.certificates()["keys"].elements.map(KeyVector.init) }
  }

  static func named(_ name: String) throws -> KeyVector { try #require(try all.first { $0.name == name }) }
}

extension KeyMaterial {
  init(_ file: [UInt8]) throws { try self.init(parsing: SensitiveBytes(copying: file)) }
}

@Suite("Reading keys that openssl wrote")
struct CertificateKeyTests {
  @Test("every form of a private key becomes the same stored bytes", arguments: try KeyVector.all)
  func privateForms(_ vector: KeyVector) throws {
    #expect(vector.privateForms.count >= 4)
    for (form, file) in vector.privateForms {
      let key = try KeyMaterial(file)
      #expect(key.half == .privateKey, "\(form)")
      #expect(key.externalRepresentation.revealed == vector.privateKey, "\(form)")
      #expect(key.publicKey == vector.publicKey, "\(form)")
      #expect(key.applicationLabel == vector.label, "\(form)")
      #expect(key.sizeInBits == vector.size, "\(form)")
      #expect(key.algorithm.keyType.rawValue == vector.type, "\(form)")
    }
  }

  @Test("every form of a public key becomes the same stored bytes", arguments: try KeyVector.all)
  func publicForms(_ vector: KeyVector) throws {
    #expect(vector.publicForms.count >= 4)
    for (form, file) in vector.publicForms {
      let key = try KeyMaterial(file)
      #expect(key.half == .publicKey, "\(form)")
      #expect(key.externalRepresentation.revealed == vector.publicKey, "\(form)")
      #expect(key.applicationLabel == vector.label, "\(form)")
      #expect(key.sizeInBits == vector.size, "\(form)")
    }
  }

  @Test("what the keychain holds is read back, and its public half is the public key", arguments: try KeyVector.all)
  func storedForm(_ vector: KeyVector) throws {
    let type = try #require(KeyMaterial.KeyType(rawValue: vector.type))
    let pair = try vector.privateKey.withRawBytes {
      try KeyMaterial(externalRepresentation: $0, keyType: type, half: .privateKey)
    }
    #expect(pair.publicKey == vector.publicKey)
    let publicHalf = try pair.publicHalf
    #expect(publicHalf.half == .publicKey)
    #expect(publicHalf.externalRepresentation.revealed == vector.publicKey)
    #expect(publicHalf.applicationLabel == vector.label)
    let alone = try vector.publicKey.withRawBytes {
      try KeyMaterial(externalRepresentation: $0, keyType: type, half: .publicKey)
    }
    #expect(alone.externalRepresentation.revealed == vector.publicKey)
  }

  @Test("a key on a curve is not stored as RSA, nor the other way round, nor as the other half")
  func wrongKind() throws {
    let curve = try KeyVector.named("P-256")
    let rsa = try KeyVector.named("RSA 2048")
    func refused(_ bytes: [UInt8], _ type: KeyMaterial.KeyType, _ half: KeyMaterial.Half) {
      #expect(throws: MaterialError.self) {
        try bytes.withRawBytes { try KeyMaterial(externalRepresentation: $0, keyType: type, half: half) }
      }
    }
    refused(curve.privateKey, .rsa, .privateKey)
    refused(curve.publicKey, .rsa, .publicKey)
    refused(curve.publicKey, .ellipticCurve, .privateKey)
    refused(rsa.privateKey, .ellipticCurve, .privateKey)
    refused(rsa.privateKey, .rsa, .publicKey)
    refused(rsa.publicKey, .rsa, .privateKey)
  }

  @Test("97 bytes are a private key of P-256 or a public one of P-384, as their point says")
  func sameLength() throws {
    let small = try KeyMaterial(KeyVector.named("P-256").privateKey)
    #expect(small.half == .privateKey && small.algorithm == .ellipticCurve(.p256))
    let large = try KeyMaterial(KeyVector.named("P-384").publicKey)
    #expect(large.half == .publicKey && large.algorithm == .ellipticCurve(.p384))
  }

  @Test("a key is found beside certificates, blanks, Windows line ends and words before the block")
  func surroundings() throws {
    let vector = try KeyVector.named("P-256")
    let pem = String(decoding: try #require(vector.privateForms["PKCS#8 PEM"]), as: UTF8.self)
    let certificate = try CertificateVector.all[0].pem
    let file = "Bag Attributes: none\r\n" + certificate + "\n" + pem.replacing("\n", with: "  \r\n") + "\n\n"
    #expect(try KeyMaterial(Array(file.utf8)).applicationLabel == vector.label)
  }

  @Test("a private number with its leading zeros left out is stored with them")
  func shortNumber() throws {
    // The number 1 of P-256 as SEC 1 with one byte: its public key is the base point (SEC 2, 2.4.2).
    let file = try [UInt8](hex: "30 12 020101 040101 a00a 06082a8648ce3d030107")
    let key = try KeyMaterial(file)
    let generator = try [UInt8](
      hex: """
        04 6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296
        4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5
        """)
    #expect(key.publicKey == generator)
    #expect(key.externalRepresentation.revealed == generator + [UInt8](repeating: 0, count: 31) + [1])
  }
}

@Suite("Files that are no key a keychain takes")
struct CertificateKeyRefusalTests {
  struct Refused: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let code: String
    let file: [UInt8]

    static var all: [Refused] {
      get throws {
        try TestVectors.certificates()["refused"].elements.map {
          Refused(testDescription: try $0["name"].string, code: try $0["code"].string, file: try $0["file"].base64Bytes)
        }
      }
    }
  }

  @Test("each is refused for what it is", arguments: try Refused.all)
  func refused(_ refused: Refused) throws {
    let error = try #require(throws: MaterialError.self) { try KeyMaterial(refused.file) }
    #expect(error.code.rawValue == refused.code, "\(error)")
  }

  @Test("a file that ends early is refused at every length, in every form", arguments: try KeyVector.all)
  func truncated(_ vector: KeyVector) throws {
    for (form, file) in vector.privateForms.merging(vector.publicForms, uniquingKeysWith: { left, _ in left }) {
      // A text may lose its last line end.
      let isText = form.contains("PEM")
      let lengths = isText ? Array(stride(from: 0, to: file.count - 1, by: 7)) : Array(0..<file.count)
      for length in lengths {
        // The first part of a private key is a public one, where nothing else says that it has ended.
        let isPublicKey = form == "raw" && length == vector.publicKey.count
        if isPublicKey { continue }
        #expect(throws: MaterialError.self, "\(form), \(length) bytes") { try KeyMaterial(Array(file[..<length])) }
      }
    }
  }

  @Test("no changed bit makes the program fail, and none makes another private key of it")
  func flippedBits() throws {
    var generator = SeededRandom(seed: 11)
    for name in ["RSA 1024", "P-256", "P-521"] {
      let vector = try KeyVector.named(name)
      for form in ["PKCS#8 DER", "PKCS#1 DER", "SEC 1 DER", "raw"] {
        guard let file = vector.privateForms[form] else { continue }
        for bit in (0..<(file.count * 8)).shuffled(using: &generator).prefix(400) {
          guard let key = try? KeyMaterial(file.flipping(bit: bit)) else { continue }
          #expect(key.externalRepresentation.revealed == vector.privateKey, "\(name), \(form), bit \(bit)")
        }
      }
    }
  }

  @Test("bytes after a key are refused")
  func trailingBytes() throws {
    for vector in try KeyVector.all {
      for (form, file) in vector.privateForms.merging(vector.publicForms, uniquingKeysWith: { left, _ in left })
      where !form.contains("PEM") {
        #expect(throws: MaterialError.self, "\(vector.name), \(form)") { try KeyMaterial(file + [0]) }
      }
    }
  }

  /// An RSAPublicKey whose modulus is all ones, which is odd.
  private func publicKey(modulusBytes: Int) -> [UInt8] {
    let modulus = ASN1Encoding.element(.integer, [0] + [UInt8](repeating: 0xFF, count: modulusBytes))
    return ASN1Encoding.element(.sequence, modulus + [0x02, 0x03, 0x01, 0x00, 0x01])
  }

  @Test("RSA keys from 512 to 16,384 bits are taken, smaller and larger ones are not")
  func modulusLimits() throws {
    #expect(try KeyMaterial(publicKey(modulusBytes: 64)).sizeInBits == 512)
    #expect(try KeyMaterial(publicKey(modulusBytes: 2048)).sizeInBits == 16_384)
    for size in [63, 2049] {
      let error = #expect(throws: MaterialError.self) { try KeyMaterial(publicKey(modulusBytes: size)) }
      #expect(error?.code == .overLimit)
    }
  }

  @Test("a file of 65,536 bytes is read, a larger one is not")
  func fileLimit() throws {
    let pem = try #require(KeyVector.named("P-256").privateForms["SEC 1 PEM"])
    let words = [UInt8](repeating: UInt8(ascii: "\n"), count: KeyMaterial.maximumByteCount - pem.count)
    #expect(try KeyMaterial(words + pem).half == .privateKey)
    let error = #expect(throws: MaterialError.self) { try KeyMaterial(words + [0x0A] + pem) }
    #expect(error?.code == .overLimit)
  }

  @Test("64 PEM blocks are read, 65 are not")
  func blockLimit() throws {
    let pem = String(decoding: try #require(KeyVector.named("P-256").privateForms["SEC 1 PEM"]), as: UTF8.self)
    let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    let full = String(repeating: other, count: PEM.maximumBlockCount - 1) + pem
    #expect(try KeyMaterial(Array(full.utf8)).half == .privateKey)
    let error = #expect(throws: MaterialError.self) { try KeyMaterial(Array((other + full).utf8)) }
    #expect(error?.code == .overLimit)
  }

  @Test("no error shows a byte of a key, and each says what to do")
  func errors() throws {
    for refused in try Refused.all {
      let error = try #require(throws: MaterialError.self) { try KeyMaterial(refused.file) }
      for text in [error.summary, error.reason, error.advice] {
        #expect(!text.isEmpty && text.count < 100 && !text.hasSuffix("."))
      }
    }
  }
}

@Suite("Making keys")
struct KeyMaking {
  @Test("a key on a curve is what its own bytes say, and another one each time", arguments: EllipticCurve.allCases)
  func curves(_ curve: EllipticCurve) throws {
    let key = try KeyMaterial.generate(on: curve)
    let read = try KeyMaterial(parsing: key.externalRepresentation)
    #expect(read.publicKey == key.publicKey)
    #expect(read.half == .privateKey && read.sizeInBits == curve.rawValue)
    #expect(try KeyMaterial.generate(on: curve).publicKey != key.publicKey)
    let seeded = try (0..<2).map { _ in try KeyMaterial.generate(on: curve, random: SeededRandomSource(seed: "k")) }
    #expect(seeded[0].publicKey == seeded[1].publicKey)
  }

  /// Draws what the tests want.
  private struct Fixed: RandomSource {
    let byte: UInt8
    func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
      for index in buffer.indices { buffer[index] = byte }
    }
  }

  @Test(
    "a source that never gives a number below the order ends with an error, not in a loop",
    arguments: [0, 0xFF] as [UInt8])
  func badSource(_ byte: UInt8) {
    for curve in EllipticCurve.allCases {
      let error = #expect(throws: MaterialError.self) { try KeyMaterial.generate(on: curve, random: Fixed(byte: byte)) }
      #expect(error?.code == .failed)
    }
  }

  @Test("an RSA key has the size that was asked for and parts that belong together")
  func rsa() throws {
    let key = try KeyMaterial.generateRSA(sizeInBits: 1024)
    #expect(key.sizeInBits == 1024 && key.half == .privateKey)
    #expect(try KeyMaterial(parsing: key.externalRepresentation).publicKey == key.publicKey)
    for size in [0, -8, 1016, 1023, 4097, 4104, Int.max] {
      let error = #expect(throws: MaterialError.self) { try KeyMaterial.generateRSA(sizeInBits: size) }
      #expect(error?.code == .overLimit)
    }
  }
}
