import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

/// A key in the vectors: created by the `openssl` command, described by Python's `cryptography` and `hashlib`.
struct KeyVector: CustomTestStringConvertible, Sendable {
  let name: String
  let type: Int64
  let size: Int
  let publicKey: [UInt8]
  let privateKey: [UInt8]
  let label: [UInt8]
  /// The files of the key by the name of their format.
  let privateFiles: [String: [UInt8]]
  let publicFiles: [String: [UInt8]]

  var testDescription: String { name }

  init(_ vector: TestVectors) throws {
    name = try vector["name"].string
    type = Int64(try vector["type"].integer)
    size = try vector["size"].integer
    publicKey = try vector["public_hex"].bytes
    privateKey = try vector["private_hex"].bytes
    label = try vector["label_hex"].bytes
    privateFiles = try vector["private"].members.mapValues { try $0.base64Bytes }
    publicFiles = try vector["public"].members.mapValues { try $0.base64Bytes }
  }

  static var all: [KeyVector] {
    get throws { try TestVectors.certificates()["keys"].elements.map(KeyVector.init) }
  }

  static func named(_ name: String) throws -> KeyVector { try #require(try all.first { $0.name == name }) }
}

extension KeyMaterial {
  init(_ file: [UInt8]) throws { try self.init(parsing: SensitiveBytes(copying: file)) }
}

@Suite("Reading keys that OpenSSL wrote")
struct CertificateKeyTests {
  @Test("Every format of a private key gives the same stored bytes", arguments: try KeyVector.all)
  func privateFiles(_ vector: KeyVector) throws {
    #expect(vector.privateFiles.count >= 4)
    for (format, file) in vector.privateFiles {
      let key = try KeyMaterial(file)
      #expect(key.role == .privateKey, "\(format)")
      #expect(key.externalRepresentation.revealed == vector.privateKey, "\(format)")
      #expect(key.publicKey == vector.publicKey, "\(format)")
      #expect(key.applicationLabel == vector.label, "\(format)")
      #expect(key.sizeInBits == vector.size, "\(format)")
      #expect(key.algorithm.keyType.rawValue == vector.type, "\(format)")
    }
  }

  @Test("Every format of a public key gives the same stored bytes", arguments: try KeyVector.all)
  func publicFiles(_ vector: KeyVector) throws {
    #expect(vector.publicFiles.count >= 4)
    for (format, file) in vector.publicFiles {
      let key = try KeyMaterial(file)
      #expect(key.role == .publicKey, "\(format)")
      #expect(key.externalRepresentation.revealed == vector.publicKey, "\(format)")
      #expect(key.applicationLabel == vector.label, "\(format)")
      #expect(key.sizeInBits == vector.size, "\(format)")
    }
  }

  @Test("The stored bytes of a private key are read again, and give its public key", arguments: try KeyVector.all)
  func storedForm(_ vector: KeyVector) throws {
    let type = try #require(KeyMaterial.KeyType(rawValue: vector.type))
    let pair = try vector.privateKey.withRawBytes {
      try KeyMaterial(externalRepresentation: $0, keyType: type, role: .privateKey)
    }
    #expect(pair.publicKey == vector.publicKey)
    let publicMaterial = try pair.publicMaterial
    #expect(publicMaterial.role == .publicKey)
    #expect(publicMaterial.externalRepresentation.revealed == vector.publicKey)
    #expect(publicMaterial.applicationLabel == vector.label)
    let publicOnly = try vector.publicKey.withRawBytes {
      try KeyMaterial(externalRepresentation: $0, keyType: type, role: .publicKey)
    }
    #expect(publicOnly.externalRepresentation.revealed == vector.publicKey)
  }

  @Test("A stored key is rejected as another type or role")
  func wrongKind() throws {
    let curveKey = try KeyVector.named("P-256")
    let rsaKey = try KeyVector.named("RSA 2048")
    func expectRefusal(_ bytes: [UInt8], _ type: KeyMaterial.KeyType, _ role: KeyMaterial.Role) {
      #expect(throws: CertificateError.self) {
        try bytes.withRawBytes { try KeyMaterial(externalRepresentation: $0, keyType: type, role: role) }
      }
    }
    expectRefusal(curveKey.privateKey, .rsa, .privateKey)
    expectRefusal(curveKey.publicKey, .rsa, .publicKey)
    expectRefusal(curveKey.publicKey, .ellipticCurve, .privateKey)
    expectRefusal(rsaKey.privateKey, .ellipticCurve, .privateKey)
    expectRefusal(rsaKey.privateKey, .rsa, .publicKey)
    expectRefusal(rsaKey.publicKey, .rsa, .privateKey)
  }

