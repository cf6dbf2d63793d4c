import KeychainFormats

/// A moment in words that need no locale: "20 November 2026 at 18:04 UTC".
enum PageDate {
  private static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]

  /// - Parameter text: RFC 3339; what is none comes back as it is.
  static func words(_ text: String) -> String {
    guard let date = Timestamp.date(from: text) else { return Markup.shortened(text) }
    let parts = Timestamp.text(of: date).split { "-T:".contains($0) }
    guard parts.count >= 5, let month = Int(parts[1]), let day = Int(parts[2]), months.indices.contains(month - 1)
    else { return Markup.shortened(text) }
    return "\(day) \(months[month - 1]) \(parts[0]) at \(parts[3]):\(parts[4]) UTC"
  }
}
