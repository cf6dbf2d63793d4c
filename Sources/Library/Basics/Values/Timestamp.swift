/// Formats and parses RFC 3339 dates in UTC ("2026-11-20T18:04:00.25Z"), with as many decimal places as the date has.
package enum Timestamp {
  private static let secondsPerDay: Double = 86_400
  /// The first and last second that can be formatted, in the years 1 and 9999. Earlier and later dates are
  /// formatted as these seconds.
  package static let earliest: Double = -63_113_904_000
  package static let latest: Double = 252_423_993_599

  package static func text(of date: KeychainDate) -> String {
    let seconds = date.secondsSinceReferenceDate
    let clamped = seconds.isNaN ? 0 : min(max(seconds, earliest), latest)
    let wholeSeconds = clamped.rounded(.down)
    if clamped == wholeSeconds { return text(ofWholeSeconds: wholeSeconds, ending: "Z") }
    return text(ofWholeSeconds: wholeSeconds, ending: nil) + fraction(of: clamped) + "Z"
  }

  /// Returns the date and the time without decimal places.
  ///
  /// The digits are written one by one, because this is fast and a document has two dates for each of its items.
  ///
  /// - Parameter ending: The character after the seconds; `nil` if there is none.
  private static func text(ofWholeSeconds seconds: Double, ending: Unicode.Scalar?) -> String {
    let days = (seconds / secondsPerDay).rounded(.down)
    let secondOfDay = Int(seconds - days * secondsPerDay)
    let date = CivilDate(daysSinceReference: Int64(days))
    return String(unsafeUninitializedCapacity: 20) { text in
      var end = 0
      func append(_ number: Int, digits: Int, before mark: Unicode.Scalar?) {
        var remaining = number
        for position in stride(from: end + digits - 1, through: end, by: -1) {
          text[position] = UInt8(ascii: "0") + UInt8(remaining % 10)
          remaining /= 10
        }
        end += digits
        guard let mark else { return }
        text[end] = UInt8(ascii: mark)
        end += 1
      }
      append(Int(date.year), digits: 4, before: "-")
      append(Int(date.month), digits: 2, before: "-")
      append(Int(date.day), digits: 2, before: "T")
      append(secondOfDay / 3600, digits: 2, before: ":")
      append(secondOfDay / 60 % 60, digits: 2, before: ":")
      append(secondOfDay % 60, digits: 2, before: ending)
      return end
    }
  }

  /// Returns only the day ("2026-11-20"), in UTC.
  package static func day(of date: KeychainDate) -> String { String(text(of: date).prefix(10)) }

  /// Parses a date.
  ///
  /// - Returns: The date, or `nil` if the text is not RFC 3339 or the day or time does not exist.
  package static func date(from text: String) -> KeychainDate? {
    var cursor = Cursor(bytes: Array(text.utf8))
    guard let year = cursor.number(digits: 4), cursor.consume("-"),
      let month = cursor.number(digits: 2), cursor.consume("-"),
      let day = cursor.number(digits: 2), cursor.consume("T") || cursor.consume("t"),
      let hour = cursor.number(digits: 2), cursor.consume(":"),
      let minute = cursor.number(digits: 2), cursor.consume(":"),
      let second = cursor.number(digits: 2)
    else { return nil }
    var fraction = ""
    if cursor.consume(".") {
      fraction = cursor.digits()
      if fraction.isEmpty { return nil }
    }
    guard let offset = cursor.offset(), cursor.isAtEnd, (1...12).contains(month), hour < 24, minute < 60, second < 60
    else { return nil }
    let date = CivilDate(year: Int64(year), month: Int64(month), day: Int64(day))
    guard (1...CivilDate.daysInMonth(date.month, of: date.year)).contains(date.day) else { return nil }
    let wholeSeconds = Int(date.daysSinceReference) * Int(secondsPerDay) + hour * 3600 + minute * 60 + second - offset
    return seconds(wholeSeconds, fraction).map { KeychainDate(secondsSinceReferenceDate: $0) }
  }

  /// Returns the decimal places with the point before them. Empty for whole seconds, and for more than
  /// `maximumFractionDigits` places.
  private static func fraction(of seconds: Double) -> String {
    let digits = SecondFraction.digits(of: seconds)
    return digits.isEmpty || digits.count > maximumFractionDigits ? "" : "." + String(decoding: digits, as: UTF8.self)
  }

  /// The maximum number of decimal places. It limits the work for a long text.
  private static let maximumFractionDigits = 30

  /// Parses the whole seconds and the fraction as one decimal, because adding them would round differently and change a
  /// formatted date.
  private static func seconds(_ wholeSeconds: Int, _ fraction: String) -> Double? {
    guard wholeSeconds < 0 else { return Double("\(wholeSeconds).\(fraction)0") }
    var digits = Array(fraction.utf8)
    while digits.last == UInt8(ascii: "0") { digits.removeLast() }
    guard !digits.isEmpty else { return Double(wholeSeconds) }
    // The fraction is counted up from the lower whole second. A negative decimal counts down from the higher one.
    let complement = String(decoding: SecondFraction.complement(of: digits), as: UTF8.self)
    return Double("-\(-wholeSeconds - 1).\(complement)")
  }

  private struct Cursor {
    let bytes: [UInt8]
    var position = 0

    var isAtEnd: Bool { position == bytes.count }

    mutating func consume(_ character: Unicode.Scalar) -> Bool {
      guard position < bytes.count, UInt32(bytes[position]) == character.value else { return false }
      position += 1
      return true
    }

    mutating func number(digits count: Int) -> Int? {
      guard bytes.count - position >= count else { return nil }
      var value = 0
      for byte in bytes[position..<position + count] {
        guard (0x30...0x39).contains(byte) else { return nil }
        value = value * 10 + Int(byte - 0x30)
      }
      position += count
      return value
    }

    mutating func digits() -> String {
      let digits = bytes[position...].prefix(maximumFractionDigits).prefix { (0x30...0x39).contains($0) }
      position += digits.count
      return String(decoding: digits, as: UTF8.self)
    }

    /// Parses the offset from UTC, in seconds east of Greenwich.
    mutating func offset() -> Int? {
      if consume("Z") || consume("z") { return 0 }
      let sign = consume("+") ? 1 : consume("-") ? -1 : 0
      guard sign != 0, let hours = number(digits: 2), consume(":"), let minutes = number(digits: 2), hours < 24,
        minutes < 60
      else { return nil }
      return sign * (hours * 3600 + minutes * 60)
    }
  }
}
