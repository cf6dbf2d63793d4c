/// A date as the keychain stores it: seconds since 2001-01-01T00:00:00Z as a double.
///
/// A date that was decoded from DER keeps its text, so that rewriting an item does not change it. Formatting the
/// seconds again could give other digits for dates near 2001. Equality and hashing use only the seconds.
public struct KeychainDate: Sendable, Hashable, Comparable {
  /// The seconds since 2001-01-01T00:00:00Z, fractions included, as in Foundation.
  package let secondsSinceReferenceDate: Double
  /// The GeneralizedTime text from which the date was decoded, or `nil` if it has another source.
  package let encodedText: String?

  /// Creates a date from a number of seconds since 2001-01-01T00:00:00Z.
  package init(secondsSinceReferenceDate: Double, encodedText: String? = nil) {
    self.secondsSinceReferenceDate = secondsSinceReferenceDate
    self.encodedText = encodedText
  }

  /// 2001-01-01T00:00:00Z, the default for dates that are not set.
  package static let reference = KeychainDate(secondsSinceReferenceDate: 0)
  /// The seconds between the Unix epoch and 2001-01-01T00:00:00Z.
  static let unixEpochOffset: Double = 978_307_200

  /// Creates a date from a Unix time in seconds.
  package init(secondsSince1970: Double) {
    self.init(secondsSinceReferenceDate: secondsSince1970 - Self.unixEpochOffset)
  }

  /// Creates a date from a Unix time in microseconds, as clocks report it.
  ///
  /// The epoch is subtracted as an integer and the seconds are rounded once. The date's text therefore has at most six
  /// decimal places, like dates that iPhones write.
  package init(microsecondsSince1970: Int64) {
    let (difference, overflow) = microsecondsSince1970.subtractingReportingOverflow(
      Int64(Self.unixEpochOffset) * 1_000_000)
    self.init(secondsSinceReferenceDate: Double(overflow ? Int64.min : difference) / 1_000_000)
  }

  /// Returns the date that is later by a number of seconds, rounded to the microsecond.
  package func adding(seconds: Double) -> KeychainDate {
    let sum = secondsSinceReferenceDate + seconds
    // From about 300 years on, a `Double` cannot represent single microseconds.
    guard sum.magnitude < 10_000_000_000 else { return KeychainDate(secondsSinceReferenceDate: sum) }
    return KeychainDate(secondsSinceReferenceDate: (sum * 1_000_000).rounded() / 1_000_000)
  }

  /// The Unix time in seconds.
  package var secondsSince1970: Double { secondsSinceReferenceDate + Self.unixEpochOffset }

  public static func == (left: Self, right: Self) -> Bool {
    left.secondsSinceReferenceDate == right.secondsSinceReferenceDate
  }
  public static func < (left: Self, right: Self) -> Bool {
    left.secondsSinceReferenceDate < right.secondsSinceReferenceDate
  }
  public func hash(into hasher: inout Hasher) { hasher.combine(secondsSinceReferenceDate) }
}
