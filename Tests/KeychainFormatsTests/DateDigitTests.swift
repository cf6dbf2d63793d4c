import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Decimal places of dates")
struct DateDigitTests {
  private static let day: Int64 = 86_400_000_000
  /// 2001-01-01T00:00:00Z in microseconds since 1970.
  private static let epoch: Int64 = 978_307_200_000_000

  /// Returns the decimal places of a date's text, which ends in "Z".
  private static func fraction(of text: String) -> Substring {
    guard let point = text.firstIndex(of: ".") else { return "" }
    return text[text.index(after: point)...].dropLast()
  }

  @Test("100,000 dates in microseconds keep their exact microseconds and have at most six decimal places")
  func moments() throws {
    var random = SeededRandom(seed: 44)
    for index in 0..<100_000 {
      // Up to a hundred years before or after 2001.
      let offset = Int64.random(in: -36_525 * Self.day..<36_525 * Self.day, using: &random)
      let date = KeychainDate(microsecondsSince1970: Self.epoch + offset)
      let microseconds = String(((offset % 1_000_000) + 1_000_000) % 1_000_000)
      var digits = String(repeating: "0", count: 6 - microseconds.count) + microseconds
      while digits.last == "0" { digits.removeLast() }

      let der = try #require(DERDate.format(date))
      let timestamp = Timestamp.text(of: date)
      // Within a thousand seconds of 2001, the parsed date may differ in the last digits of its double.
      guard Self.fraction(of: der) == digits, Self.fraction(of: timestamp) == digits,
        try DERDate.parse(der) == date || abs(offset) < 1_000_000_000, Timestamp.date(from: timestamp) == date
      else {
        Issue.record("date \(index), \(offset) microseconds from 2001: \(der) and \(timestamp), for .\(digits)")
        return
      }
    }
  }

  @Test("100,000 dates that are moved by a part of a second are later and have at most six decimal places")
  func movedDates() throws {
    var random = SeededRandom(seed: 45)
    for index in 0..<100_000 {
      let offset = Int64.random(in: 0..<36_525 * Self.day, using: &random)
      let date = KeychainDate(microsecondsSince1970: Self.epoch + offset)
      let later = date.adding(seconds: 0.001)
      let expected = KeychainDate(microsecondsSince1970: Self.epoch + offset + 1000)
      guard later == expected, later > date, Self.fraction(of: try #require(DERDate.format(later))).count <= 6 else {
        Issue.record("date \(index), \(offset) microseconds from 2001")
        return
      }
    }
  }

  @Test(
    "A date outside the years 0 to 9999 cannot be encoded",
    arguments: [-0x1p63, 0x1p63, -0x1p62, -4e11, 4e11, -1e300, 1e300, -Double.infinity, .infinity, .nan])
  func unencodable(seconds: Double) {
    let date = KeychainDate(secondsSinceReferenceDate: seconds)
    #expect(DERDate.format(date) == nil)
    #expect(throws: FormatError.self) { try DERPropertyList.encode(.dictionary(["cdat": .date(date)])) }
    #expect(throws: FormatError.self) { try XMLPlist.encode(.date(date)) }
  }

  @Test("Dates that no calendar can represent stay unchanged")
  func far() {
    #expect(KeychainDate(microsecondsSince1970: .min).secondsSinceReferenceDate == Double(Int64.min) / 1_000_000)
    #expect(KeychainDate(microsecondsSince1970: .max).secondsSinceReferenceDate < Double(Int64.max) / 1_000_000)
    for seconds in [1e300, -1e300, .infinity] {
      #expect(
        KeychainDate(secondsSinceReferenceDate: seconds).adding(seconds: 0.001).secondsSinceReferenceDate == seconds)
    }
  }
}
