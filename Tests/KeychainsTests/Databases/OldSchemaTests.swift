import Basics
import CSQLite
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
import TestSupport
import Testing

/// A database as iOS 5 and 6 wrote it: schema 5, whose tables lack the columns `sync`, `tomb` and `sha1`.
struct OldDatabaseFile {
  static let classKey = [UInt8](repeating: 5, count: 32)
  let bytes: [UInt8]

  /// Creates a database.
  ///
  /// - Parameters:
  ///   - rows: The rows to insert.
  ///   - dataColumn: The name of the column with the encrypted item.
  init(_ rows: [(table: String, columns: String, values: String)] = [], dataColumn: String = "data") throws {
    let directory = try TemporaryDirectory()
    let path = directory.url.appending(path: "keychain-2.db").path
    let times = "rowid INTEGER PRIMARY KEY AUTOINCREMENT,cdat REAL,mdat REAL"
    let names =
      "crtr INTEGER,type INTEGER,scrp INTEGER,labl BLOB,alis BLOB,invi INTEGER,nega INTEGER,cusi INTEGER,prot BLOB"
    let end = "\(dataColumn) BLOB,agrp TEXT,pdmn TEXT"
    let statements = [
      "CREATE TABLE genp(\(times),desc BLOB,icmt BLOB,\(names),acct BLOB NOT NULL DEFAULT '',svce BLOB NOT NULL DEFAULT '',"
        + "gena BLOB,\(end),UNIQUE(acct,svce,agrp))",
      "CREATE TABLE inet(\(times),desc BLOB,icmt BLOB,\(names),acct BLOB NOT NULL DEFAULT '',sdmn BLOB NOT NULL DEFAULT '',"
        + "srvr BLOB NOT NULL DEFAULT '',ptcl INTEGER NOT NULL DEFAULT 0,atyp BLOB NOT NULL DEFAULT '',"
        + "port INTEGER NOT NULL DEFAULT 0,path BLOB NOT NULL DEFAULT '',\(end),"
        + "UNIQUE(acct,sdmn,srvr,ptcl,atyp,port,path,agrp))",
      "CREATE TABLE cert(\(times),ctyp INTEGER NOT NULL DEFAULT 0,cenc INTEGER,labl BLOB,alis BLOB,subj BLOB,"
        + "issr BLOB NOT NULL DEFAULT '',slnr BLOB NOT NULL DEFAULT '',skid BLOB,pkhh BLOB,\(end),UNIQUE(ctyp,issr,slnr,agrp))",
      "CREATE TABLE keys(\(times),kcls INTEGER NOT NULL DEFAULT 0,labl BLOB,alis BLOB,perm INTEGER,priv INTEGER,"
        + "modi INTEGER,klbl BLOB NOT NULL DEFAULT '',atag BLOB NOT NULL DEFAULT '',crtr INTEGER NOT NULL DEFAULT 0,"
        + "type INTEGER NOT NULL DEFAULT 0,bsiz INTEGER NOT NULL DEFAULT 0,esiz INTEGER NOT NULL DEFAULT 0,\(end),"
        + "UNIQUE(kcls,klbl,atag,crtr,type,bsiz,esiz,agrp))",
      "CREATE TABLE tversion(version INTEGER)", "INSERT INTO tversion(version) VALUES(5)",
    ]
    let inserts = rows.map { "INSERT INTO \($0.table)(\($0.columns)) VALUES(\($0.values))" }
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    let all = (statements + inserts).joined(separator: ";")
    guard sqlite3_open(path, &handle) == SQLITE_OK, sqlite3_exec(handle, all, nil, nil, nil) == SQLITE_OK else {
      throw DatabaseFile.SQLiteFailure(message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "")
    }
    bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
  }

  /// Returns a real item of iOS 5, its key wrapped by this test's class key, and the vector with its column values.
  static func realItem() throws -> (blob: [UInt8], vector: TestVectors) {
    let vector = try TestVectors.section("item_blob_v2")
    let blob = try ItemBlob(parsing: vector["blob"].bytes)
    let wrapper = try DatabaseKeys(classKeys: [blob.keyClass: SensitiveBytes(copying: classKey)])
    let protection = try #require(ProtectionClass(keyClass: blob.keyClass))
    let wrapped = try wrapper.wrap(Secret(copying: vector["bulk_key"].bytes), for: protection, .classKey)
    let rewrapped = try ItemBlob(
      version: .v2, hasStaticIV: false, keyClass: blob.keyClass, wrappedKey: wrapped.withBytes { Array($0) },
      ciphertext: blob.ciphertext, tag: blob.tag)
    return (rewrapped.serialized(), vector)
  }

