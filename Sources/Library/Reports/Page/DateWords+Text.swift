import KeyhaulKit

extension DateWords {
  /// - Parameter text: RFC 3339; what is none comes back as it is.
  static func words(_ text: String) -> String {
    Timestamp.date(from: text).map(words) ?? Markup.shortened(text)
  }
}
