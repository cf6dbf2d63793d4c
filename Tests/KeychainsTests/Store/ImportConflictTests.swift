import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Import conflicts with existing rows")
struct ImportConflictTests {
  /// The backup's reference, as it is stored in the column.
  private let referenceBytes = [UInt8](repeating: 0xBB, count: 16)
  /// The backup's reference, as it is stored in the backup: it begins with the table.
  private var referenceWithTable: [UInt8] { Array("genp".utf8) + referenceBytes }

  /// Creates a keychain with one restored row.
  private func keychain(_ existing: KeychainItem) throws -> Keychain {
    let keychain = try Keychain()
    try keychain.restore(
      existing.with([.uuid: .string("OLD"), .persistentReference: .data(Array(repeating: 1, count: 16))]))
    return keychain
  }

  /// Returns the row number, dates, identifiers, and tombstone flag of the only row.
  private func row(_ keychain: Keychain) throws -> [String] {
    let rows = try keychain.sql("SELECT rowid, mdat, cdat, UUID, persistref, tomb FROM genp")
    #expect(rows.count == 1)
    return rows.first ?? []
  }

  private let old = KeychainItem.genericPassword(secret: "old")
  private let new = KeychainItem.genericPassword(secret: "new").with([.uuid: .string("NEW")])

  @Test("A later item replaces the row in place, with the dates, UUID and reference from the backup")
  func later() throws {
    let keychain = try keychain(old.dated(1000))
    let resolution = try keychain.restore(new.dated(1001), reference: referenceWithTable)
    #expect(resolution.outcome == .replaces(.existingOlder))
    #expect(try row(keychain) == ["1", "1001.0", "1.0", "'NEW'", "x" + referenceBytes.hex, "0"])
    #expect(try keychain.only().secretText == "new")
  }

  @Test("An earlier item leaves the row as it is, except for the backup's reference")
  func earlier() throws {
    let keychain = try keychain(old.dated(1000))
    let resolution = try keychain.restore(new.dated(999), reference: referenceWithTable)
    #expect(resolution.outcome == .keepsExisting(.existingNewer))
    #expect(try row(keychain) == ["1", "1000.0", "1.0", "'OLD'", "x" + referenceBytes.hex, "0"])
    #expect(try keychain.only().secretText == "old")
  }

  @Test("With equal dates, the item with the smaller digest wins, regardless of the order")
  func sameDate() throws {
    let oldDigest = try IncomingItem(old.dated(1000)).digest()
    let newDigest = try IncomingItem(new.dated(1000)).digest()
    let winner = oldDigest.lexicographicallyPrecedes(newDigest) ? "old" : "new"
    for (first, second) in [(old, new), (new, old)] {
      let keychain = try keychain(first.dated(1000))
      let resolution = try keychain.restore(second.dated(1000), reference: referenceWithTable)
      #expect(try keychain.only().secretText == winner)
      let row = try row(keychain)
      // Only an item that replaces a row gets a later date.
      #expect(row[1] == (resolution.outcome.isReplacement ? "1000.001" : "1000.0"))
      #expect(row[4] == "x" + referenceBytes.hex)
    }
  }

