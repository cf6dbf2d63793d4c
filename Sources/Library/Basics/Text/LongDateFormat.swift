/// Formats dates in English words, independently of the locale: "20 November 2026 at 18:04 UTC".
package enum LongDateFormat {
  private static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
  ]

  /// Returns the date and the time to the minute.
  package static func dateAndTime(_ date: KeychainDate) -> String {
    let parts = parts(of: date)
    guard parts.count >= 5 else { return day(date) }
    return "\(day(date)) at \(parts[3]):\(parts[4]) UTC"
  }

  /// Returns the day: "20 November 2026".
  package static func day(_ date: KeychainDate) -> String {
    let parts = parts(of: date)
    guard parts.count >= 3, let month = Int(parts[1]), let day = Int(parts[2]), months.indices.contains(month - 1)
    else { return Timestamp.text(of: date) }
    return "\(day) \(months[month - 1]) \(parts[0])"
  }

  /// Returns the year, month, day, hours, minutes and seconds.
  private static func parts(of date: KeychainDate) -> [Substring] {
    Timestamp.text(of: date).split { "-T:".contains($0) }
  }
}
