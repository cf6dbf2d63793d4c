import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

/// A key pair of the certificate vectors. The `openssl` command created its files; Python's `cryptography` and `hashlib`
/// computed the expected values.
struct KeyVector: CustomTestStringConvertible, Sendable {
  /// The algorithm and size, or the curve, such as "RSA 2048" or "P-256".
  let name: String
  /// The expected `kSecAttrKeyType`.
  let type: Int64
  /// The expected size in bits.
  let size: Int
  /// The bytes of the public key that a keychain stores.
  let publicKey: [UInt8]
  /// The bytes of the private key that a keychain stores.
  let privateKey: [UInt8]
  /// The expected application label.
  let label: [UInt8]
  /// The private key as a file in each format, by the name of the format, such as "PKCS#8 PEM".
  let privateFiles: [String: [UInt8]]
  /// The public key as a file in each format, by the name of the format.
  let publicFiles: [String: [UInt8]]

  /// The files of both keys. A format such as "PKCS#1 DER" has one file for each key.
  var files: [Dictionary<String, [UInt8]>.Element] { Array(privateFiles) + Array(publicFiles) }

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

@Suite("Reading keys in all formats")
struct CertificateKeyTests {
  @Test(
    "A private key in any format has the expected stored bytes, public key, label, size and type",
    arguments: try KeyVector.all)
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

  @Test("A public key in any format has the expected stored bytes, label and size", arguments: try KeyVector.all)
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

  @Test("The stored bytes of a private or public key give the expected public key", arguments: try KeyVector.all)
  func storedBytes(_ vector: KeyVector) throws {
    let type = try #require(KeyMaterial.KeyType(rawValue: vector.type))
    let privateKey = try vector.privateKey.withRawBytes {
      try KeyMaterial(externalRepresentation: $0, keyType: type, role: .privateKey)
    }
    #expect(privateKey.publicKey == vector.publicKey)
    let publicMaterial = try privateKey.publicMaterial
    #expect(publicMaterial.role == .publicKey)
    #expect(publicMaterial.externalRepresentation.revealed == vector.publicKey)
    #expect(publicMaterial.applicationLabel == vector.label)
    let publicKey = try vector.publicKey.withRawBytes {
      try KeyMaterial(externalRepresentation: $0, keyType: type, role: .publicKey)
    }
    #expect(publicKey.externalRepresentation.revealed == vector.publicKey)
  }

  @Test("The stored bytes of a key are rejected as bytes of another type or role")
  func wrongKind() throws {
    let curveKey = try KeyVector.named("P-256")
    let rsaKey = try KeyVector.named("RSA 2048")
    func expectRejection(_ bytes: [UInt8], _ type: KeyMaterial.KeyType, _ role: KeyMaterial.Role) {
      #expect(throws: CertificateError.self) {
        try bytes.withRawBytes { try KeyMaterial(externalRepresentation: $0, keyType: type, role: role) }
      }
    }
    expectRejection(curveKey.privateKey, .rsa, .privateKey)
    expectRejection(curveKey.publicKey, .rsa, .publicKey)
    expectRejection(curveKey.publicKey, .ellipticCurve, .privateKey)
    expectRejection(rsaKey.privateKey, .ellipticCurve, .privateKey)
    expectRejection(rsaKey.privateKey, .rsa, .publicKey)
    expectRejection(rsaKey.publicKey, .rsa, .privateKey)
  }

  @Test("97 bytes are read as a private key on P-256 or a public key on P-384, whichever curve contains their point")
  func sameLength() throws {
    let privateKey = try KeyMaterial(KeyVector.named("P-256").privateKey)
    #expect(privateKey.role == .privateKey && privateKey.algorithm == .ellipticCurve(.p256))
    let publicKey = try KeyMaterial(KeyVector.named("P-384").publicKey)
    #expect(publicKey.role == .publicKey && publicKey.algorithm == .ellipticCurve(.p384))
  }