  static func hex(_ bytes: [UInt8]) -> String { "x'\(bytes.hex)'" }
}

@Suite("Keychain databases of iOS 6 and earlier")
struct OldSchemaTests {
  private static func hashed(_ text: String) -> String { OldDatabaseFile.hex(SHA1.hash(Array(text.utf8))) }

  private static func database(account: (String) -> String = hashed) throws -> KeychainDatabase {
    let (blob, vector) = try OldDatabaseFile.realItem()
    let expected = try vector["expect_attributes"]
    let text = { (code: String) in try expected[code].string }
    let row = [
      OldDatabaseFile.hex(blob), account(try text("acct")), hashed(try text("svce")), hashed(try text("labl")),
      "'\(try text("agrp"))'", "'\(try text("pdmn"))'",
    ]
    let undecryptable = OldDatabaseFile.hex(Array(blob.dropLast()))
    return try KeychainDatabase(
      file: OldDatabaseFile([
        ("genp", "data, acct, svce, labl, agrp, pdmn", row.joined(separator: ", ")),
        ("cert", "data, agrp, pdmn", "\(undecryptable), 'apple', 'dk'"),
        ("keys", "data, kcls, agrp, pdmn", "\(undecryptable), 1, 'apple', 'dk'"),
      ]).bytes)
  }

  private static func keys(of database: KeychainDatabase) throws -> DatabaseKeys {
    let keyClass = try ItemBlob(parsing: OldDatabaseFile.realItem().blob).keyClass
    return try database.keys(classKeys: [keyClass: SensitiveBytes(copying: OldDatabaseFile.classKey)])
  }

  @Test("A database of schema 5 is read with all its rows, and no table counts as missing")
  func rows() throws {
    let database = try Self.database()
    #expect(database.schema == .init(major: 5, minor: 0) && database.missingTables.isEmpty && database.isIntact)
    #expect(database.rows.map(\.kind) == [.genericPassword, .certificate, .key])
    #expect(database.rows.allSatisfy { $0.version == 2 && $0.digest == nil && !$0.hasDigestColumn })
  }

  @Test("An item of schema 5 is decrypted with its class key, and its missing digest does not count as a mismatch")
  func opening() throws {
    let database = try Self.database()
    let rows = try database.decrypted(with: Self.keys(of: database))
    let first = try #require(rows.first)
    let expected = try OldDatabaseFile.realItem().vector["expect_attributes"]
    #expect(first.opened.verdict == .open)
    #expect(try first.opened.item?.secret?.withBytes { Array($0) } == Array(expected["v_Data_ascii"].string.utf8))
    #expect(rows.allSatisfy { $0.hasMatchingDigest == nil })
    let dump = KeychainDump(database, opened: rows, hasGivenKeys: true)
    #expect(dump.items.allSatisfy { !$0.hasMismatchedDigest } && dump.database?.schema == "5.0")
  }

  @Test("A column of schema 5 may contain an attribute's value or its hash, but no other value")
  func columns() throws {
    for (account, isAccepted) in [
      (Self.hashed, true), ({ OldDatabaseFile.hex(Array($0.utf8)) }, true), ({ _ in Self.hashed("mallory") }, false),
    ] as [((String) -> String, Bool)] {
      let database = try Self.database(account: account)
      let first = try #require(try database.decrypted(with: Self.keys(of: database)).first)
      #expect(first.differingColumns.contains(.account) == !isAccepted)
    }
  }

  @Test("A database without a data column is rejected with its schema version")
  func withoutData() throws {
    let error = #expect(throws: KeyhaulError.self) {
      _ = try KeychainDatabase(file: OldDatabaseFile(dataColumn: "datum").bytes)
    }
    #expect(
      error == KeyhaulError(.unknownDatabase, "its item tables have no column named data; its schema is 5.0"))
  }
}
