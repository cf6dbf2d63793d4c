import Basics
import KeychainFormats

/// The texts that dumps have for dates.
enum DumpDate {
  private static let separators: [Int: [UInt8]] = [
    4: [UInt8(ascii: "-")], 7: [UInt8(ascii: "-")], 10: [UInt8(ascii: " "), UInt8(ascii: "T")],
    13: [UInt8(ascii: ":")], 16: [UInt8(ascii: ":")],
  ]
  /// The most bytes of a date's text: with a fraction of as many digits as any double has.
  private static let maximumByteCount = 64

  /// The date that a text says: `2026-11-20 18:04:00 +0000`, `2026-11-20T18:04:00Z` or GeneralizedTime.
  ///
  /// - Returns: `nil` for every other text, and for a moment that does not exist.
  static func date(of text: String) -> KeychainDate? {
    guard text.utf8.count <= maximumByteCount else { return nil }
    if let date = try? DERDate.date(of: text) { return date }
    let bytes = Array(text.utf8)
    guard bytes.count > 19, separators.allSatisfy({ $1.contains(bytes[$0]) }) else { return nil }
    var rest = bytes[19...]
    if let space = rest.firstIndex(of: UInt8(ascii: " ")) { rest.remove(at: space) }
    let digits = bytes.prefix(19).indices.filter { separators[$0] == nil }.map { bytes[$0] }
    guard let compact = String(validating: digits + rest, as: UTF8.self), let date = try? DERDate.date(of: compact)
    else { return nil }
    return KeychainDate(secondsSinceReferenceDate: date.secondsSinceReferenceDate)
  }
}
