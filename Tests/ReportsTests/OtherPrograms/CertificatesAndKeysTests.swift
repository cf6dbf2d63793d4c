import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("Certificates and keys for other programs")
struct CertificatesAndKeysTests {
  private struct Vector {
    let name: String
    let item: KeychainItem
    let publicItem: KeychainItem
  }

  /// Made by the `openssl` command.
  private func vectors() throws -> [Vector] {
    try TestVectors.certificates()["keys"].elements.map { vector in
      let type = Int64(try vector["type"].integer)
      func item(_ half: Int64, _ bytes: [UInt8]) -> KeychainItem {
        .made(.key, [.keyClass: .integer(half), .type: .integer(type), .label: .string("k")], bytes)
      }
      return Vector(
        name: try vector["name"].string, item: item(1, try vector["private_hex"].bytes),
        publicItem: item(0, try vector["public_hex"].bytes))
    }
  }

  @Test("are read by openssl as the keys that they were")
  func openSSL() throws {
    for vector in try vectors() {
      let export = ItemExport([vector.item], as: .certificatesAndKeys)
      #expect(export.counts.count == 1 && export.counts.secretCount == 1, "\(vector.name)")
      #expect(export.text.hasPrefix("Title: k\n-----BEGIN PRIVATE KEY-----\n"), "\(vector.name)")
      let file = export.contents.withBytes { Data($0) }
      // openssl checks the key, and says its public half, which has to be what the public item exports.
      _ = try run("openssl", ["pkey", "-check", "-noout"], input: file)
      let publicMaterial = try run("openssl", ["pkey", "-pubout"], input: file)
      let other = ItemExport([vector.publicItem], as: .certificatesAndKeys)
      #expect(other.text == "Title: k\n" + String(decoding: publicMaterial, as: UTF8.self), "\(vector.name)")
      #expect(other.counts.secretCount == 0)
      // And we read it back to the stored bytes.
      let again = try KeyMaterial(parsing: export.contents)
      #expect(again.externalRepresentation.constantTimeEquals(try #require(vector.item.secret)), "\(vector.name)")
    }
  }

  @Test("of X.509 are what openssl says they are")
  func certificates() throws {
    let vectors = try TestVectors.certificates()["certificates"].elements
    #expect(!vectors.isEmpty)
    for vector in vectors {
      let der = try vector["der_hex"].bytes
      let export = ItemExport([.made(.certificate, [:], der)], as: .certificatesAndKeys)
      let again = try run(
        "openssl", ["x509", "-outform", "DER"], input: export.contents.withBytes { Data($0) })
      #expect(Array(again) == der)
      #expect(export.counts.secretCount == 0)
    }
  }

  @Test("have a title that cannot be taken for a block, whatever the label is")
  func titles() throws {
    let vector = try #require(try vectors().first)
    var item = vector.item
    item[.label] = .string("x\n-----BEGIN PRIVATE KEY-----\u{1B}[31m\u{202E}")
    let export = ItemExport([item], as: .certificatesAndKeys)
    #expect(export.text.components(separatedBy: "-----BEGIN").count == 2)
    #expect(!export.text.unicodeScalars.contains { $0.value == 0x1B || $0.value == 0x202E })
    item[.label] = nil
    item[.applicationTag] = .data(Array("com.example.tag".utf8))
    #expect(ItemExport([item], as: .certificatesAndKeys).text.hasPrefix("Title: com.example.tag\n"))
  }

  @Test("leave out, with the reason, what a token holds, what is no pair's half, and bytes that are no key")
  func leftOut() {
    let export = ItemExport(
      [
        .made(.key, [.tokenID: .string("com.apple.setoken"), .keyClass: .integer(1), .type: .integer(73)], [4]),
        .made(.key, [.keyClass: .integer(2), .type: .integer(73)], [4]),
        .made(.key, [.keyClass: .integer(1), .type: .integer(99)], [4]),
        .made(.key, [.keyClass: .integer(1), .type: .integer(73)], [4]), .made(.certificate, [:], [1, 2, 3]),
        .made(.key, [.keyClass: .integer(1), .type: .integer(73)], nil), .generic([:]),
      ], as: .certificatesAndKeys)
    #expect(export.counts.count == 0 && export.contents.isEmpty)
    #expect(export.leftOut.count == 6)
    #expect(export.leftOut.first?.reason == "a token holds it; the keychain has only a reference")
    #expect(export.leftOut.last?.reason == "it has no bytes")
  }
}
