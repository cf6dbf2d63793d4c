import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

/// The test vectors come from `openssl` and Python's `cryptography`, with the attributes that a keychain stores.
@Suite("Adding certificates and keys")
struct CertificateInputTests {
  let sandbox: DeviceSandbox
  let key: TestVectors
  let certificate: TestVectors

  init() throws {
    sandbox = try DeviceSandbox(after: "keyhaul device create d -q")
    key = try TestVectors.certificates()["keys"].element(named: "RSA 2048")
    certificate = try TestVectors.certificates()["certificates"].elements[0]
    try write(try Array(certificate["pem"].string.utf8), to: "mail.pem", mode: 0o644)
    try write(try key["private"]["PKCS#8 PEM"].base64Bytes, to: "mail.key")
  }

  private func write(_ bytes: [UInt8], to name: String, mode: Int = 0o600) throws {
    let url = sandbox.home.appending(path: name)
    try Data(bytes).write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
  }

  /// Returns the items that a search finds.
  private func items(_ search: String) throws -> [JSONValue] {
    ItemFindTests.items(of: try sandbox.document("keyhaul item find \(search) --json"))
  }

  /// Decodes a value that is printed in base64.
  private func bytes(_ value: JSONValue?) -> [UInt8]? {
    value?["base64"]?.stringValue.flatMap { Data(base64Encoded: $0) }.map(Array.init)
  }

