import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
import TestSupport
import Testing

@Suite("Keychain databases as sources of items")
struct DatabaseAsSourceTests {
  /// Decrypts the rows of a database with its own keys, and returns the rows and the dump that is made from them.
  private static func source(
    _ bytes: [UInt8], log: [UInt8] = []
  ) throws -> (dump: KeychainDump, rows: [KeychainDatabase.DecryptedRow]) {
    let database = try KeychainDatabase(file: bytes, log: log)
    let rows = try database.decrypted(with: database.keys())
    return (KeychainDump(database, opened: rows, hasGivenKeys: false), rows)
  }

  @Test("A source made from a database has all rows as items, and its details list schema, versions, log and keys")
  func databaseDetails() throws {
    let source = try Self.source(DatabaseFile.bytes(), log: DatabaseFile.log()).dump
    let vectors = try TestVectors.database()
    let expected = try vectors["items"].elements + vectors["wal"]["more_items"].elements
    #expect(source.format == .database && source.items.count == expected.count)
    let versions = Dictionary(try expected.map { (UInt32(try $0["version"].integer), 1) }, uniquingKeysWith: +)
    #expect(
      source.database
        == DatabaseDetails(schema: "12.11", versionCounts: versions, journalStatus: .applied, keys: .inDatabase))
    #expect(source.items.allSatisfy { $0.fault == nil })
    #expect(source.nature.hasSuffix("with its keys stored unencrypted in it, like a Simulator's"))
  }

  @Test("Columns that differ from the decrypted item are listed")
  func columns() throws {
    let unchangedRows = try Self.source(DatabaseFile.bytes(), log: DatabaseFile.log()).rows
    #expect(unchangedRows.allSatisfy { $0.differingColumns.isEmpty && $0.hasMatchingDigest != false })
    let changes: [(sql: String, kind: ItemKind, columns: [AttributeCode])] = [
      ("UPDATE genp SET agrp = 'mallory' WHERE rowid = 1", .genericPassword, [.accessGroup]),
      ("UPDATE genp SET acct = x'00' WHERE rowid = 1", .genericPassword, [.account]),
      ("UPDATE inet SET port = 80, srvr = x'00' WHERE rowid = 1", .internetPassword, [.server, .port]),
      ("UPDATE cert SET mdat = mdat + 1 WHERE rowid = 1", .certificate, [.modificationDate]),
      ("UPDATE keys SET pdmn = 'dk' WHERE rowid = 1", .key, [.protection]),
    ]
    for (sql, kind, columns) in changes {
      let rows = try Self.source(DatabaseFile.changed(by: sql)).rows
      let differingRows = rows.filter { !$0.differingColumns.isEmpty }
      #expect(differingRows.map(\.row.kind) == [kind] && differingRows.map(\.row.number) == [1], "\(sql)")
      #expect(Set(differingRows.flatMap(\.differingColumns)) == Set(columns), "\(sql)")
    }
  }

  @Test("Empty blobs and empty texts are equal, because daemons of different releases write both")
  func emptyColumns() throws {
    let rows = try Self.source(DatabaseFile.changed(by: "UPDATE genp SET musr = x'', tkid = x''")).rows
    #expect(rows.flatMap(\.differingColumns).map(\.rawValue) == [])
  }

  @Test("The App Clip flag of an item comes from its column")
  func appClip() throws {
    let (source, rows) = try Self.source(DatabaseFile.changed(by: "UPDATE genp SET clip = 1 WHERE rowid = 2"))
    let flagged = source.items.filter { $0.item?[.appClip] == .integer(1) }
    #expect(flagged.map(\.entryPosition) == [1] && rows.allSatisfy { $0.differingColumns.isEmpty })
  }

  @Test("All rows of a database without keys are listed as undecryptable items")
  func withoutKeys() throws {
    let source = try Self.source(DatabaseFile.changed(by: "DELETE FROM metadatakeys; DELETE FROM genp")).dump
    let undecryptable = source.items.filter { $0.fault?.reason == .noClassKey }
    #expect(!undecryptable.isEmpty && undecryptable.allSatisfy { $0.item == nil && $0.protection != nil })
  }
}

@Suite("Class key files")
struct ClassKeyFileTests {
  private static let digits = String(repeating: "0f", count: 32)

  private static func keys(_ text: String) throws -> [KeyClass: [UInt8]] {
    try ClassKeyFile.keys(in: SensitiveBytes(copying: Array(text.utf8))).mapValues { $0.withBytes(Array.init) }
  }

  @Test("Class key files name classes by number or code")
  func read() throws {
    let key = [UInt8](repeating: 0x0F, count: 32)
    #expect(
      try Self.keys("{\"6\": \"\(Self.digits)\", \"cku\":\"\(Self.digits.uppercased())\"}\n")
        == [KeyClass(rawValue: 6): key, KeyClass(rawValue: 10): key])
  }

  @Test("A class key file may start with a byte order mark")
  func byteOrderMark() throws {
    #expect(try Self.keys("\u{FEFF}{\"6\": \"\(Self.digits)\"}").count == 1)
  }

  @Test("Invalid class key files are rejected with a byte offset, and the error quotes no digit")
  func invalidFiles() throws {
    let digits = Self.digits
    let files: [(text: String, reason: String)] = [
      ("", "it is not a JSON object, at byte 0"),
      ("[]", "it is not a JSON object, at byte 0"),
      ("{}", "it has no key, at byte 1"),
      ("{\"6\": \"0f\"}", "the key of class 6 has 2 digits instead of 64, at byte 7"),
      (
        "{\"6\": \"\(digits.dropLast())x\"}",
        "a class key contains a character that is not a hexadecimal digit, at byte 7"
      ),
      ("{\"5\": \"\(digits)\"}", "a name is neither a class number (6 to 12) nor a class code (ak to akpu), at byte 1"),
      ("{\"6\": \"\(digits)\", \"ak\": \"\(digits)\"}", "class 6 occurs twice, at byte 73"),
      ("{\"6\": \"\(digits)\"} x", "there is text after the object, at byte 74"),
      ("{\"6\": \"\(digits)\"", "the object does not end, at byte 72"),
      ("{\"6\": 5}", "a quoted string is missing, at byte 6"),
      ("{\"6\\u0000\": \"\(digits)\"}", "a string contains an escape sequence, at byte 3"),
    ]
    for (text, reason) in files {
      let error = #expect(throws: KeyhaulError.self, "\(text)") { _ = try Self.keys(text) }
      #expect(error == KeyhaulError(.malformed, reason), "\(text)")
    }
  }
}
