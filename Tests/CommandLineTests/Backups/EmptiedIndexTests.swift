import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

/// A database file whose indexes can be emptied in a copy.
struct IndexedDatabase {
  let bytes: [UInt8]
  /// The names of the indexes and the numbers of their first pages, without the indexes of empty tables.
  let indexes: [(name: String, rootPage: Int)]

  /// Reads a database file, and lists the indexes that SQLite finds in a copy of it.
  ///
  /// - Parameter path: The path of a database file without a log.
  init(_ path: URL) throws {
    bytes = Array(try Data(contentsOf: path))
    let directory = try TemporaryDirectory()
    let copy = directory.url.appending(path: "copy.db")
    try Data(bytes).write(to: copy)
    indexes = try DatabaseQueue(path: copy.path).read { database in
      try Row.fetchAll(
        database, sql: "SELECT name, rootpage, tbl_name FROM sqlite_master WHERE type = 'index' AND rootpage > 1"
      ).compactMap { row in
        let (name, rootPage, table): (String, Int, String) = (row[0], row[1], row[2])
        let rowCount = try Int.fetchOne(database, sql: "SELECT count(*) FROM \"\(table)\" NOT INDEXED") ?? 0
        return rowCount == 0 ? nil : (name, rootPage)
      }
    }
  }

  /// Returns the bytes of the file with one index emptied: an empty leaf page replaces the index's first page.
  ///
  /// The page size is at byte 16 of the file, as a big-endian integer of two bytes, where 1 stands for 65,536. An index leaf
  /// starts with the type 0x0A, and has the offset of its content at byte 5. In an empty page, this is the page's end.
  ///
  /// Source: SQLite, "Database File Format", section 1.6.
  func emptying(indexAt rootPage: Int) -> [UInt8] {
    let sizeField = Int(bytes[16]) << 8 | Int(bytes[17])
    let pageSize = sizeField == 1 ? 65536 : sizeField
    var emptyLeaf = [UInt8](repeating: 0, count: pageSize)
    emptyLeaf[0] = 0x0A
    (emptyLeaf[5], emptyLeaf[6]) = (UInt8(pageSize >> 8 & 0xFF), UInt8(pageSize & 0xFF))
    var changed = bytes
    changed.replaceSubrange((rootPage - 1) * pageSize..<rootPage * pageSize, with: emptyLeaf)
    return changed
  }
}

