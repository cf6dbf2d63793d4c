import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Rules of Apple's DER")
struct DERRuleTests {
  private func date(_ text: String, tag: UInt8 = 0x18) throws -> Double? {
    try DERPropertyList.decode([tag, UInt8(text.utf8.count)] + Array(text.utf8)).dateValue?.secondsSinceReferenceDate
  }

  private func text(_ seconds: Double) throws -> String {
    String(
      decoding: try DERPropertyList.encode(.date(KeychainDate(secondsSinceReferenceDate: seconds))).dropFirst(2),
      as: UTF8.self)
  }

  @Test("The time zone of a date is applied, and two-digit years from 50 on belong to the 20th century")
  func zonesAndShortYears() throws {
    #expect(try date("20010101010000+0100") == 0)
    #expect(try date("20001231190000-0500") == 0)
    #expect(try date("010101000000Z", tag: 0x17) == 0)
    #expect(try date("700101000000Z", tag: 0x17) == -978_307_200)
    #expect(try date("490101000000Z", tag: 0x17) == 1_514_764_800)
    // 1950-01-01 is 18,628 days before 2001-01-01. It is the earliest date that two digits can represent.
    #expect(try date("500101000000Z", tag: 0x17) == -1_609_459_200)
    #expect(try date("991231235959Z", tag: 0x17) == -31_622_401)
  }

  @Test("A leap second counts as the first second of the next minute, and leap days follow the calendar")
  func leaps() throws {
    #expect(try date("20001231235960Z") == 0)
    #expect(try date("20001231235961Z") == 1)
    #expect(try date("20000229000000Z") == -26_524_800)
    #expect(throws: FormatError.self) { try date("19000229000000Z") }
  }

  @Test("The fraction of a date counts forward from the whole second, also before 2001")
  func negativeFractions() throws {
    #expect(try text(-0.25) == "20001231235959.75Z")
    #expect(try text(-1.5) == "20001231235958.5Z")
    #expect(try text(-0.1) == "20001231235959.9Z")
    #expect(try text(1e-7) == "20010101000000.0000001Z")
    #expect(try text(-1e-7) == "20001231235959.9999999Z")
  }

  @Test("Dates outside the years 0 to 9999 and dates that are not numbers have no text")
  func datesWithoutText() throws {
    #expect(try text(-63_145_526_400) == "00000101000000Z")
    #expect(try text(252_423_993_599) == "99991231235959Z")
    for seconds in [-63_145_526_401, 252_423_993_600, 1e300, -1e300, .infinity, .nan] {
      #expect(throws: FormatError.self) { try text(seconds) }
    }
  }

  @Test("A decoded date is encoded with its original text, unless its value has changed")
  func preservedText() throws {
    let zoned: [UInt8] = [0x18, 19] + "20010101010000+0100".utf8
    let decoded = try #require(try DERPropertyList.decode(zoned).dateValue)
    #expect(try DERPropertyList.encode(.date(decoded)) == zoned)
    let changed = KeychainDate(secondsSinceReferenceDate: 1, encodedText: decoded.encodedText)
    #expect(try DERPropertyList.encode(.date(changed)) == [0x18, 15] + "20010101000001Z".utf8)
  }

  @Test("The text of a date can be formatted and parsed separately")
  func textOnly() throws {
    #expect(DERDate.format(KeychainDate(secondsSinceReferenceDate: 0.5)) == "20010101000000.5Z")
    #expect(DERDate.format(KeychainDate(secondsSinceReferenceDate: .nan)) == nil)
    #expect(try DERDate.parse("20010101000000.5Z").secondsSinceReferenceDate == 0.5)
    #expect(throws: FormatError.self) { try DERDate.parse("20010101000000.50Z") }
    #expect(throws: FormatError.self) { try DERDate.parse("20010132000000Z") }
  }

  @Test("Every byte except zero decodes as true, and true is encoded as 01")
  func booleans() throws {
    #expect(try DERPropertyList.decode([0x01, 0x01, 0xFF]) == .boolean(true))
    #expect(try DERPropertyList.encode(.boolean(true)) == [0x01, 0x01, 0x01])
  }

  @Test("The first of two equal keys counts, and keys with different bytes are different keys")
  func duplicateKeys() throws {
    let twice = try [UInt8](hex: "310e 3005 0c0161 0500 3005 0c0161 0c00")
    #expect(try DERPropertyList.decode(twice) == .dictionary(["a": .null]))
    let composed = try [UInt8](hex: "3111 3006 0c02c3a9 0500 3007 0c0365cc81 0500")
    #expect(try DERPropertyList.decode(composed).dictionaryValue?.entries.count == 2)
    #expect(try DERPropertyList.encode(DERPropertyList.decode(composed)) == composed)
  }

  @Test("Pairs and elements are sorted by their encoded bytes")
  func sorting() throws {
    #expect(
      try DERPropertyList.encode(.dictionary(["b": .string("x"), "a": .string("long"), "c": .integer(1)])).hex
        == "311b" + "30060c01620c0178" + "30060c0163020101" + "30090c01610c046c6f6e67")
    #expect(
      try DERPropertyList.encode(.set([.integer(2), .string(""), .integer(1)])).hex == "d108" + "0201010201020c00")
  }

  @Test("Whole real numbers are encoded as integers; fractions, large numbers and references cannot be encoded")
  func numbers() throws {
    #expect(try DERPropertyList.encode(.real(5)) == [0x02, 0x01, 0x05])
    #expect(try DERPropertyList.encode(.unsignedInteger(7)) == [0x02, 0x01, 0x07])
    #expect(try DERPropertyList.decode([0x02, 0x08, 0x80, 0, 0, 0, 0, 0, 0, 0]) == .integer(.min))
    let values: [PropertyValue] = [.real(0.5), .real(.nan), .real(1e19), .unsignedInteger(1 << 63), .uid(1)]
    for value in values {
      #expect { try DERPropertyList.encode(value) } throws: { ($0 as? FormatError)?.code == .unencodable }
    }
  }

  @Test("Lengths around 128 and 256 have the shortest encoding")
  func lengths() throws {
    for (count, head) in [(127, "047f"), (128, "048180"), (255, "0481ff"), (256, "04820100"), (65_536, "0483010000")] {
      let data = [UInt8](repeating: 7, count: count)
      let encoded = try DERPropertyList.encode(.data(data))
      #expect(encoded.prefix(encoded.count - count).map(\.self).hex == head)
      #expect(try DERPropertyList.decode(encoded) == .data(data))
    }
  }

  @Test("A NumericString decodes as text, and entitlements decode as data")
  func readOnlyTypes() throws {
    #expect(try DERPropertyList.decode([0x12, 0x02, 0x34, 0x32]) == .string("42"))
    #expect(try DERPropertyList.decode([0x70, 0x01, 0x09]) == .data([9]))
  }
}
