import KeyhaulKit

extension LongDateFormat {
  /// Returns a date and time in the long format.
  ///
  /// - Parameter text: The date in RFC 3339.
  /// - Returns: The shortened text if it is not in RFC 3339.
  static func dateAndTime(_ text: String) -> String {
    Timestamp.date(from: text).map(dateAndTime) ?? HTMLWriter.shortened(text)
  }
}
