import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports

@Suite("Certificates and keys in PEM")
struct CertificatesAndKeysTests {
  private struct KeyPair {
    let name: String
    let privateItem: KeychainItem
    let publicItem: KeychainItem
  }

  /// Returns key pairs that the `openssl` command created.
  private func keyPairs() throws -> [KeyPair] {
    try TestVectors.certificates()["keys"].elements.map { vector in
      let type = Int64(try vector["type"].integer)
      func item(_ keyClass: Int64, _ bytes: [UInt8]) -> KeychainItem {
        .make(.key, [.keyClass: .integer(keyClass), .type: .integer(type), .label: .string("k")], bytes)
      }
      // The key class 1 is a private key, and 0 is a public key.
      return KeyPair(
        name: try vector["name"].string, privateItem: item(1, try vector["private_hex"].bytes),
        publicItem: item(0, try vector["public_hex"].bytes))
    }
  }

  @Test("OpenSSL reads an exported key as the same key")
  func openSSL() throws {
    for keyPair in try keyPairs() {
      let export = ItemExport([keyPair.privateItem], as: .certificatesAndKeys)
      #expect(export.counts.count == 1 && export.counts.secretCount == 1, "\(keyPair.name)")
      #expect(export.text.hasPrefix("Title: k\n-----BEGIN PRIVATE KEY-----\n"), "\(keyPair.name)")
      let file = export.contents.withBytes { Data($0) }
      _ = try run("openssl", ["pkey", "-check", "-noout"], input: file)
      // The public key that openssl derives must equal the export of the public item.
      let derivedPublicKey = String(decoding: try run("openssl", ["pkey", "-pubout"], input: file), as: UTF8.self)
      let publicExport = ItemExport([keyPair.publicItem], as: .certificatesAndKeys)
      #expect(publicExport.text == "Title: k\n" + derivedPublicKey, "\(keyPair.name)")
      #expect(publicExport.counts.secretCount == 0)
      // Keyhaul reads the export as the same bytes.
      let reread = try KeyMaterial(parsing: export.contents)
      #expect(
        reread.externalRepresentation.constantTimeEquals(try #require(keyPair.privateItem.secret)), "\(keyPair.name)")
    }
  }

  @Test("OpenSSL reads an exported certificate as the same bytes")
  func certificates() throws {
    let vectors = try TestVectors.certificates()["certificates"].elements
    #expect(!vectors.isEmpty)
    for vector in vectors {
      let der = try vector["der_hex"].bytes
      let export = ItemExport([.make(.certificate, [:], der)], as: .certificatesAndKeys)
      let converted = try run(
        "openssl", ["x509", "-outform", "DER"], input: export.contents.withBytes { Data($0) })
      #expect(Array(converted) == der)
      #expect(export.counts.secretCount == 0)
    }
  }

  /// U+0D4E, U+110BD and U+11A3A are letters and marks that form one `Character` with the hyphen after them (Unicode
  /// Standard Annex #29, `Grapheme_Cluster_Break=Prepend`).
  @Test(
    "A title line never contains the start of a PEM block",
    arguments: ["x\n", "", "----", "\u{D4E}", "\u{110BD}", "\u{11A3A}"])
  func titlesLikeBlocks(start: String) throws {
    var item = try #require(try keyPairs().first).privateItem
    item[.label] = .string(start + "-----BEGIN PRIVATE KEY-----\u{1B}[31m\u{202E}")
    let export = ItemExport([item], as: .certificatesAndKeys)
    // The only start is that of the key itself.
    #expect(export.text.unicodeScalars.ranges(of: "-----BEGIN".unicodeScalars).count == 1)
    #expect(!export.text.unicodeScalars.contains { $0.value == 0x1B || $0.value == 0x202E })
  }

  @Test("The title of a key without a label is its application tag")
  func applicationTag() throws {
    var item = try #require(try keyPairs().first).privateItem
    item[.label] = nil
    item[.applicationTag] = .data(Array("com.example.tag".utf8))
    #expect(ItemExport([item], as: .certificatesAndKeys).text.hasPrefix("Title: com.example.tag\n"))
  }

  @Test("Keys of tokens, keys of unknown type and invalid bytes are left out with the reason")
  func omittedItems() {
    // The key class 2 is a symmetric key. The type 73 is an elliptic-curve key, which cannot be symmetric, and 99 is unknown.
    let export = ItemExport(
      [
        .make(.key, [.tokenID: .string("com.apple.setoken"), .keyClass: .integer(1), .type: .integer(73)], [4]),
        .make(.key, [.keyClass: .integer(2), .type: .integer(73)], [4]),
        .make(.key, [.keyClass: .integer(1), .type: .integer(99)], [4]),
        .make(.key, [.keyClass: .integer(1), .type: .integer(73)], [4]), .make(.certificate, [:], [1, 2, 3]),
        .make(.key, [.keyClass: .integer(1), .type: .integer(73)], nil), .generic([:]),
      ], as: .certificatesAndKeys)
    #expect(export.counts.count == 0 && export.contents.isEmpty)
    #expect(export.omittedItems.count == 6)
    #expect(export.omittedItems.first?.reason == "a token holds it; the keychain has only a reference")
    #expect(export.omittedItems.last?.reason == "it has no bytes")
  }
}
