import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import KeychainCrypto

/// A certificate in the vectors: created by Python's `cryptography` and the `openssl` command.
struct CertificateVector: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let der: [UInt8]
  let pem: String
  let version: Int
  let subject: [UInt8]
  let issuer: [UInt8]
  let serialNumber: [UInt8]
  let keyID: [UInt8]?
  let keyHash: [UInt8]
  let keyType: Int64
  let keySize: Int
  let summary: String?

  init(_ vector: TestVectors) throws {
    testDescription = try vector["name"].string
    der = try vector["der_hex"].bytes
    pem = try vector["pem"].string
    version = try vector["version"].integer
    subject = try vector["subject_hex"].bytes
    issuer = try vector["issuer_hex"].bytes
    serialNumber = try vector["serial_hex"].bytes
    keyID = try vector["key_id_hex"].isNull ? nil : try vector["key_id_hex"].bytes
    keyHash = try vector["key_hash_hex"].bytes
    keyType = Int64(try vector["key_type"].integer)
    keySize = try vector["key_size"].integer
    summary = try vector["summary"].isNull ? nil : try vector["summary"].string
  }

  static var all: [CertificateVector] {
    get throws { try TestVectors.certificates()["certificates"].elements.map(CertificateVector.init) }
  }
}

/// Fields of the signed part of a certificate, in their order (RFC 5280 §4.1).
private enum CertificateField: Int {
  case version, serialNumber, signatureAlgorithm, issuer, validity
}

/// Returns a certificate in which a field has another encoding. Its signature becomes invalid, but no test checks it.
private func certificate(
  _ der: [UInt8], replacing replacedField: CertificateField,
  by replacement: (ASN1Cursor.Element) throws -> [UInt8]
) throws -> [UInt8] {
  try der.withRawBytes { bytes in
    var file = ASN1Cursor(bytes)
    var parts = try file.next(.sequence, "the certificate").cursor
    var fields = try parts.next(.sequence, "the signed part").cursor
    var newFields: [UInt8] = []
    var index = 0
    while !fields.isAtEnd {
      let field = try fields.next("a field")
      newFields += try index == replacedField.rawValue ? replacement(field) : Array(field.encoding)
      index += 1
    }
    var newParts = ASN1Encoding.element(.sequence, newFields)
    while !parts.isAtEnd { newParts += Array(try parts.next("the signature").encoding) }
    return ASN1Encoding.element(.sequence, newParts)
  }
}

@Suite("Reading certificates that other programs created")
struct CertificateTests {
  @Test(
    "Names, serial number, key identifier and key hash equal the values in a keychain",
    arguments: try CertificateVector.all)
  func attributes(_ vector: CertificateVector) throws {
    let attributes = try CertificateAttributes(der: vector.der)
    #expect(attributes.version == vector.version)
    #expect(attributes.subject.hex == vector.subject.hex)
    #expect(attributes.issuer.hex == vector.issuer.hex)
    #expect(attributes.serialNumber == vector.serialNumber)
    #expect(attributes.subjectKeyID == vector.keyID)
    #expect(attributes.publicKeyHash == vector.keyHash)
    #expect(attributes.publicKey?.algorithm.keyType.rawValue ?? 0 == vector.keyType)
    #expect(attributes.publicKey?.sizeInBits ?? 0 == vector.keySize)
    #expect(attributes.subjectSummary == vector.summary)
    #expect(attributes.der == vector.der)
  }

  @Test("A time without seconds is valid, and both ends of a validity are included")
  func withoutSeconds() throws {
    let der = try #require(try CertificateVector.all.first).der
    let original = try CertificateAttributes(der: der)
    let shortened = try CertificateAttributes(der: try Self.withoutSeconds(der))
    // 2026-01-01 to 2036-01-01, in seconds since 2001.
    let (start, end) = (788_918_400.0, 1_104_451_200.0)
    for attributes in [original, shortened] {
      for (moment, isValid) in [(start - 1, false), (start, true), (end, true), (end + 1, false)] {
        #expect(attributes.isValid(at: KeychainDate(secondsSinceReferenceDate: moment)) == isValid, "\(moment)")
      }
    }
  }

  /// Returns a certificate with both times as `YYMMDDhhmmZ` instead of `YYMMDDhhmmssZ`.
  private static func withoutSeconds(_ der: [UInt8]) throws -> [UInt8] {
    try certificate(der, replacing: .validity) { validity in
      var times = validity.cursor
      var newTimes: [UInt8] = []
      while !times.isAtEnd {
        let time = try times.next(.utcTime, "a time").contents
        newTimes += ASN1Encoding.element(.utcTime, Array(time.prefix(10)) + [UInt8(ascii: "Z")])
      }
      return ASN1Encoding.element(.sequence, newTimes)
    }
  }

