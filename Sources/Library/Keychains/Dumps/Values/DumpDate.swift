import Basics
import KeychainFormats

/// The text formats of dates in dumps.
enum DumpDate {
  /// The characters between the fields of `YYYY-MM-DD hh:mm:ss`, by their offsets.
  private static let separators: [Int: [UInt8]] = [
    4: [UInt8(ascii: "-")], 7: [UInt8(ascii: "-")], 10: [UInt8(ascii: " "), UInt8(ascii: "T")],
    13: [UInt8(ascii: ":")], 16: [UInt8(ascii: ":")],
  ]
  /// The number of bytes of `YYYY-MM-DD hh:mm:ss`.
  private static let fieldsByteCount = 19
  /// The largest accepted size of a date's text, in bytes: enough for a fraction with all digits of a double.
  private static let maximumByteCount = 64

  /// Parses `2026-11-20 18:04:00 +0000`, `2026-11-20T18:04:00Z` or GeneralizedTime.
  ///
  /// - Returns: The date, or `nil` if the text has another format or the date does not exist.
  static func date(of text: String) -> KeychainDate? {
    guard text.utf8.count <= maximumByteCount else { return nil }
    if let date = try? DERDate.parse(text) { return date }
    let bytes = Array(text.utf8)
    guard bytes.count > fieldsByteCount, separators.allSatisfy({ $1.contains(bytes[$0]) }) else { return nil }
    var fractionAndZone = bytes[fieldsByteCount...]
    if let space = fractionAndZone.firstIndex(of: UInt8(ascii: " ")) { fractionAndZone.remove(at: space) }
    fractionAndZone = removingTrailingZeros(fractionAndZone)
    let digits = bytes.prefix(fieldsByteCount).indices.filter { separators[$0] == nil }.map { bytes[$0] }
    guard let generalizedTime = String(validating: digits + fractionAndZone, as: UTF8.self),
      let date = try? DERDate.parse(generalizedTime)
    else { return nil }
    // A parsed date remembers its text. Here that text was put together, so it is dropped.
    return KeychainDate(secondsSinceReferenceDate: date.secondsSinceReferenceDate)
  }

  /// Removes zeros at the end of a fraction. RFC 3339 allows them, GeneralizedTime in DER does not.
  private static func removingTrailingZeros(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard text.first == UInt8(ascii: ".") else { return text }
    let digits = text.dropFirst().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard digits.last == UInt8(ascii: "0") else { return text }
    let zone = text.dropFirst(1 + digits.count)
    guard let last = digits.lastIndex(where: { $0 != UInt8(ascii: "0") }) else { return zone }
    return ArraySlice(text[...last] + zone)
  }
}
