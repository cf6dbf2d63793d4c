import Basics
import KeychainFormats
import Testing

@testable import VirtualDevice

@Suite("Names of devices")
struct DeviceNameTests {
  @Test(
    "Letters, digits, dots, hyphens and underscores are allowed in names",
    arguments: ["a", "old-phone", "9.x_Y-z", "A..b"])
  func accepted(_ text: String) throws { #expect(try DeviceName(text).text == text) }

  @Test(
    "Names that are empty, do not begin with a letter or digit, or contain other characters are rejected",
    arguments: ["", ".", "..", ".hidden", "-x", "_x", "a/b", "a b", "a\u{0}", "ä", "a\n", "a\\b", "é"])
  func refused(_ text: String) { #expect(throws: KeyhaulError.self) { try DeviceName(text) } }

  @Test("A name of 64 characters is accepted, and one of 65 is rejected")
  func length() throws {
    #expect(try DeviceName(String(repeating: "x", count: 64)).text.count == 64)
    #expect(try code { _ = try DeviceName(String(repeating: "x", count: 65)) } == .badName)
  }
}

@Suite("Versions of iOS")
struct ProductVersionTests {
  @Test("Versions are compared as numbers, not as text")
  func order() throws {
    #expect(try ProductVersion("9.3.5") < ProductVersion("10.2"))
    #expect(try ProductVersion("18") == ProductVersion("18.0.0"))
    #expect(try ProductVersion("10.10") > ProductVersion("10.2"))
  }

  @Test("Items without a class are always accessible on iOS 4, and while unlocked since iOS 5")
  func defaultProtection() throws {
    #expect(try ProductVersion("4.3.5").defaultProtection == .always)
    #expect(try ProductVersion("5").defaultProtection == .whenUnlocked)
    #expect(ProductVersion.standard.defaultProtection == .whenUnlocked)
  }

  @Test("Backups require iOS 10.2")
  func backups() throws {
    #expect(try !ProductVersion("10.1.1").canWriteBackups)
    #expect(try ProductVersion("10.2").canWriteBackups)
  }

  @Test(
    "Only numbers separated by dots are accepted as a version",
    // "٣" is an Arabic digit.
    arguments: ["", ".", "18.", ".1", "18.x", "-1", "+1", "1 8", "1.2.3.4.5", "10000", "٣", "18.1\n"])
  func refused(_ text: String) throws { #expect(try code { _ = try ProductVersion(text) } == .badVersion) }

  @Test("A version may have four parts of four digits")
  func limits() throws { #expect(try ProductVersion("9999.9999.9999.9999").text == "9999.9999.9999.9999") }
}

@Suite("Timestamps")
struct TimestampTests {
  /// Computed with GNU `date -u -d @N`.
  @Test(
    "Timestamps agree with the calendar",
    arguments: [
      ("2001-01-01T00:00:00Z", 0.0), ("2026-11-20T18:04:00Z", 816_890_640), ("2026-11-20T18:04:00.25Z", 816_890_640.25),
      ("2000-02-29T23:59:59Z", -26_438_401), ("1970-01-01T00:00:00Z", -978_307_200),
      ("2100-03-01T00:00:00Z", 3_129_235_200), ("0001-01-01T00:00:00Z", -63_113_904_000),
      ("9999-12-31T23:59:59Z", 252_423_993_599), ("2000-12-31T23:59:59.75Z", -0.25),
    ])
  func known(_ text: String, _ seconds: Double) {
    #expect(Timestamp.date(from: text)?.secondsSinceReferenceDate == seconds)
    #expect(Timestamp.text(of: KeychainDate(secondsSinceReferenceDate: seconds)) == text)
  }

  @Test("The time zone of a timestamp is applied")
  func zones() {
    #expect(Timestamp.date(from: "2001-01-01T02:30:00+02:30") == .reference)
    #expect(Timestamp.date(from: "2000-12-31T19:00:00-05:00") == .reference)
  }

  @Test(
    "Microseconds survive the conversion to text and back", arguments: [0.000_001, 0.904, 0.018_231, 0.73, 0.999_999])
  func fractions(_ part: Double) {
    let date = KeychainDate(secondsSinceReferenceDate: 785_412_345 + part)
    #expect(Timestamp.date(from: Timestamp.text(of: date)) == date)
  }

  @Test(
    "Incomplete timestamps, and dates and times that do not exist, are rejected",
    arguments: [
      "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
      "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01",
      "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx", "26-01-01T00:00:00Z", "2026-01-01T00:00:00+24:00", "",
    ])
  func refused(_ text: String) { #expect(Timestamp.date(from: text) == nil) }

  @Test(
    "A date outside the calendar becomes the first or the last date of the calendar",
    arguments: [Double.infinity, 1e300, .greatestFiniteMagnitude])
  func outsideCalendar(_ seconds: Double) {
    #expect(Timestamp.text(of: KeychainDate(secondsSinceReferenceDate: seconds)) == "9999-12-31T23:59:59Z")
    #expect(Timestamp.text(of: KeychainDate(secondsSinceReferenceDate: -seconds)) == "0001-01-01T00:00:00Z")
  }
}