  @Test("97 bytes are a private key on P-256 or a public key on P-384, depending on their point")
  func sameLength() throws {
    let privateKey = try KeyMaterial(KeyVector.named("P-256").privateKey)
    #expect(privateKey.role == .privateKey && privateKey.algorithm == .ellipticCurve(.p256))
    let publicKey = try KeyMaterial(KeyVector.named("P-384").publicKey)
    #expect(publicKey.role == .publicKey && publicKey.algorithm == .ellipticCurve(.p384))
  }

  @Test("A key is found after certificates, blanks, Windows line ends and text")
  func surroundingText() throws {
    let vector = try KeyVector.named("P-256")
    let pem = String(decoding: try #require(vector.privateFiles["PKCS#8 PEM"]), as: UTF8.self)
    let certificate = try CertificateVector.all[0].pem
    let file = "Bag Attributes: none\r\n" + certificate + "\n" + pem.replacing("\n", with: "  \r\n") + "\n\n"
    #expect(try KeyMaterial(Array(file.utf8)).applicationLabel == vector.label)
  }

  @Test("A private number without leading zeros is stored with them")
  func shortNumber() throws {
    // The number 1 of P-256 as SEC 1 with one byte: its public key is the base point (SEC 2, 2.4.2).
    let file = try [UInt8](hex: "30 12 020101 040101 a00a 06082a8648ce3d030107")
    let key = try KeyMaterial(file)
    let basePoint = try [UInt8](
      hex: """
        04 6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296
        4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5
        """)
    #expect(key.publicKey == basePoint)
    #expect(key.externalRepresentation.revealed == basePoint + [UInt8](repeating: 0, count: 31) + [1])
  }
}

@Suite("Files that do not contain a supported key")
struct CertificateKeyRefusalTests {
  struct RefusedFile: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let code: String
    let file: [UInt8]

    static var all: [RefusedFile] {
      get throws {
        try TestVectors.certificates()["refused"].elements.map {
          RefusedFile(
            testDescription: try $0["name"].string, code: try $0["code"].string, file: try $0["file"].base64Bytes)
        }
      }
    }
  }

  @Test("An unsupported file is rejected with its reason", arguments: try RefusedFile.all)
  func refused(_ refused: RefusedFile) throws {
    let error = try #require(throws: CertificateError.self) { try KeyMaterial(refused.file) }
    #expect(error.code.rawValue == refused.code, "\(error)")
  }

  @Test("A truncated file is rejected at every length, in every format", arguments: try KeyVector.all)
  func truncated(_ vector: KeyVector) throws {
    for (format, file) in vector.privateFiles.merging(vector.publicFiles, uniquingKeysWith: { left, _ in left }) {
      // A PEM text is valid without its last line end.
      let isText = format.contains("PEM")
      let lengths = isText ? Array(stride(from: 0, to: file.count - 1, by: 7)) : Array(0..<file.count)
      for length in lengths {
        // In the raw format, the first part of a private key is a valid public key.
        let isPublicKey = format == "raw" && length == vector.publicKey.count
        if isPublicKey { continue }
        #expect(throws: CertificateError.self, "\(format), \(length) bytes") { try KeyMaterial(Array(file[..<length])) }
      }
    }
  }

  @Test("Flipping any bit of a key does not crash the reader, and never gives another private key")
  func flippedBits() throws {
    var random = SeededRandom(seed: 11)
    for name in ["RSA 1024", "P-256", "P-521"] {
      let vector = try KeyVector.named(name)
      for format in ["PKCS#8 DER", "PKCS#1 DER", "SEC 1 DER", "raw"] {
        guard let file = vector.privateFiles[format] else { continue }
        for bit in (0..<(file.count * 8)).shuffled(using: &random).prefix(400) {
          guard let key = try? KeyMaterial(file.flipping(bit: bit)) else { continue }
          #expect(key.externalRepresentation.revealed == vector.privateKey, "\(name), \(format), bit \(bit)")
        }
      }
    }
  }

  @Test("Bytes after a key are rejected")
  func trailingBytes() throws {
    for vector in try KeyVector.all {
      for (format, file) in vector.privateFiles.merging(vector.publicFiles, uniquingKeysWith: { left, _ in left })
      where !format.contains("PEM") {
        #expect(throws: CertificateError.self, "\(vector.name), \(format)") { try KeyMaterial(file + [0]) }
      }
    }
  }

  /// Returns an RSAPublicKey whose modulus consists of ones, which is odd.
  private func publicKey(modulusBytes: Int) -> [UInt8] {
    let modulus = ASN1Encoding.element(.integer, [0] + [UInt8](repeating: 0xFF, count: modulusBytes))
    let exponent = ASN1Encoding.element(.integer, [0x01, 0x00, 0x01])
    return ASN1Encoding.element(.sequence, modulus + exponent)
  }

