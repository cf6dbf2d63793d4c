import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@Suite("A primary key without a database")
struct PrimaryKeyValues {
  @Test("an empty value and an absent one have the same columns")
  func absentIsEmpty() throws {
    let absent = KeychainItem(kind: .genericPassword, attributes: [.accessGroup: .string("g")])
    let empty = absent.with([
      .account: .string(""), .service: .data([]), .syncViewHint: .string(""), .tokenID: .string(""),
      .sharingGroup: .string(""),
      .multiUser: .data([]), .synchronizable: .integer(0),
    ])
    #expect(try PrimaryKey(of: absent) == PrimaryKey(of: empty))
  }

  @Test("a key prints nothing of its item")
  func printing() throws {
    let key = try PrimaryKey(of: .genericPassword("planted", group: "planted"))
    #expect(!"\(key)".contains("planted"))
  }
}