  @Test("Importing an identical item changes only the reference, and nothing if the reference is equal")
  func identical() throws {
    let keychain = try keychain(old.dated(1000))
    let resolution = try keychain.restore(old.dated(1000), reference: referenceWithTable)
    #expect(resolution.outcome == .identical)
    let rowsAfter = try keychain.sql("SELECT * FROM genp")
    for equalOrNoReference in [referenceWithTable, nil] {
      #expect(try keychain.restore(old.dated(1000), reference: equalOrNoReference).outcome == .identical)
      #expect(
        try keychain.restore(new.dated(999), reference: equalOrNoReference).outcome == .keepsExisting(.existingNewer))
      // The encrypted data are equal too, so the item was not encrypted again.
      #expect(try keychain.sql("SELECT * FROM genp") == rowsAfter)
    }
    #expect(try row(keychain) == ["1", "1000.0", "1.0", "'OLD'", "x" + referenceBytes.hex, "0"])
  }

  @Test("An item without a date does not replace a row with a date")
  func undatedItem() throws {
    let keychain = try keychain(old.dated(1000))
    #expect(try keychain.restore(new).outcome == .keepsExisting(.incomingUndated))
    #expect(try keychain.only().secretText == "old")
  }

  @Test("An item with a date replaces a row without a date")
  func undatedRow() throws {
    let keychain = try keychain(old)
    #expect(try keychain.restore(new.dated(3)).outcome == .replaces(.existingUndated))
    #expect(try keychain.only().modificationDate == .seconds(3) && row(keychain)[1] == "3.0")
    #expect(try keychain.only().secretText == "new")
  }

  @Test("A tombstone is replaced regardless of its date, and its UUID and reference are kept")
  func tombstone() throws {
    let keychain = try keychain(old.dated(9000).with([.tombstone: .integer(1)]))
    let resolution = try keychain.restore(new.dated(5), reference: referenceWithTable)
    #expect(resolution.outcome == .replaces(.existingTombstone))
    #expect(try row(keychain) == ["1", "5.0", "1.0", "'OLD'", "x" + [UInt8](repeating: 1, count: 16).hex, "0"])
  }

  @Test("A row that cannot be decoded is replaced regardless of its date", arguments: ["data = x'00'", "sha1 = x'00'"])
  func corrupt(change: String) throws {
    let keychain = try keychain(old.dated(9000))
    try keychain.tamper("UPDATE genp SET \(change)")
    #expect(try keychain.restore(new.dated(5), reference: referenceWithTable).outcome == .replaces(.existingCorrupt))
    #expect(try row(keychain) == ["1", "5.0", "1.0", "'NEW'", "x" + referenceBytes.hex, "0"])
  }

  @Test("A row whose class key is not in memory stops the import, and nothing is changed")
  func locked() throws {
    let keychain = try keychain(old.dated(1000))
    let rowsBefore = try keychain.sql("SELECT * FROM genp")
    let keys = try keychain.lockedKeys()
    let incoming = try IncomingItem(.genericPassword(as: .always).dated(2000))
    let error = #expect(throws: KeyhaulError.self) {
      try keychain.store.restore { (transaction) throws(KeyhaulError) in
        try transaction.importItem(incoming, keys: keys, random: keychain.random)
      }
    }
    #expect(error?.code == .interactionNotAllowed)
    #expect(try keychain.sql("SELECT * FROM genp") == rowsBefore)
  }

  @Test("The store makes the decision that a plan predicts from the rows", arguments: [999.0, 1000, 1001])
  func planAndStore(date: Double) throws {
    let keychain = try keychain(old.dated(1000))
    let incoming = try IncomingItem(new.dated(date))
    let rows = try keychain.store.rows(includingTombstones: true, keys: keychain.keys)
    let key = try PrimaryKey(of: incoming.item)
    let existing = try rows.first { $0.summary.primaryKey == key }.map { try ExistingRow($0) }
    let planned = try ImportConflict.resolve(incoming: incoming, existing: existing)
    #expect(try keychain.restore(new.dated(date)) == planned)
    #expect(existing != nil)
  }

  @Test("Two items of a backup with the same primary key are resolved as planned", arguments: [999.0, 1000, 1001])
  func samePrimaryKey(date: Double) throws {
    let first = try IncomingItem(old.dated(1000))
    let second = try IncomingItem(new.dated(date))
    let stored = try #require(
      try ImportConflict.resolve(incoming: first, existing: nil).storedItem(incoming: first.item, existing: nil))
    let planned = try ImportConflict.resolve(incoming: second, existing: try ExistingRow(storing: stored))
    let plannedItem = try #require(planned.storedItem(incoming: second.item, existing: stored))

    let keychain = try Keychain()
    try keychain.restore(old.dated(1000))
    #expect(try keychain.restore(new.dated(date)) == planned)

    let row = try #require(try keychain.store.rows(includingTombstones: true, keys: keychain.keys).first)
    #expect(try ExistingRow(row) == ExistingRow(storing: plannedItem))
  }
}
