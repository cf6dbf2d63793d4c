import Basics
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
    let insertions = rows.map { "INSERT INTO \($0.table)(\($0.columns)) VALUES(\($0.values))" }
    let statements = Self.schema(dataColumn: dataColumn) + insertions
    try DatabaseFile.execute(statements.joined(separator: ";"), at: path)
    bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
  }

  private static func schema(dataColumn: String) -> [String] {
    let firstColumns = "rowid INTEGER PRIMARY KEY AUTOINCREMENT,cdat REAL,mdat REAL"
    let passwordColumns = """
      desc BLOB,icmt BLOB,crtr INTEGER,type INTEGER,scrp INTEGER,labl BLOB,alis BLOB,invi INTEGER,nega INTEGER,\
      cusi INTEGER,prot BLOB,acct BLOB NOT NULL DEFAULT ''
      """
    let lastColumns = "\(dataColumn) BLOB,agrp TEXT,pdmn TEXT"
    return [
      """
      CREATE TABLE genp(\(firstColumns),\(passwordColumns),svce BLOB NOT NULL DEFAULT '',gena BLOB,\(lastColumns),\
      UNIQUE(acct,svce,agrp))
      """,
      """
      CREATE TABLE inet(\(firstColumns),\(passwordColumns),sdmn BLOB NOT NULL DEFAULT '',\
      srvr BLOB NOT NULL DEFAULT '',ptcl INTEGER NOT NULL DEFAULT 0,atyp BLOB NOT NULL DEFAULT '',\
      port INTEGER NOT NULL DEFAULT 0,path BLOB NOT NULL DEFAULT '',\(lastColumns),\
      UNIQUE(acct,sdmn,srvr,ptcl,atyp,port,path,agrp))
      """,
      """
      CREATE TABLE cert(\(firstColumns),ctyp INTEGER NOT NULL DEFAULT 0,cenc INTEGER,labl BLOB,alis BLOB,subj BLOB,\
      issr BLOB NOT NULL DEFAULT '',slnr BLOB NOT NULL DEFAULT '',skid BLOB,pkhh BLOB,\(lastColumns),\
      UNIQUE(ctyp,issr,slnr,agrp))
      """,
      """
      CREATE TABLE keys(\(firstColumns),kcls INTEGER NOT NULL DEFAULT 0,labl BLOB,alis BLOB,perm INTEGER,\
      priv INTEGER,modi INTEGER,klbl BLOB NOT NULL DEFAULT '',atag BLOB NOT NULL DEFAULT '',\
      crtr INTEGER NOT NULL DEFAULT 0,type INTEGER NOT NULL DEFAULT 0,bsiz INTEGER NOT NULL DEFAULT 0,\
      esiz INTEGER NOT NULL DEFAULT 0,\(lastColumns),UNIQUE(kcls,klbl,atag,crtr,type,bsiz,esiz,agrp))
      """,
      "CREATE TABLE tversion(version INTEGER)", "INSERT INTO tversion(version) VALUES(5)",
    ]
  }

  /// Returns a real item of iOS 5, and the test vector with its column values. This test's class key wraps the item's
  /// key.
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

  /// Creates a database with a real item, and with a certificate and a key that cannot be decrypted.
  ///
  /// - Parameter account: Returns the column value of an account name.
  private static func database(account: (String) -> String = hashed) throws -> KeychainDatabase {
    let (blob, vector) = try OldDatabaseFile.realItem()
    let attributes = try vector["expect_attributes"]
    let row = [
      OldDatabaseFile.hex(blob), account(try attributes["acct"].string), hashed(try attributes["svce"].string),
      hashed(try attributes["labl"].string), "'\(try attributes["agrp"].string)'",
      "'\(try attributes["pdmn"].string)'",
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
    let firstRow = try #require(rows.first)
    let expected = try OldDatabaseFile.realItem().vector["expect_attributes"]
    #expect(firstRow.result.verdict == .open)
    #expect(try firstRow.result.item?.secret?.withBytes { Array($0) } == Array(expected["v_Data_ascii"].string.utf8))
    #expect(rows.allSatisfy { $0.hasMatchingDigest == nil })
    let dump = KeychainDump(database, opened: rows, hasGivenKeys: true)
    #expect(dump.items.allSatisfy { !$0.hasMismatchedDigest } && dump.database?.schema == "5.0")
  }

  @Test("A column of schema 5 may contain an attribute's value or its hash, but no other value")
  func columns() throws {
    let hash = Self.hashed
    let value = { (name: String) in OldDatabaseFile.hex(Array(name.utf8)) }
    let hashOfOtherValue = { (_: String) in Self.hashed("mallory") }
    for (account, isAccepted) in [(hash, true), (value, true), (hashOfOtherValue, false)] {
      let database = try Self.database(account: account)
      let firstRow = try #require(try database.decrypted(with: Self.keys(of: database)).first)
      #expect(firstRow.differingColumns.contains(.account) == !isAccepted)
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