  @Test("PEM and DER of a certificate give the same attributes", arguments: try CertificateVector.all)
  func pem(_ vector: CertificateVector) throws {
    #expect(try CertificateAttributes(pemOrDER: Array(vector.pem.utf8)) == CertificateAttributes(der: vector.der))
    #expect(try CertificateAttributes(pemOrDER: vector.der) == CertificateAttributes(der: vector.der))
  }

  /// Source: RFC 7468 §5.1. OpenSSL 3's `PEM_read_bio_X509` also reads a block with the older label.
  @Test("A certificate in PEM may have the older label")
  func olderLabel() throws {
    let vector = try #require(try CertificateVector.all.first)
    let withOlderLabel = vector.pem.replacing("CERTIFICATE", with: "X509 CERTIFICATE")
    #expect(withOlderLabel.contains("BEGIN X509 CERTIFICATE") && withOlderLabel.contains("END X509 CERTIFICATE"))
    #expect(try CertificateAttributes.all(in: Array(withOlderLabel.utf8)).map(\.der) == [vector.der])
    let withBothLabels = withOlderLabel + vector.pem
    #expect(try CertificateAttributes.all(in: Array(withBothLabels.utf8)).count == 2)
    let withUnknownLabel = vector.pem.replacing("CERTIFICATE", with: "TRUSTED CERTIFICATE")
    #expect(throws: CertificateError.self) { try CertificateAttributes.all(in: Array(withUnknownLabel.utf8)) }
  }

  @Test("A file may contain a chain of certificates and a key")
  func chain() throws {
    let vectors = try CertificateVector.all
    let key = String(decoding: try #require(KeyVector.named("P-256").privateFiles["PKCS#8 PEM"]), as: UTF8.self)
    let file = vectors[0].pem + key + vectors[1].pem
    #expect(try CertificateAttributes.all(in: Array(file.utf8)).map(\.der) == [vectors[0].der, vectors[1].der])
  }

  @Test("A truncated certificate is rejected at every length")
  func truncated() throws {
    for vector in try CertificateVector.all {
      for length in 0..<vector.der.count {
        #expect(throws: CertificateError.self) { try CertificateAttributes(pemOrDER: Array(vector.der[..<length])) }
      }
    }
  }

  @Test("Flipping any bit of a certificate (600 each in a quick run) does not crash the reader")
  func flippedBits() throws {
    var rejectedCount = 0
    for vector in try CertificateVector.all {
      for bit in Cases.chosen(0..<(vector.der.count * 8), quick: 600) {
        do { _ = try CertificateAttributes(der: vector.der.flipping(bit: bit)) } catch { rejectedCount += 1 }
      }
    }
    // If almost every certificate were accepted, the test would not reach the reader's checks.
    #expect(rejectedCount > 1000)
  }

  @Test("A certificate with bytes after it, a key and text are rejected with the expected error codes")
  func otherContent() throws {
    func errorCode(_ file: [UInt8]) -> CertificateError.Code? {
      do {
        _ = try CertificateAttributes(pemOrDER: file)
        return nil
      } catch {
        return error.code
      }
    }
    #expect(errorCode(try CertificateVector.all[0].der + [0]) == .malformed)
    let key = try KeyVector.named("P-256")
    #expect(errorCode(try #require(key.privateFiles["PKCS#8 PEM"])) == .unexpectedKind)
    #expect(errorCode(try #require(key.privateFiles["PKCS#8 DER"])) == .unexpectedKind)
    #expect(errorCode(Array("no certificate\n".utf8)) == .malformed)
    #expect(errorCode([]) == .malformed)
  }

  @Test("A file of 262,144 bytes is read, and a larger one is rejected")
  func fileLimit() throws {
    let pem = Array(try CertificateVector.all[0].pem.utf8)
    let lineEnd = UInt8(ascii: "\n")
    let lineEnds = [UInt8](repeating: lineEnd, count: CertificateAttributes.maximumByteCount - pem.count)
    #expect(try CertificateAttributes(pemOrDER: lineEnds + pem).version == 3)
    let error = #expect(throws: CertificateError.self) {
      try CertificateAttributes(pemOrDER: lineEnds + [lineEnd] + pem)
    }
    #expect(error?.code == .overLimit)
  }

