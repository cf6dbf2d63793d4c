import Basics
import CSQLite
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import TestSupport
import Testing

@Suite("Changing a Simulator's keychain")
struct SimulatorKeychainTests {
  /// A folder with the database of the test vectors and its log.
  private struct SimulatorFolder {
    let directory: TemporaryDirectory
    var path: String { directory.path("keychain-2-debug.db") }

    init(_ file: [UInt8]? = nil, hasLog: Bool = true) throws {
      directory = try TemporaryDirectory()
      try directory.write(file ?? DatabaseFile.bytes(), to: "keychain-2-debug.db")
      if hasLog { try directory.write(DatabaseFile.log(), to: "keychain-2-debug.db-wal") }
    }

    /// Returns the content of each file by its name, except for shared memory, which reading changes.
    func files() throws -> [String: [UInt8]] {
      var files: [String: [UInt8]] = [:]
      for name in try FileManager.default.contentsOfDirectory(atPath: directory.url.path) where !name.hasSuffix("-shm")
      {
        files[name] = try directory.read(name)
      }
      return files
    }

    func rows() throws -> [KeychainDatabase.DecryptedRow] {
      let log = (try? directory.read("keychain-2-debug.db-wal")) ?? []
      let database = try KeychainDatabase(file: directory.read("keychain-2-debug.db"), log: log)
      #expect(database.isIntact)
      return try database.decrypted(with: database.keys())
    }
  }