  @Test("A PEM key with spaces and CRLF at its line ends is read after text and a certificate")
  func surroundingText() throws {
    let vector = try KeyVector.named("P-256")
    let pem = String(decoding: try #require(vector.privateFiles["PKCS#8 PEM"]), as: UTF8.self)
    let certificate = try CertificateVector.all[0].pem
    let file = "Bag Attributes: none\r\n" + certificate + "\n" + pem.replacing("\n", with: "  \r\n") + "\n\n"
    #expect(try KeyMaterial(Array(file.utf8)).applicationLabel == vector.label)
  }

  @Test("A private number of one byte is stored with leading zeros, in the size of its curve")
  func shortNumber() throws {
    // SEC 1 with the private number 1 on P-256. Its public key is the base point of the curve (SEC 2, 2.4.2).
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

@Suite("Key files that are damaged, unsupported or over a limit")
struct CertificateKeyRefusalTests {
  /// A file of the vectors that is not a supported key, with the code of the expected error.
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

  @Test("A file that is not a supported key is rejected with the expected code", arguments: try RefusedFile.all)
  func refused(_ refused: RefusedFile) throws {
    let error = try #require(throws: CertificateError.self) { try KeyMaterial(refused.file) }
    #expect(error.code.rawValue == refused.code, "\(error)")
  }

  @Test(
    "A truncated key is rejected (DER and raw keys at every length, PEM at every seventh)",
    arguments: try KeyVector.all)
  func truncated(_ vector: KeyVector) throws {
    for (format, file) in vector.files {
      // A PEM file without its last line break is still complete, so it is not tested with that length.
      let isPEM = format.contains("PEM")
      let lengths = isPEM ? Array(stride(from: 0, to: file.count - 1, by: 7)) : Array(0..<file.count)
      for length in lengths {
        // A raw private key starts with the raw public key, which is valid.
        let isPublicKey = format == "raw" && length == vector.publicKey.count
        if isPublicKey { continue }
        #expect(throws: CertificateError.self, "\(format), \(length) bytes") { try KeyMaterial(Array(file[..<length])) }
      }
    }
  }

  @Test("A private key with a flipped bit is rejected or read unchanged (400 random bits of each file)")
  func flippedBits() throws {
    var random = SeededRandom(seed: 11)
    for name in ["RSA 1024", "P-256", "P-521"] {
      let vector = try KeyVector.named(name)
      for format in ["PKCS#8 DER", "PKCS#1 DER", "SEC 1 DER", "raw"] {
        guard let file = vector.privateFiles[format] else { continue }
        for bit in (0..<(file.count * 8)).shuffled(using: &random).prefix(400) {
          // A bit that the reader ignores does not change the key.
          guard let key = try? KeyMaterial(file.flipping(bit: bit)) else { continue }
          #expect(key.externalRepresentation.revealed == vector.privateKey, "\(name), \(format), bit \(bit)")
        }
      }
    }
  }

  @Test("A DER or raw key with a byte after it is rejected")
  func trailingBytes() throws {
    for vector in try KeyVector.all {
      for (format, file) in vector.files where !format.contains("PEM") {
        #expect(throws: CertificateError.self, "\(vector.name), \(format)") { try KeyMaterial(file + [0]) }
      }
    }
  }

  /// Returns the DER of an RSAPublicKey. Each bit of its modulus is 1, because an even modulus is rejected.
  private func publicKey(modulusByteCount: Int) -> [UInt8] {
    let modulus = ASN1Encoding.element(.integer, [0] + [UInt8](repeating: 0xFF, count: modulusByteCount))
    let exponent = ASN1Encoding.element(.integer, [0x01, 0x00, 0x01])
    return ASN1Encoding.element(.sequence, modulus + exponent)
  }

  @Test("RSA public keys of 512 and 16,384 bits are read, and keys of 504 and 16,392 bits are rejected")
  func modulusLimits() throws {
    #expect(try KeyMaterial(publicKey(modulusByteCount: 64)).sizeInBits == 512)
    #expect(try KeyMaterial(publicKey(modulusByteCount: 2048)).sizeInBits == 16_384)
    for size in [63, 2049] {
      let error = #expect(throws: CertificateError.self) { try KeyMaterial(publicKey(modulusByteCount: size)) }
      #expect(error?.code == .overLimit)
    }
  }

  @Test("A key file of 65,536 bytes is read, and a file of 65,537 bytes is rejected")
  func fileLimit() throws {
    let pem = try #require(KeyVector.named("P-256").privateFiles["SEC 1 PEM"])
    let lineEnd = UInt8(ascii: "\n")
    let lineEnds = [UInt8](repeating: lineEnd, count: KeyMaterial.maximumByteCount - pem.count)
    #expect(try KeyMaterial(lineEnds + pem).role == .privateKey)
    let error = #expect(throws: CertificateError.self) { try KeyMaterial(lineEnds + [lineEnd] + pem) }
    #expect(error?.code == .overLimit)
  }

  @Test("A key in a file of 64 PEM blocks is read, and a file of 65 blocks is rejected")
  func blockLimit() throws {
    let pem = String(decoding: try #require(KeyVector.named("P-256").privateFiles["SEC 1 PEM"]), as: UTF8.self)
    let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    let fullFile = String(repeating: certificate, count: PEM.maximumBlockCount - 1) + pem
    #expect(try KeyMaterial(Array(fullFile.utf8)).role == .privateKey)
    let error = #expect(throws: CertificateError.self) { try KeyMaterial(Array((certificate + fullFile).utf8)) }
    #expect(error?.code == .overLimit)
  }

  @Test("No error about a key file quotes the file, and each has a short summary, reason and suggestion")
  func errors() throws {
    for refused in try RefusedFile.all {
      let error = try #require(throws: CertificateError.self) { try KeyMaterial(refused.file) }
      for text in [error.summary, error.reason, error.advice] {
        #expect(!text.isEmpty && text.count < 100 && !text.hasSuffix("."))
        #expect(!isQuoted(refused.file, in: text), "\(text)")
      }
    }
  }

  /// Returns whether a text contains bytes of a file: a word of at least eight characters that also occurs in the file's
  /// hexadecimal digits or base64 lines.
  private func isQuoted(_ file: [UInt8], in text: String) -> Bool {
    let pem = try? file.withRawBytes { (bytes) throws(CertificateError) in try PEM(bytes) }
    let contents = pem?.blocks.map { $0.contents.revealed } ?? [file]
    let hexadecimalTexts = contents.map { String(hexadecimal: $0) }
    let lines = String(decoding: file, as: UTF8.self).split(separator: "\n").map { String($0) }
    let base64Lines = lines.filter { line in
      line.utf8.count >= 16 && line.utf8.allSatisfy { Self.base64Digits.contains($0) }
    }
    let words = text.split { !($0.isLetter || $0.isNumber) }.map { String($0) }.filter { $0.count >= 8 }
    return words.contains { word in
      hexadecimalTexts.contains { $0.contains(word.lowercased()) } || base64Lines.contains { $0.contains(word) }
    }
  }

  private static let base64Digits = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=".utf8)

  @Test("The search for quotes finds hexadecimal digits and base64")
  func quotes() throws {
    let vector = try KeyVector.named("P-256")
    let der = try #require(vector.privateFiles["SEC 1 DER"])
    let pem = try #require(vector.privateFiles["SEC 1 PEM"])
    let quote = String(hexadecimal: der[8..<12])
    #expect(isQuoted(der, in: "the bytes \(quote) are invalid"))
    #expect(isQuoted(pem, in: "the bytes \(quote) are invalid"))
    // Every SEC 1 key on P-256 with a public key starts with these bytes.
    #expect(isQuoted(pem, in: "the line MHcCAQEEI is invalid"))
    #expect(!isQuoted(pem, in: "the private number is invalid"))
  }
}

@Suite("Generating keys")
struct KeyGenerationTests {
  @Test("A generated private key on a curve can be read, and the next key differs", arguments: EllipticCurve.allCases)
  func curves(_ curve: EllipticCurve) throws {
    let key = try KeyMaterial.generate(on: curve)
    let parsed = try KeyMaterial(parsing: key.externalRepresentation)
    #expect(parsed.publicKey == key.publicKey)
    #expect(parsed.role == .privateKey && parsed.sizeInBits == curve.rawValue)
    #expect(try KeyMaterial.generate(on: curve).publicKey != key.publicKey)
  }

  @Test("The same seed generates the same key on a curve", arguments: EllipticCurve.allCases)
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
    "A random source that repeats an invalid private number causes an error, not an endless loop",
    arguments: [0, 0xFF] as [UInt8])
  func badSource(_ byte: UInt8) {
    // A private number must not be zero, and must be below the order of the curve.
    for curve in EllipticCurve.allCases {
      let error = #expect(throws: CertificateError.self) {
        try KeyMaterial.generate(on: curve, random: ConstantSource(byte: byte))
      }
      #expect(error?.code == .failed)
    }
  }

  @Test("A generated RSA key has the requested size and can be read")
  func rsa() throws {
    let key = try KeyMaterial.generateRSA(sizeInBits: 1024)
    #expect(key.sizeInBits == 1024 && key.role == .privateKey)
    #expect(try KeyMaterial(parsing: key.externalRepresentation).publicKey == key.publicKey)
  }

  @Test("An RSA key is generated only with a multiple of 8 from 1,024 to 4,096 bits")
  func refusedSizes() {
    for size in [0, -8, 1016, 1023, 1025, 2052, 4097, 4104, Int.max] {
      let error = #expect(throws: CertificateError.self) { try KeyMaterial.generateRSA(sizeInBits: size) }
      #expect(error?.code == .overLimit)
    }
  }
}
