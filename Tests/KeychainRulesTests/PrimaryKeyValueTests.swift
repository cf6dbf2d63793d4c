import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@Suite("Primary keys")
struct PrimaryKeyValueTests {
  @Test("An empty value and an absent value have the same primary key")
  func absentIsEmpty() throws {
    let absent = KeychainItem(kind: .genericPassword, attributes: [.accessGroup: .string("g")])
    let empty = absent.with([
      .account: .string(""), .service: .data([]), .syncViewHint: .string(""), .tokenID: .string(""),
      .sharingGroup: .string(""),
      .multiUser: .data([]), .synchronizable: .integer(0),
    ])
    #expect(try PrimaryKey(of: absent) == PrimaryKey(of: empty))
  }

  @Test("The description of a primary key contains no value of the item")
  func printing() throws {
    let key = try PrimaryKey(of: .genericPassword("planted", group: "planted"))
    #expect(!"\(key)".contains("planted"))
  }
}
