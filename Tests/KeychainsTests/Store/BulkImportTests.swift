import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Importing very many items at once")
struct BulkImportTests {
  private static let schema = "SELECT type, name, tbl_name, sql FROM sqlite_master"

  /// Creates items. In each hundred, two items have the same primary key, so their import conflicts.
  private func items(_ count: Int) -> [KeychainItem] {
    (0..<count).map { number in
      let account = "person-\(number.isMultiple(of: 100) ? number + 1 : number)"
      var item = KeychainItem.genericPassword(account, secret: "secret \(number)")
      item[.modificationDate] = .date(KeychainDate(secondsSinceReferenceDate: Double(number)))
      return item
    }
  }

  /// Imports items.
  ///
  /// - Parameter announcedCount: The number of items that the store expects, from which it decides how to import.
  private func restore(_ items: [KeychainItem], into keychain: Keychain, announcedCount: Int) throws {
    let kinds = Array(repeating: ItemKind.genericPassword, count: announcedCount)
    try keychain.store.restore { (transaction) throws(KeyhaulError) in
      try transaction.importing(kinds) { () throws(KeyhaulError) in
        for item in items {
          let incoming = try translatingRuleErrors(try IncomingItem(item))
          try transaction.importItem(incoming, keys: keychain.keys, random: keychain.random)
        }
      }
    }
  }

  @Test("A bulk import results in the same rows and indexes as single imports")
  func sameRows() throws {
    let items = items(2_100)
    let conflictCount = 21
    let rowCount = items.count - conflictCount
    let (single, bulk) = (try Keychain(), try Keychain())
    try restore(items, into: single, announcedCount: 0)
    try restore(items, into: bulk, announcedCount: items.count)
    #expect(try Set(single.sql(Self.schema)) == Set(bulk.sql(Self.schema)))
    #expect(try bulk.sql("PRAGMA integrity_check") == [["'ok'"]])
    let selectRows = "SELECT rowid, acct, svce, agrp, sha1, mdat FROM genp ORDER BY rowid"
    let rows = try bulk.sql(selectRows)
    #expect(rows.count == rowCount)
    #expect(try single.sql(selectRows) == rows)
    // Each query finds all rows only if its index is complete.
    let countByAccount = "SELECT count(*) FROM genp INDEXED BY genpacct WHERE acct IS NOT NULL"
    let countByGroup = "SELECT count(*) FROM genp INDEXED BY agrp_musr_tomb_svce_acct WHERE agrp > ''"
    #expect(try bulk.sql(countByAccount) == [["\(rowCount)"]])
    #expect(try bulk.sql(countByGroup) == [["\(rowCount)"]])
    #expect(try KeychainStore.open(at: bulk.path).count(of: .genericPassword) == rowCount)
  }

  @Test("A failed bulk import leaves all rows and indexes as they were")
  func failure() throws {
    let stop = KeyhaulError(.cancelled, "the test stopped it")
    let keychain = try Keychain()
    try keychain.add(.genericPassword("before", secret: "secret"))
    let schemaBefore = try keychain.sql(Self.schema)
    let incoming = try IncomingItem(KeychainItem.genericPassword("during", secret: "secret"))
    #expect(throws: stop) {
      try keychain.store.restore { (transaction) throws(KeyhaulError) in
        try transaction.importing(repeatElement(.genericPassword, count: 2_100)) { () throws(KeyhaulError) in
          try transaction.importItem(incoming, keys: keychain.keys, random: keychain.random)
          throw stop
        }
      }
    }
    #expect(try keychain.sql(Self.schema) == schemaBefore)
    #expect(try keychain.sql("SELECT count(*) FROM genp INDEXED BY genpacct WHERE acct IS NOT NULL") == [["1"]])
    #expect(try keychain.sql("PRAGMA integrity_check") == [["'ok'"]])
  }

  @Test("Indexes are only dropped and created again for an import of at least 2,000 items")
  func recreatedIndexes() throws {
    let keychain = try Keychain()
    try restore(items(20), into: keychain, announcedCount: 20)
    // This order lists an index last when it was created again.
    let namesInOrder = "SELECT name FROM sqlite_master ORDER BY rowid"
    let namesBefore = try keychain.sql(namesInOrder)
    try restore(items(30), into: keychain, announcedCount: 1_999)
    #expect(try keychain.sql(namesInOrder) == namesBefore)
    try restore([], into: keychain, announcedCount: 2_000)
    #expect(try keychain.sql(namesInOrder) != namesBefore)
    #expect(try Set(keychain.sql(namesInOrder)) == Set(namesBefore))
  }
}
