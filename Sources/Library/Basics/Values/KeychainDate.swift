/// A moment as the keychain keeps it: seconds since 2001-01-01T00:00:00Z as a double.
///
/// A date that was read from DER remembers its text, because decoding and encoding again can give other digits for
/// dates near 2001 (rewriting an item must not change it). Equality and hashing look at the seconds alone.
public struct KeychainDate: Sendable, Hashable, Comparable {
  /// Seconds since 2001-01-01T00:00:00Z, fractions included, as Foundation counts.
  public let secondsSinceReferenceDate: Double
  /// The GeneralizedTime text this was decoded from, if it was.
  public let encodedText: String?

  /// Creates a date of a number of seconds since 2001-01-01T00:00:00Z.
  public init(secondsSinceReferenceDate: Double, encodedText: String? = nil) {
    self.secondsSinceReferenceDate = secondsSinceReferenceDate
    self.encodedText = encodedText
  }

  /// 2001-01-01T00:00:00Z, the default of unset dates.
  public static let reference = KeychainDate(secondsSinceReferenceDate: 0)
  /// Seconds between the Unix epoch and 2001-01-01T00:00:00Z.
  static let unixEpochOffset: Double = 978_307_200

  /// Creates a date of a Unix time in seconds.
  public init(secondsSince1970: Double) {
    self.init(secondsSinceReferenceDate: secondsSince1970 - Self.unixEpochOffset)
  }

  /// Creates a date of a Unix time in microseconds, as a clock tells it.
  ///
  /// The epoch is subtracted as an integer and the seconds are rounded once, so the date's text has at most six digits of
  /// a fraction, as those that iPhones write.
  public init(microsecondsSince1970: Int64) {
    let (difference, overflow) = microsecondsSince1970.subtractingReportingOverflow(
      Int64(Self.unixEpochOffset) * 1_000_000)
    self.init(secondsSinceReferenceDate: Double(overflow ? Int64.min : difference) / 1_000_000)
  }

  /// The date so many seconds later, to the microsecond.
  package func adding(seconds: Double) -> KeychainDate {
    let sum = secondsSinceReferenceDate + seconds
    // Beyond some 300 years a double of seconds is no finer than a microsecond.
    guard sum.magnitude < 10_000_000_000 else { return KeychainDate(secondsSinceReferenceDate: sum) }
    return KeychainDate(secondsSinceReferenceDate: (sum * 1_000_000).rounded() / 1_000_000)
  }

  /// The same date as Unix time, in seconds.
  public var secondsSince1970: Double { secondsSinceReferenceDate + Self.unixEpochOffset }

  public static func == (left: Self, right: Self) -> Bool {
    left.secondsSinceReferenceDate == right.secondsSinceReferenceDate
  }
  public static func < (left: Self, right: Self) -> Bool {
    left.secondsSinceReferenceDate < right.secondsSinceReferenceDate
  }
  public func hash(into hasher: inout Hasher) { hasher.combine(secondsSinceReferenceDate) }
}
