import Basics
import GRDB
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Query plans for searches")
struct QueryPlanTests {
  /// Returns SQLite's query plan for a search.
  private func plan(_ query: ItemQuery, kind: ItemKind) throws -> [String] {
    let condition = try #require(try RowCondition(query, kind: kind, limit: query.limit))
    let database = try DatabaseQueue()
    return try database.write { database in
      for object in KeychainSchema.objects { try database.execute(sql: object.sql) }
      let parameterCount = condition.clause.count { $0 == "?" }
      return try Row.fetchAll(
        database, sql: "EXPLAIN QUERY PLAN " + KeychainTable.of(kind).selectSQL + condition.clause,
        arguments: StatementArguments([(any DatabaseValueConvertible)?](repeating: nil, count: parameterCount))
      ).compactMap { $0["detail"] as String? }
    }
  }

  @Test("A search by service and account uses an index")
  func genericPassword() throws {
    let query = ItemQuery(
      kind: .genericPassword, attributes: [.service: .string("chat.example"), .account: .string("anna")])
    let steps = try plan(query, kind: .genericPassword)
    #expect(steps.contains { $0.hasPrefix("SEARCH genp USING INDEX") })
    #expect(!steps.contains { $0.hasPrefix("SCAN") })
  }

  @Test("A search by server and account uses an index")
  func internetPassword() throws {
    let query = ItemQuery(
      kind: .internetPassword, attributes: [.server: .string("imap.example.org"), .account: .string("anna")])
    let steps = try plan(query, kind: .internetPassword)
    #expect(steps.contains { $0.hasPrefix("SEARCH inet USING INDEX") })
    #expect(!steps.contains { $0.hasPrefix("SCAN") })
  }
}
