import Basics
import GRDB
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Finding one item among very many")
struct QueryPlanTests {
  /// What SQLite says it will do for a search, asked on a connection of its own.
  private func plan(_ query: ItemQuery, kind: ItemKind) throws -> [String] {
    let condition = try #require(try RowCondition(query, kind: kind, limit: query.limit))
    let database = try DatabaseQueue()
    return try database.write { database in
      for object in KeychainSchema.objects { try database.execute(sql: object.sql) }
      let places = condition.clause.count { $0 == "?" }
      return try Row.fetchAll(
        database, sql: "EXPLAIN QUERY PLAN " + KeychainTable.of(kind).selectSQL + condition.clause,
        arguments: StatementArguments([(any DatabaseValueConvertible)?](repeating: nil, count: places))
      ).compactMap { $0["detail"] as String? }
    }
  }

  @Test("a search by service and account goes by an index, not through the table")
  func genericPassword() throws {
    let query = ItemQuery(
      kind: .genericPassword, attributes: [.service: .string("chat.example"), .account: .string("anna")])
    let steps = try plan(query, kind: .genericPassword)
    #expect(steps.contains { $0.hasPrefix("SEARCH genp USING INDEX") })
    #expect(!steps.contains { $0.hasPrefix("SCAN") })
  }

  @Test("so does one by server and account")
  func internetPassword() throws {
    let query = ItemQuery(
      kind: .internetPassword, attributes: [.server: .string("imap.example.org"), .account: .string("anna")])
    let steps = try plan(query, kind: .internetPassword)
    #expect(steps.contains { $0.hasPrefix("SEARCH inet USING INDEX") })
    #expect(!steps.contains { $0.hasPrefix("SCAN") })
  }
}