  @Test("RSA keys of 512 to 16,384 bits are accepted, and smaller and larger ones are rejected")
  func modulusLimits() throws {
    #expect(try KeyMaterial(publicKey(modulusBytes: 64)).sizeInBits == 512)
    #expect(try KeyMaterial(publicKey(modulusBytes: 2048)).sizeInBits == 16_384)
    for size in [63, 2049] {
      let error = #expect(throws: CertificateError.self) { try KeyMaterial(publicKey(modulusBytes: size)) }
      #expect(error?.code == .overLimit)
    }
  }

  @Test("A file of 65,536 bytes is read, and a larger one is rejected")
  func fileLimit() throws {
    let pem = try #require(KeyVector.named("P-256").privateFiles["SEC 1 PEM"])
    let lineEnd = UInt8(ascii: "\n")
    let lineEnds = [UInt8](repeating: lineEnd, count: KeyMaterial.maximumByteCount - pem.count)
    #expect(try KeyMaterial(lineEnds + pem).role == .privateKey)
    let error = #expect(throws: CertificateError.self) { try KeyMaterial(lineEnds + [lineEnd] + pem) }
    #expect(error?.code == .overLimit)
  }

  @Test("64 PEM blocks are read, and 65 are rejected")
  func blockLimit() throws {
    let pem = String(decoding: try #require(KeyVector.named("P-256").privateFiles["SEC 1 PEM"]), as: UTF8.self)
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    let fullFile = String(repeating: certificate, count: PEM.maximumBlockCount - 1) + pem
    #expect(try KeyMaterial(Array(fullFile.utf8)).role == .privateKey)
    let error = #expect(throws: CertificateError.self) { try KeyMaterial(Array((certificate + fullFile).utf8)) }
    #expect(error?.code == .overLimit)
  }

  @Test("No error contains bytes of a key, and each has a suggestion")
  func errors() throws {
    for refused in try RefusedFile.all {
      let error = try #require(throws: CertificateError.self) { try KeyMaterial(refused.file) }
      for text in [error.summary, error.reason, error.advice] {
        #expect(!text.isEmpty && text.count < 100 && !text.hasSuffix("."))
      }
    }
  }
}

@Suite("Generating keys")
struct KeyGenerationTests {
  @Test("A generated key on a curve is valid, and different each time", arguments: EllipticCurve.allCases)
  func curves(_ curve: EllipticCurve) throws {
    let key = try KeyMaterial.generate(on: curve)
    let parsed = try KeyMaterial(parsing: key.externalRepresentation)
    #expect(parsed.publicKey == key.publicKey)
    #expect(parsed.role == .privateKey && parsed.sizeInBits == curve.rawValue)
    #expect(try KeyMaterial.generate(on: curve).publicKey != key.publicKey)
  }

  @Test("The same seed gives the same key on a curve", arguments: EllipticCurve.allCases)
  func seeded(_ curve: EllipticCurve) throws {
    let firstKey = try KeyMaterial.generate(on: curve, random: SeededRandomSource(seed: "k"))
    let secondKey = try KeyMaterial.generate(on: curve, random: SeededRandomSource(seed: "k"))
    #expect(firstKey.publicKey == secondKey.publicKey)
  }

  /// A random source that repeats one byte.
  private struct ConstantSource: RandomSource {
    let byte: UInt8
    func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
      for index in buffer.indices { buffer[index] = byte }
    }
  }

  @Test(
    "A random source that never gives a number below the order causes an error, not an infinite loop",
    arguments: [0, 0xFF] as [UInt8])
  func badSource(_ byte: UInt8) {
    for curve in EllipticCurve.allCases {
      let error = #expect(throws: CertificateError.self) {
        try KeyMaterial.generate(on: curve, random: ConstantSource(byte: byte))
      }
      #expect(error?.code == .failed)
    }
  }

  @Test("A generated RSA key has the requested size and matching parts")
  func rsa() throws {
    let key = try KeyMaterial.generateRSA(sizeInBits: 1024)
    #expect(key.sizeInBits == 1024 && key.role == .privateKey)
    #expect(try KeyMaterial(parsing: key.externalRepresentation).publicKey == key.publicKey)
  }

  @Test("An RSA key of another size is not generated")
  func refusedSizes() {
    for size in [0, -8, 1016, 1023, 4097, 4104, Int.max] {
      let error = #expect(throws: CertificateError.self) { try KeyMaterial.generateRSA(sizeInBits: size) }
      #expect(error?.code == .overLimit)
    }
  }
}