  @Test("A certificate gets the attributes that a device stores, and may come from a file that others can read")
  func certificateItem() throws {
    let outcome = try sandbox.run("keyhaul item add d --kind certificate --secret-file mail.pem")
    #expect(
      outcome
        == .init(
          output: "Added certificate \"mail.Example.org\" to d (moves with an encrypted backup).\n", errors: "",
          status: 0))
    let item = try #require(try items("d --kind certificate --reveal").first)
    let attributes = item["attributes"]
    // The type is X.509 version 3 (3), and the encoding is DER (3).
    #expect(attributes?["ctyp"] == 3 && attributes?["cenc"] == 3 && item["protection"] == "dk")
    let members: [(attribute: String, vectorMember: String)] = [
      ("subj", "subject_hex"), ("issr", "issuer_hex"), ("slnr", "serial_hex"), ("skid", "key_id_hex"),
      ("pkhh", "key_hash_hex"),
    ]
    for (attribute, vectorMember) in members {
      #expect(try bytes(attributes?[attribute]) == certificate[vectorMember].bytes, "\(attribute)")
    }
    #expect(try bytes(item["secret"]) == certificate["der_hex"].bytes)
  }

  @Test("A key from any file format is stored with the same bytes and attributes")
  func keyItem() throws {
    let files = try key["private"].members.sorted { $0.key < $1.key }
    for (number, (format, file)) in files.enumerated() {
      try write(try file.base64Bytes, to: "new.key")
      let outcome = try sandbox.run(
        "keyhaul item add d --kind key --label l\(number) --application-tag t\(number) --secret-file new.key")
      #expect(outcome.output == "Added key \"l\(number)\" to d (moves with an encrypted backup).\n", "\(format)")
      let item = try #require(try items("d --kind key --application-tag t\(number) --reveal").first)
      #expect(try bytes(item["secret"]) == key["private_hex"].bytes, "\(format)")
      #expect(try bytes(item["attributes"]?["klbl"]) == key["label_hex"].bytes)
      // A private (1) RSA (42) key of 2,048 bits.
      #expect(item["attributes"]?["kcls"] == 1 && item["attributes"]?["priv"] == 1)
      #expect(item["attributes"]?["type"] == 42 && item["attributes"]?["bsiz"] == 2048)
    }
  }

  @Test("A key without a label is shown by its tag or kind")
  func unnamedKeys() throws {
    try sandbox.run("keyhaul item add d --kind key --secret-file mail.key")
    try sandbox.run("keyhaul item add d --kind key --application-tag org.example.mail --secret-file mail.key")
    let table = try sandbox.run("keyhaul item find d --kind key").output
    #expect(table.contains("\nkey   RSA, 2,048 bits, private "))
    #expect(table.contains("\nkey   org.example.mail "))
  }

  @Test("The user's label overrides the certificate's label")
  func label() throws {
    try sandbox.run("keyhaul item add d --kind certificate --label Mine --protection ck --secret-file mail.pem")
    let item = try #require(try items("d --label Mine").first)
    #expect(item["attributes"]?["labl"] == "Mine" && item["protection"] == "ck")
  }

  @Test("A duplicate is rejected, also in a dry run")
  func duplicates() throws {
    let cases: [(kind: String, file: String, why: String)] = [
      ("certificate", "mail.pem", "a certificate with the same issuer, serial number"),
      ("key", "mail.key", "a key with the same public key, half (public or private), application tag"),
    ]
    for (kind, file, why) in cases {
      let line = "keyhaul item add d --kind \(kind) --secret-file \(file)"
      #expect(try sandbox.run(line + " -n").output.hasPrefix("Would add \(kind)"))
      #expect(try sandbox.run(line).status == 0)
      for repeatedLine in [line, line + " -n"] {
        let outcome = try sandbox.run("COLUMNS=100 \(repeatedLine)")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains(why))
      }
    }
  }

  @Test("Files without exactly one supported key or certificate are rejected with a reason")
  func refused() throws {
    let vectors = try TestVectors.certificates()["refused"]
    let cases: [(name: String, status: Int32, message: String)] = [
      ("an encrypted RSA key, traditional PEM", 14, "the private key is encrypted"),
      ("an encrypted PKCS#8 key, PEM", 14, "the private key is encrypted"),
      ("a certificate in PEM", 14, #"it contains "CERTIFICATE" in PEM, not a key"#),
      ("a key on secp256k1", 14, "the key is not on P-256, P-384 or P-521"),
      ("another prime", 13, "contradict each other"),
    ]
    for (name, status, message) in cases {
      let vector = try vectors.element(named: name)
      try write(try vector["file"].base64Bytes, to: "wrong")
      let outcome = try sandbox.run("COLUMNS=100 keyhaul item add d --kind key --secret-file wrong")
      #expect(outcome.status == status, "\(name)")
      #expect(outcome.errors.contains(message), "\(name): \(outcome.errors)")
    }
    let outcome = try sandbox.run("cat mail.pem mail.pem | keyhaul item add d --kind certificate --secret-file -")
    #expect(outcome.status == 14 && outcome.errors.contains("it contains 2 certificates"))
    // Nothing was added.
    #expect(try sandbox.run("keyhaul item find d").status == 4)
  }

  @Test("A certificate with its key moves to another phone as one identity")
  func identity() throws {
    for step in [
      "keyhaul device create new-phone -q", "keyhaul item add d --kind certificate --secret-file mail.pem -q",
      "keyhaul item add d --kind key --label mail --secret-file mail.key -q",
      "printf 'correct horse' > pw && chmod 600 pw",
      "keyhaul backup d -o move.backup --rounds 1000 --password-file pw -q",
      "keyhaul restore move.backup --to new-phone --password-file pw -q --yes",
    ] { #expect(try sandbox.run(step).status == 0, "\(step)") }
    let movedCertificate = try #require(try items("new-phone --kind certificate --reveal").first)
    let movedKey = try #require(try items("new-phone --kind key --reveal").first)
    // An identity is a certificate and a key with the same hash of the public key.
    #expect(try bytes(movedCertificate["attributes"]?["pkhh"]) == key["label_hex"].bytes)
    #expect(bytes(movedCertificate["attributes"]?["pkhh"]) == bytes(movedKey["attributes"]?["klbl"]))
    #expect(try bytes(movedCertificate["secret"]) == certificate["der_hex"].bytes)
    #expect(try bytes(movedKey["secret"]) == key["private_hex"].bytes)
  }
}