  @Test("A serial number of 37 bytes is read, and a longer one is rejected")
  func serialLimit() throws {
    let attributes = try CertificateAttributes(der: certificateWithSerialNumber(byteCount: 37))
    #expect(attributes.serialNumber.count == 37)
    let error = #expect(throws: CertificateError.self) {
      try CertificateAttributes(der: certificateWithSerialNumber(byteCount: 38))
    }
    #expect(error?.code == .overLimit)
  }

  private func certificateWithSerialNumber(byteCount: Int) throws -> [UInt8] {
    try certificate(CertificateVector.all[0].der, replacing: .serialNumber) { _ in
      ASN1Encoding.element(.integer, [UInt8](repeating: 0x11, count: byteCount))
    }
  }
}

@Suite("Items of certificates and keys")
struct CertificateItemTests {
  @Test("The item of a certificate has its attributes, its bytes and its subject's summary")
  func certificateItem() throws {
    let vector = try CertificateVector.all[0]
    let item = KeychainItem(try CertificateAttributes(der: vector.der))
    #expect(item.kind == .certificate)
    #expect(
      item.attributes == [
        .certificateType: .integer(3), .certificateEncoding: .integer(3), .subject: .data(vector.subject),
        .issuer: .data(vector.issuer), .serialNumber: .data(vector.serialNumber),
        .subjectKeyID: .data(try #require(vector.keyID)), .publicKeyHash: .data(vector.keyHash),
        .label: .string("mail.Example.org"),
      ])
    #expect(item.secret?.revealed == vector.der)
  }

  /// Source: Apple `SecKey.m`.
  @Test("A private key may sign, decrypt and unwrap, and a public key verify, encrypt and wrap")
  func keyItems() throws {
    let vector = try KeyVector.named("P-521")
    let pair = try KeyMaterial(vector.privateKey)
    let privateItem = KeychainItem(pair)
    let publicItem = KeychainItem(try pair.publicMaterial)
    let common: [AttributeCode: Int64] = [
      "type": 73, "bsiz": 521, "esiz": 521, "perm": 1, "modi": 1, "sens": 0, "asen": 0, "extr": 1, "next": 0,
      "drve": 1, "snrc": 0, "vyrc": 0,
    ]
    for item in [privateItem, publicItem] {
      for (code, value) in common { #expect(item[code] == .integer(value), "\(code.rawValue)") }
      #expect(item[.applicationLabel] == .data(vector.label))
    }
    for code: AttributeCode in ["kcls", "priv", "sign", "decr", "unwp"] {
      #expect(privateItem[code] == .integer(1) && publicItem[code] == .integer(0), "\(code.rawValue)")
    }
    for code: AttributeCode in ["vrfy", "encr", "wrap"] {
      #expect(privateItem[code] == .integer(0) && publicItem[code] == .integer(1), "\(code.rawValue)")
    }
    #expect(privateItem.secret?.revealed == vector.privateKey)
    #expect(publicItem.secret?.revealed == vector.publicKey)
  }

  @Test("Every attribute of the items exists in their kind, and its value has the type that is stored")
  func knownAttributes() throws {
    let items = [
      KeychainItem(try CertificateAttributes(der: CertificateVector.all[0].der)),
      KeychainItem(try KeyMaterial(KeyVector.named("RSA 2048").privateKey)),
    ]
    for item in items {
      for (code, value) in item.attributes {
        let definition = try #require(AttributeTable.definition(of: code, in: item.kind))
        #expect(try AttributeConversion.convert(value, for: definition) == value)
      }
    }
  }

  @Test("Only a certificate and the private key of its public key are an identity")
  func identities() throws {
    let rsaKey = KeychainItem(try KeyMaterial(KeyVector.named("RSA 2048").privateKey))
    let curveKeyPair = try KeyMaterial(KeyVector.named("P-256").privateKey)
    let curveKey = KeychainItem(curveKeyPair)
    let vectors = try CertificateVector.all
    let rsaCertificate = KeychainItem(try CertificateAttributes(der: vectors[0].der))
    let curveCertificate = KeychainItem(try CertificateAttributes(der: vectors[1].der))
    #expect(rsaCertificate.isIdentity(with: rsaKey))
    #expect(curveCertificate.isIdentity(with: curveKey))
    #expect(!rsaCertificate.isIdentity(with: curveKey))
    #expect(!curveCertificate.isIdentity(with: rsaKey))
    #expect(!curveCertificate.isIdentity(with: KeychainItem(try curveKeyPair.publicMaterial)))
    #expect(!rsaKey.isIdentity(with: rsaCertificate))
  }
}
