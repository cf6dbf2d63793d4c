import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

/// The SHA-1 digest of empty data (FIPS 180).
let hashOfEmptyData = "xda39a3ee5e6b4b0d3255bfef95601890afd80709"

private func hash(_ text: String) -> String { "x" + SHA1.hash(Array(text.utf8)).hex }

@Suite("Column values of the keychain database")
struct ColumnsTests {
  @Test("Columns contain hashes of names, and readable classes, groups and flags")
  func genericPassword() throws {
    let keychain = try Keychain()
    try keychain.add(
      .genericPassword().with([.label: .data([1, 2]), .creator: .integer(7), .synchronizable: .integer(1)]), at: 1234.5)

    let rows = try keychain.sql(
      "SELECT acct, svce, labl, desc, crtr, agrp, pdmn, sync, tomb, musr, clip, cdat, mdat, vwht, tkid, ggrp, sysb "
        + "FROM genp")

    #expect(
      rows == [
        [
          hash("anna"), hash("mail"), "x" + SHA1.hash([1, 2]).hex, "NULL", "7", "'keyhaul'", "'ak'", "1", "0", "''",
          "0",
          "1234.5", "1234.5", "''", "''", "''", "0",
        ]
      ])
  }

  @Test("Missing attributes are stored as empty values or their hashes, never as NULL, in the primary key")
  func missingAttributes() throws {
    let keychain = try Keychain()
    for kind in ItemKind.allCases {
      try keychain.add(KeychainItem(kind: kind, attributes: [.accessGroup: .string("g")]))
    }

    let commonColumns = ["'g'", "0", "''", "''", "''", "''"]
    let hashOfZero = "x" + SHA1.hash([0, 0, 0, 0]).hex
    let expected: [ItemKind: [String]] = [
      .genericPassword: [hashOfEmptyData, hashOfEmptyData],
      .internetPassword: [
        hashOfEmptyData, hashOfEmptyData, hashOfEmptyData, "0", hashOfEmptyData, "0", hashOfEmptyData,
      ],
      .certificate: ["0", hashOfEmptyData, hashOfEmptyData],
      .key: [hashOfZero, "''", hashOfEmptyData, "0", "0", "0", "0", "0.0", "0.0"],
    ]
    for kind in ItemKind.allCases {
      let columns = ColumnDefinitions.primaryKey(of: kind).map(\.code.rawValue).joined(separator: ",")
      #expect(try keychain.sql("SELECT \(columns) FROM \(kind.rawValue)") == [(expected[kind] ?? []) + commonColumns])
    }
  }

  @Test("A protocol is stored as text and a port as a number")
  func numbersAndText() throws {
    let keychain = try Keychain()
    try keychain.add(.internetPassword())
    #expect(try keychain.sql("SELECT ptcl, port, typeof(ptcl) FROM inet") == [["'imps'", "993", "'text'"]])
  }

  @Test("The class of a key is stored as the hash of four bytes, and the application label is stored unhashed")
  func key() throws {
    let keychain = try Keychain()
    let label = Array(UInt8(1)...20)
    try keychain.add(
      KeychainItem(
        kind: .key,
        attributes: [
          .accessGroup: .string("g"), .keyClass: .integer(1), .applicationLabel: .data(label),
          .applicationTag: .data([9]),
          .type: .integer(73), .startDate: .date(.seconds(5.25)),
        ]))
    #expect(
      try keychain.sql("SELECT kcls, klbl, atag, type, sdat, edat FROM keys") == [
        ["x" + SHA1.hash([1, 0, 0, 0]).hex, "x" + label.hex, "x" + SHA1.hash([9]).hex, "73", "5.25", "0.0"]
      ])
  }

  @Test("Every item gets a unique UUID in upper case and a unique 16-byte persistent reference")
  func identifiers() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("anna"))
    try keychain.add(.genericPassword("ben"))
    let rows = try keychain.sql("SELECT UUID, persistref, sha1 FROM genp")
    for row in rows {
      let (uuid, persistentReference, digest) = (row[0], row[1], row[2])
      #expect(uuid.contains(/^'[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}'$/))
      #expect(persistentReference.count == "x".count + 2 * 16)
      #expect(digest.count == "x".count + 2 * 20)
    }
    for column in 0..<3 { #expect(rows[0][column] != rows[1][column]) }
  }

  @Test("The digest column contains the SHA-1 hash of the item's digest encoding")
  func digest() throws {
    let keychain = try Keychain()
    let stored = try keychain.add(.genericPassword())
    let encoding = try stored.item.digestEncoding().withBytes { Array($0) }
    #expect(try keychain.sql("SELECT sha1 FROM genp") == [["x" + SHA1.hash(encoding).hex]])
  }

  @Test("No file of the database contains plaintext names, servers, labels or secrets")
  func noPlaintext() throws {
    let keychain = try Keychain()
    try keychain.add(
      .genericPassword("planted-account", service: "planted-service", secret: "planted-secret")
        .with([.label: .string("planted-label")]))
    try keychain.add(
      .internetPassword("planted-server").with([.label: .string("planted-label"), .path: .string("planted-path")]))

    for name in ["keychain-2.db", "keychain-2.db-wal"] {
      let bytes = try Data(keychain.directory.read(name))
      #expect(!bytes.isEmpty)
      #expect(bytes.range(of: Data("planted".utf8)) == nil, "\(name)")
    }
    // The access group is plaintext.
    #expect(try Data(keychain.directory.read("keychain-2.db-wal")).range(of: Data("keyhaul".utf8)) != nil)
  }

  @Test(
    "An attribute with an invalid type is rejected without quoting its value",
    arguments: [
      (.internetPassword, .port, .data([1])), (.genericPassword, .accessGroup, .integer(3)),
      (.genericPassword, .account, .boolean(true)), (.genericPassword, .creator, .date(.reference)),
      (.certificate, .issuer, .array([])), (.genericPassword, .label, .date(.reference)),
      (.key, .startDate, .date(.seconds(.infinity))), (.key, .endDate, .date(.seconds(.nan))),
    ] as [(ItemKind, AttributeCode, PropertyValue)])
  func wrongTypes(kind: ItemKind, code: AttributeCode, value: PropertyValue) throws {
    let keychain = try Keychain()
    let item = KeychainItem(kind: kind, attributes: [.accessGroup: .string("g"), .label: .string("planted")])
    let error = #expect(throws: KeyhaulError.self) { try keychain.add(item.with([code: value])) }
    #expect(error?.code == .parameter)
    #expect(error?.reason.contains("planted") == false)
    #expect(try keychain.sql("SELECT count(*) FROM \(kind.rawValue)") == [["0"]])
  }
}
