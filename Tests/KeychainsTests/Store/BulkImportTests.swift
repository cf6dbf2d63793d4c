import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Importing very many items at once")
struct BulkImportTests {
  private static let schema = "SELECT type, name, tbl_name, sql FROM sqlite_master"

  private func items(_ count: Int) -> [KeychainItem] {
    (0..<count).map { number in
      // Two of a hundred items have the same primary key, so that their import conflicts.
      let account = "person-\(number.isMultiple(of: 100) ? number + 1 : number)"
      var item = KeychainItem.genericPassword(account, secret: "secret \(number)")
      item[.modificationDate] = .date(KeychainDate(secondsSinceReferenceDate: Double(number)))
      return item
    }
  }

  private func restore(_ items: [KeychainItem], into keychain: Keychain, announcing count: Int) throws {
    let kinds = Array(repeating: ItemKind.genericPassword, count: count)
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
    let (single, bulk) = (try Keychain(), try Keychain())
    try restore(items, into: single, announcing: 0)
    try restore(items, into: bulk, announcing: items.count)
    #expect(try Set(single.sql(Self.schema)) == Set(bulk.sql(Self.schema)))
    #expect(try bulk.sql("PRAGMA integrity_check") == [["'ok'"]])
    let rows = "SELECT rowid, acct, svce, agrp, sha1, mdat FROM genp ORDER BY rowid"
    let found = try bulk.sql(rows)
    #expect(found.count == 2_079)
    #expect(try single.sql(rows) == found)
    // Each query finds all rows only if its index is complete.
    let byAccount = "SELECT count(*) FROM genp INDEXED BY genpacct WHERE acct IS NOT NULL"
    let byGroup = "SELECT count(*) FROM genp INDEXED BY agrp_musr_tomb_svce_acct WHERE agrp > ''"
    #expect(try bulk.sql(byAccount) == [["2079"]])
    #expect(try bulk.sql(byGroup) == [["2079"]])
    #expect(try KeychainStore.open(at: bulk.path).count(of: .genericPassword) == 2_079)
  }

  @Test("A failed bulk import leaves all rows and indexes as they were")
  func failure() throws {
    let stop = KeyhaulError(.cancelled, "the test stopped it")
    let keychain = try Keychain()
    try keychain.add(.genericPassword("before", secret: "secret"))
    let before = try keychain.sql(Self.schema)
    let incoming = try IncomingItem(KeychainItem.genericPassword("during", secret: "secret"))
    #expect(throws: stop) {
      try keychain.store.restore { (transaction) throws(KeyhaulError) in
        try transaction.importing(repeatElement(.genericPassword, count: 2_100)) { () throws(KeyhaulError) in
          try transaction.importItem(incoming, keys: keychain.keys, random: keychain.random)
          throw stop
        }
      }
    }
    #expect(try keychain.sql(Self.schema) == before)
    #expect(try keychain.sql("SELECT count(*) FROM genp INDEXED BY genpacct WHERE acct IS NOT NULL") == [["1"]])
    #expect(try keychain.sql("PRAGMA integrity_check") == [["'ok'"]])
  }

  @Test("Indexes are not rebuilt for small imports or for tables with more rows than are imported")
  func keptIndexes() throws {
    let keychain = try Keychain()
    try restore(items(20), into: keychain, announcing: 20)
    let order = "SELECT name FROM sqlite_master ORDER BY rowid"
    let before = try keychain.sql(order)
    try restore(items(30), into: keychain, announcing: 1_999)
    #expect(try keychain.sql(order) == before)
    try keychain.store.restore { (transaction) throws(KeyhaulError) in
      // The table has few rows in comparison, so its indexes are dropped and created again.
      try transaction.importing(repeatElement(.genericPassword, count: 2_000)) { () throws(KeyhaulError) in }
    }
    #expect(try keychain.sql(order) != before)
    #expect(try Set(keychain.sql(order)) == Set(before))
  }
}
