import Basics
import KeychainCrypto
import KeychainFormats
import Testing

@testable import KeychainRules

@Suite("Item columns")
struct ItemColumnsTests {
  private func definition(_ code: AttributeCode, of kind: ItemKind) throws -> AttributeDefinition {
    try #require(ColumnDefinitions.all(of: kind).first { $0.code == code })
  }

  /// Source: SQLite, "Datatypes in SQLite", section 3 (text in a column of type INTEGER).
  @Test(
    "Text in a number column becomes the number that it spells",
    arguments: [
      ("htps", .text(Array("htps".utf8))), ("007", .integer(7)), (" 7 ", .integer(7)), ("7e2", .integer(700)),
      ("7e+2", .integer(700)), ("70e-1", .integer(7)), ("7E-1", .real(0.7)), (".5", .real(0.5)),
      ("7e", .text(Array("7e".utf8))), (".", .text(Array(".".utf8))), ("0x7", .text(Array("0x7".utf8))),
    ] as [(String, ColumnValue)])
  func numbers(text: String, stored: ColumnValue) throws {
    let column = try definition(.port, of: .internetPassword)
    #expect(try ItemColumns.value(.string(text), for: column) == stored)
  }

  @Test("An infinite date is rejected", arguments: [Double.infinity, -.infinity, .nan])
  func infiniteDate(seconds: Double) throws {
    let column = try definition(.creationDate, of: .genericPassword)
    let error = #expect(throws: KeychainRuleError.self) {
      try ItemColumns.value(.date(KeychainDate(secondsSinceReferenceDate: seconds)), for: column)
    }
    #expect(error == KeychainRuleError(.parameter, "cdat is a date that is out of range"))
  }

  @Test("A new item is rejected if no random bytes are available")
  func noRandomness() throws {
    struct FailingSource: RandomSource {
      func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
        throw DataProtectionError(.randomFailed, "no randomness")
      }
    }
    let item = KeychainItem(kind: .genericPassword, attributes: [.accessGroup: .string("g")])
    let error = #expect(throws: KeychainRuleError.self) {
      try NewItemDefaults.prepared(item, now: .reference, random: FailingSource())
    }
    #expect(error?.code == .notAvailable)
    #expect(error?.reason.contains("no randomness") == true)
  }

  @Test("A failure of SHA-1 is not an error of the item, but an item without an encoding is")
  func noDigest() {
    #expect(
      KeychainRuleError(digesting: ItemCryptoError(.failed(DataProtectionError(.cryptoFailed, "no SHA-1")))).code
        == .notAvailable)
    #expect(
      KeychainRuleError(digesting: ItemCryptoError(.malformed(FormatError(.item, .unencodable, "no encoding")))).code
        == .parameter)
  }
}
