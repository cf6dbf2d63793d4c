import KeyhaulKit

extension LongDateFormat {
  /// - Parameter text: RFC 3339; what is none comes back as it is.
  static func dateAndTime(_ text: String) -> String {
    Timestamp.date(from: text).map(dateAndTime) ?? HTMLWriter.shortened(text)
  }
}