@Suite("Emptied database indexes")
struct EmptiedIndexTests {
  @Test("Verify reports an emptied index of a manifest, and no command changes the backup")
  func manifest() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.removeSeal("plain")
    let database = try IndexedDatabase(sandbox.home.appending(path: "plain/Manifest.db"))
    #expect(
      database.indexes.map(\.name).sorted() == [
        "FilesDomainIdx", "FilesFlagsIdx", "FilesRelativePathIdx", "sqlite_autoindex_Files_1",
      ])
    #expect(try sandbox.keyhaul("verify plain").status == 0)
    for index in database.indexes {
      try sandbox.write(database.emptying(indexAt: index.rootPage), to: "plain/Manifest.db")
      let contentsBefore = try sandbox.fileContents(in: "plain")
      let verified = try sandbox.keyhaul("verify plain")
      #expect(
        verified.status == 13 && unwrapped(verified.output).contains("index \(index.name)"), "\(index): \(verified)")
      // The table still has its rows, so they can be read.
      let inspected = try sandbox.keyhaul("inspect plain --list")
      #expect(inspected.output.contains("push token"), "\(index): \(inspected)")
      for line in [
        "item add plain --service mail --account anna --in-place",
        "item delete plain --account anna --yes --in-place",
        "rekey plain --new-password-file .bp --rounds 1 --in-place", "restore plain --to new-phone --yes",
      ] {
        let outcome = try sandbox.keyhaul(line)
        #expect(outcome.status == 13, "\(index) \(line): \(outcome)")
      }
      #expect(try sandbox.fileContents(in: "plain") == contentsBefore)
    }
  }

  @Test("Verify reports an emptied index of a Simulator's keychain, and no command changes the database")
  func keychainDatabase() throws {
    let sandbox = try DeviceSandbox()
    try sandbox.run("mkdir -p sim/data/Library/Keychains; keyhaul device create phone --from old-phone -q")
    try Data("secret".utf8).write(to: sandbox.home.appending(path: ".bp"))
    try sandbox.run("chmod 600 .bp; keyhaul backup phone -o b.tar --password-file .bp --rounds 1 -q")
    let path = sandbox.home.appending(path: "sim/data/Library/Keychains/keychain-2-debug.db")
    try sandbox.writeKeychainDatabase(to: "sim/data/Library/Keychains/keychain-2-debug.db", withLog: false)
    try DatabaseQueue(path: path.path).writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
    let accessGroup = try #require(
      try DatabaseQueue(path: path.path).read { try String.fetchOne($0, sql: "SELECT agrp FROM genp") })
    let seed = "keyhaul simulator seed sim --from phone --yes"
    let add = "echo x | keyhaul item add sim --service s --account a --access-group t --secret-file -"
    let otherCommands = [
      "keyhaul simulator reset sim --app \(accessGroup) --yes",
      "keyhaul restore b.tar --to sim --password-file .bp --yes",
      "keyhaul item delete sim --kind generic --yes", "keyhaul item update sim --kind generic --new-label l --yes",
    ]
    let database = try IndexedDatabase(path)
    #expect(database.indexes.count == 6, "\(database.indexes)")
    #expect(try sandbox.run("keyhaul verify sim").status == 0)
    for (position, index) in database.indexes.enumerated() {
      let emptied = database.emptying(indexAt: index.rootPage)
      try Data(emptied).write(to: path)
      let verified = try sandbox.run("keyhaul verify sim --json")
      #expect(verified.status == 13 && verified.output.contains(#""id": "indexes""#), "\(index): \(verified)")
      // If the index had several pages, the rest of them are now unused. The check of the pages may report them first.
      let text = unwrapped(try sandbox.run("keyhaul verify sim").output)
      #expect(text.contains("is damaged: indexes") || text.contains("is damaged: pages"), "\(index): \(text)")
      // For every third index, all commands run. For the other indexes, one command runs.
      let oneCommand = position % 2 == 0 ? seed : add
      for line in position % 3 == 0 ? [seed, add] + otherCommands : [oneCommand] {
        let outcome = try sandbox.run(line)
        #expect(outcome.status == 13, "\(index) \(line): \(outcome)")
      }
      #expect(try Array(Data(contentsOf: path)) == emptied, "\(index)")
    }
  }

  @Test("No item is added to a virtual device with an emptied index, so no item is stored twice")
  func device() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let path = sandbox.home.appending(path: "devices/old-phone/keychain-2.db")
    let database = try IndexedDatabase(path)
    #expect(database.indexes.count >= 40, "\(database.indexes)")
    let add = """
      echo x | keyhaul item add old-phone --service chat.example --account anna --secret-file - \
      --access-group ABCDE12345.org.example.chat
      """
    // The device already has this item, so adding it again is refused.
    #expect(try sandbox.devices.run(add).errors.contains("already has this item"))
    for (position, index) in database.indexes.enumerated() {
      let emptied = database.emptying(indexAt: index.rootPage)
      try Data(emptied).write(to: path)
      let restore = "keyhaul restore b.tar --to old-phone --password-file .bp --yes"
      for line in position % 10 == 0 ? [add, restore] : [add] {
        let outcome = try sandbox.devices.run(line)
        #expect(outcome.status == 13, "\(index): \(outcome)")
      }
      #expect(try Array(Data(contentsOf: path)) == emptied, "\(index)")
    }
    // The table still has the items, so they can be backed up.
    let unique = try #require(database.indexes.first { $0.name == "sqlite_autoindex_genp_1" })
    try Data(database.emptying(indexAt: unique.rootPage)).write(to: path)
    let saved = try sandbox.keyhaul("backup old-phone -o saved.tar --password-file .bp --rounds 1 --json")
    #expect(try saved.status == 0 && sandbox.object(saved.output)["items"] as? Int == 18, "\(saved)")
    try Data(database.bytes).write(to: path)
    #expect(try sandbox.devices.run(add).errors.contains("already has this item"))
  }

  @Test("Verify reports a journal whose beginning is damaged, but not the journal of a finished change")
  func journal() throws {
    let sandbox = try DeviceSandbox()
    try sandbox.writeKeychainDatabase(to: "k.db", withLog: false)
    // SQLite ends a change by deleting the journal, emptying it, or filling its beginning with zeros.
    let magicNumber: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    let journals: [(bytes: [UInt8], isReported: Bool)] = [
      ([UInt8](repeating: 0, count: 512), false), ([], false), ([0] + magicNumber.dropFirst() + [0, 0, 0, 1], true),
      ([1] + magicNumber.dropFirst() + [0, 0, 0, 1], true), (Array("no journal".utf8), true),
    ]
    for (bytes, isReported) in journals {
      try Data(bytes).write(to: sandbox.home.appending(path: "k.db-journal"))
      let verified = try sandbox.run("keyhaul verify k.db")
      let message = "the journal next to it does not begin like one, so SQLite ignores it"
      #expect(unwrapped(verified.output).contains(message) == isReported, "\(bytes): \(verified)")
      #expect(verified.status == (isReported ? 3 : 0), "\(bytes): \(verified)")
    }
  }
}