  private static func item(_ account: String, secret: String, group: String = "ABCDE12345.org.example.new")
    -> KeychainItem
  {
    KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string("seeded"), .accessGroup: .string(group),
        .protection: .string("ck"),
        .creationDate: .date(KeychainDate(secondsSinceReferenceDate: 700_000_000.5)),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: 700_000_001)), .synchronizable: .integer(0),
        .tombstone: .integer(0), .multiUser: .data([]),
      ], secrets: ["v_Data": SensitiveBytes(copying: Array(secret.utf8))])
  }

  /// Returns the stored parts of a row, for comparisons.
  private static func stored(_ row: KeychainDatabase.DecryptedRow) -> [[UInt8]] {
    [Array(row.row.kind.rawValue.utf8), Array("\(row.row.number)".utf8), row.row.encryptedItem, row.row.digest ?? []]
  }

  @Test("The error for an item without a class, or for a missing row, is not about class key files")
  func refusals() throws {
    let folder = try SimulatorFolder()
    // The directory is removed with the last use of `folder`.
    defer { withExtendedLifetime(folder) {} }
    let keychain = try SimulatorKeychain(path: folder.path)
    var item = Self.item("anna", secret: "x")
    item[.protection] = nil
    let errors = [
      #expect(throws: KeyhaulError.self) { try keychain.insert(item, replacingExisting: false) },
      #expect(throws: KeyhaulError.self) { try keychain.remove(row: 987_654, of: .genericPassword) },
      #expect(throws: KeyhaulError.self) { try keychain.replace(row: 987_654, with: Self.item("b", secret: "y")) },
    ].compactMap(\.self)
    #expect(
      errors.map(\.reason) == ["an item has no protection class", "a row no longer exists", "a row no longer exists"])
    #expect(errors.allSatisfy { $0.code == .malformed && $0.category == .refused })
    #expect(!errors.contains { $0.summary.contains("class key") || $0.meaning.advice.contains("digits") })
  }

  @Test("An inserted item is encrypted like the existing items, and every existing row stays the same")
  func added() throws {
    let folder = try SimulatorFolder()
    let rowsBefore = try folder.rows().map(Self.stored)
    let keychain = try SimulatorKeychain(path: folder.path)
    #expect(try keychain.insert(Self.item("anna", secret: "tr0ub4dor"), replacingExisting: false) == .added)
    // The argument, an image of the database, is used only if the commit fails.
    try keychain.commit(changing: [])
    let rows = try folder.rows()
    #expect(rows.count == rowsBefore.count + 1)
    #expect(
      rows.allSatisfy { $0.result.verdict == .open && $0.differingColumns.isEmpty && $0.hasMatchingDigest != false })
    #expect(rows.map(Self.stored).filter(rowsBefore.contains).count == rowsBefore.count)
    #expect(rows.compactMap(\.result.fault?.reason) == [])
    let newRow = try #require(rows.first { $0.result.item?[.account] == .string("anna") })
    #expect(newRow.row.version == 8 && newRow.result.keyClass?.rawValue == 7)
    #expect(newRow.result.item?.secret?.withBytes { Array($0) } == Array("tr0ub4dor".utf8))
    #expect(newRow.result.item?[.persistentReference]?.dataValue?.count == 16)
  }

  @Test("An item with the same primary key is replaced only on request, and keeps its row and persistent reference")
  func replaced() throws {
    let folder = try SimulatorFolder()
    do {
      let keychain = try SimulatorKeychain(path: folder.path)
      #expect(try keychain.insert(Self.item("anna", secret: "one"), replacingExisting: true) == .added)
      try keychain.commit(changing: [])
    }
    let original = try #require(try folder.rows().first { $0.result.item?[.account] == .string("anna") })
    do {
      let keychain = try SimulatorKeychain(path: folder.path)
      #expect(try keychain.insert(Self.item("anna", secret: "two"), replacingExisting: false) == .kept)
      #expect(try keychain.insert(Self.item("anna", secret: "three"), replacingExisting: true) == .replaced)
      try keychain.commit(changing: [])
    }
    let found = try folder.rows().filter { $0.result.item?[.account] == .string("anna") }
    #expect(found.map(\.row.number) == [original.row.number])
    #expect(found.first?.result.item?.secret?.withBytes { Array($0) } == Array("three".utf8))
    #expect(found.first?.result.item?[.persistentReference] == original.result.item?[.persistentReference])
  }

  @Test("Removing an access group deletes its rows and no others")
  func removed() throws {
    let folder = try SimulatorFolder()
    let rowsBefore = try folder.rows()
    let group = "ABCDE12345.com.example.notes"
    let keychain = try SimulatorKeychain(path: folder.path)
    let count = try keychain.removeItems(ofGroups: [group, group])
    try keychain.commit(changing: [])
    let remainingRows = rowsBefore.filter { $0.result.item?.accessGroup != group }
    #expect(count == rowsBefore.count - remainingRows.count && count > 0 && !remainingRows.isEmpty)
    #expect(try folder.rows().map(Self.stored) == remainingRows.map(Self.stored))
  }

  @Test("Changes that are not committed are undone")
  func undone() throws {
    let folder = try SimulatorFolder()
    let rowsBefore = try folder.rows().map(Self.stored)
    do {
      let keychain = try SimulatorKeychain(path: folder.path)
      _ = try keychain.insert(Self.item("anna", secret: "x"), replacingExisting: true)
      _ = try keychain.removeItems(ofGroups: ["ABCDE12345.com.example.notes"])
    }
    #expect(try folder.rows().map(Self.stored) == rowsBefore)
  }

  @Test("If the class of inserted items has no key, one is created for this class, and for no other class")
  func newClass() throws {
    let folder = try SimulatorFolder(
      DatabaseFile.changed(by: "DELETE FROM metadatakeys; DELETE FROM genp; DELETE FROM inet"), hasLog: false)
    let keychain = try SimulatorKeychain(path: folder.path)
    for account in ["a", "b"] { _ = try keychain.insert(Self.item(account, secret: account), replacingExisting: true) }
    try keychain.commit(changing: [])
    let database = try KeychainDatabase(file: folder.directory.read("keychain-2-debug.db"))
    #expect(database.wrappedMetadataKeys.map(\.key.rawValue) == [7])
    #expect(try folder.rows().filter { $0.result.isOpen }.count >= 2)
  }

  @Test("The App Clip flag is stored in its column, with 0 for an app's item, and is not an attribute")
  func appClip() throws {
    let folder = try SimulatorFolder()
    let keychain = try SimulatorKeychain(path: folder.path)
    var clip = Self.item("clip", secret: "x")
    clip[.appClip] = .integer(1)
    #expect(try keychain.insert(clip, replacingExisting: true) == .added)
    #expect(try keychain.insert(Self.item("app", secret: "x"), replacingExisting: true) == .added)
    try keychain.commit(changing: [])
    let rows = try folder.rows()
    func flag(_ account: String) -> ColumnValue? {
      rows.first { $0.result.item?[.account] == .string(account) }?.row.columns[.appClip]
    }
    #expect(flag("clip") == .integer(1) && flag("app") == .integer(0))
    #expect(rows.allSatisfy { $0.differingColumns.isEmpty && $0.hasMatchingDigest != false })
  }

  @Test("Databases with schemas 11.0 to 12.11 can be changed, and others cannot")
  func schemas() throws {
    for (major, minor, isAccepted) in [
      (11, 0, true), (11, 99, true), (12, 0, true), (12, 11, true), (10, 255, false), (12, 12, false), (13, 0, false),
    ] {
      let bytes = try DatabaseFile.changed(by: "UPDATE tversion SET version = \(major), minor = \(minor)")
      let folder = try SimulatorFolder(bytes, hasLog: false)
      let keychain = try? SimulatorKeychain(path: folder.path)
      #expect((keychain != nil) == isAccepted, "\(major).\(minor)")
    }
  }

  @Test("A database that another process has open is rejected and not changed")
  func busy() throws {
    let folder = try SimulatorFolder(hasLog: false)
    var otherConnection: OpaquePointer?
    defer { sqlite3_close_v2(otherConnection) }
    #expect(sqlite3_open(folder.path, &otherConnection) == SQLITE_OK)
    #expect(
      sqlite3_exec(otherConnection, "PRAGMA journal_mode = WAL; SELECT count(*) FROM genp", nil, nil, nil) == SQLITE_OK)
    let filesBefore = try folder.files()
    let error = #expect(throws: KeyhaulError.self) { _ = try SimulatorKeychain(path: folder.path) }
    #expect(error?.code == .databaseBusy && error?.category == .busy)
    #expect(try folder.files() == filesBefore)
  }

  @Test("A database with triggers, views, a newer schema or a device's keys is rejected and not changed")
  func refused() throws {
    let cases: [(sql: String, code: KeyhaulError.Code, reason: String)] = [
      (
        "CREATE TRIGGER t AFTER INSERT ON genp BEGIN DELETE FROM genp; END", .unchangeable,
        "it defines a trigger, which no Simulator's database does"
      ),
      ("CREATE VIEW v AS SELECT * FROM genp", .unchangeable, "it defines a view, which no Simulator's database does"),
      (
        "UPDATE tversion SET version = 13, minor = 0", .unchangeable,
        "its schema is 13.0; Keyhaul can change schemas 11.0 to 12.11"
      ),
      ("DELETE FROM tversion", .unchangeable, "it does not state its schema version"),
      (
        "UPDATE metadatakeys SET data = zeroblob(40) WHERE keyclass = '6'", .unchangeable,
        "its keys are not a Simulator's keys"
      ),
      ("DROP TABLE metadatakeys", .unknownDatabase, "it has no metadatakeys table"),
    ]
    for (sql, code, reason) in cases {
      // The log belongs to the unchanged database.
      let folder = try SimulatorFolder(DatabaseFile.changed(by: sql), hasLog: false)
      let filesBefore = try folder.files()
      let error = #expect(throws: KeyhaulError.self, "\(sql)") { _ = try SimulatorKeychain(path: folder.path) }
      #expect(error == KeyhaulError(code, reason), "\(sql)")
      #expect(try folder.files() == filesBefore, "\(sql)")
    }
  }

  @Test("A missing database is not writable")
  func missingDatabase() throws {
    let error = #expect(throws: KeyhaulError.self) { _ = try SimulatorKeychain(path: "/nowhere/k.db") }
    #expect(error?.code == .databaseNotWritable)
  }
}
