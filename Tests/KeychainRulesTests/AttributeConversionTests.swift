import Basics
import KeychainFormats
import KeychainRules
import Testing

@Suite("Conversion of attribute values")
struct AttributeConversionTests {
  private static let date = PropertyValue.date(.reference)

  @Test(
    "A number attribute converts whole numbers, booleans and canonical 32-bit text to integers, and keeps other text",
    arguments: [
      (PropertyValue.integer(7), PropertyValue.integer(7)), (.boolean(true), .integer(1)),
      (.boolean(false), .integer(0)),
      (.string("42"), .integer(42)), (.string("0"), .integer(0)), (.string("-1"), .integer(-1)),
      (.string("2147483647"), .integer(2_147_483_647)), (.string("2147483648"), .string("2147483648")),
      (.string("-2147483648"), .integer(-2_147_483_648)), (.string("007"), .string("007")),
      (.string("+1"), .string("+1")), (.string("-0"), .string("-0")), (.string(" 1"), .string(" 1")),
      (.string(""), .string("")), (.string("htps"), .string("htps")), (.real(3), .integer(3)),
      (.integer(.max), .integer(.max)),
    ])
  func numbers(_ value: PropertyValue, _ expected: PropertyValue) {
    #expect(AttributeConversion.convert(value, for: .number) == expected)
    #expect(AttributeConversion.convert(value, for: .sync) == expected)
  }

  @Test("A blob attribute keeps text, data and integers, and rejects booleans")
  func blobs() {
    for value: PropertyValue in [.string("x"), .data([1]), .integer(5)] {
      #expect(AttributeConversion.convert(value, for: .blob) == value)
    }
    #expect(AttributeConversion.convert(.boolean(true), for: .blob) == nil)
  }

  @Test("A data attribute converts text to UTF-8 and a 32-bit number to four little-endian bytes")
  func data() {
    #expect(AttributeConversion.convert(.string("é"), for: .data) == .data([0xC3, 0xA9]))
    #expect(AttributeConversion.convert(.integer(0x0102_0304), for: .data) == .data([4, 3, 2, 1]))
    #expect(AttributeConversion.convert(.integer(-1), for: .data) == .data([255, 255, 255, 255]))
    #expect(AttributeConversion.convert(.integer(1 << 31), for: .data) == nil)
    #expect(AttributeConversion.convert(.data([9]), for: .data) == .data([9]))
  }

  @Test("A text attribute accepts UTF-8 data but no numbers")
  func text() {
    #expect(AttributeConversion.convert(.data([0xC3, 0xA9]), for: .string) == .string("é"))
    #expect(AttributeConversion.convert(.data([0xFF]), for: .string) == nil)
    #expect(AttributeConversion.convert(.integer(1), for: .string) == nil)
  }

  @Test("A date attribute accepts only dates")
  func dates() {
    #expect(AttributeConversion.convert(Self.date, for: .creationDate) == Self.date)
    #expect(AttributeConversion.convert(.integer(0), for: .date) == nil)
    #expect(AttributeConversion.convert(.string("2001"), for: .modificationDate) == nil)
  }

  @Test("A UUID attribute accepts data of 0 or 16 bytes, and no text")
  func identifiers() {
    for count in 0...33 {
      let value = PropertyValue.data([UInt8](repeating: 1, count: count))
      #expect((AttributeConversion.convert(value, for: .uuid) != nil) == (count == 0 || count == 16))
    }
    #expect(AttributeConversion.convert(.string(""), for: .uuid) == nil)
  }

  @Test("Every kind of attribute rejects nulls, fractions, containers and references")
  func alwaysRejected() {
    let values: [PropertyValue] = [.null, .real(0.5), .array([]), .dictionary([:]), .set([]), .uid(1)]
    let kinds: [AttributeKind] = [.number, .sync, .blob, .data, .string, .access, .date, .uuid, .sha1, .rowID]
    for value in values { for kind in kinds { #expect(AttributeConversion.convert(value, for: kind) == nil) } }
  }

  @Test("A conversion error contains the attribute and the accepted types, but not the value")
  func error() throws {
    let account = try #require(AttributeTable.definition(of: .account, in: .genericPassword))
    #expect(throws: FormatError(.item, .unencodable, "acct needs text, data or a whole number, not a boolean")) {
      try AttributeConversion.convert(.boolean(true), for: account)
    }
    #expect(try AttributeConversion.convert(.string("bob"), for: account) == .string("bob"))
  }
}
