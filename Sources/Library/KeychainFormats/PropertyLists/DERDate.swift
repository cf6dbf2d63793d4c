package import Basics

/// Converts dates between their texts in Apple's DER and seconds since 2001-01-01T00:00:00Z.
///
/// Source: Apple Security `der_date.c` and the regression test `su-16-cfdate-der`.
package enum DERDate {
  enum Fault: Error {
    /// The text does not follow the grammar.
    case malformed
    /// The text follows the grammar, but the date does not exist.
    case outOfRange

    var reason: String {
      switch self {
      case .malformed: "a date whose text is malformed"
      case .outOfRange: "a date with a field out of range"
      }
    }
  }

  /// Returns the GeneralizedTime text of a date, or `nil` if the date is not a number or outside the years 0 to 9999.
  package static func format(_ date: KeychainDate) -> String? {
    encode(date).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Parses a GeneralizedTime text. The date remembers this text (`encodedText`).
  ///
  /// - Throws: `.malformed` if the text does not follow the grammar, or if the date does not exist.
  package static func parse(_ text: String) throws(FormatError) -> KeychainDate {
    do throws(Fault) {
      return try Array(text.utf8).span.bytes.withUnsafeBytes(decode)
    } catch {
      throw FormatError(.der, .malformed, error.reason)
    }
  }

  /// The date with which Apple's decoder replaces a malformed date of an item: 2001-03-24T00:00:00Z.
  static let replacementForMalformed = KeychainDate(secondsSinceReferenceDate: 82 * 86_400)

  /// The number of a fraction's digits that are used; later digits are ignored.
  private static let maximumFractionDigits = 19

  /// Decodes `YYYYMMDDhhmmss[.f…]` with `Z`, `+hhmm` or `-hhmm`; a fraction has digits and does not end in zero.
  static func decode(_ text: UnsafeRawBufferPointer) throws(Fault) -> KeychainDate {
    KeychainDate(secondsSinceReferenceDate: try seconds(text), encodedText: String(decoding: text, as: UTF8.self))
  }

  /// Returns the seconds since 2001-01-01T00:00:00Z for a GeneralizedTime text.
  static func seconds(_ text: UnsafeRawBufferPointer) throws(Fault) -> Double {
    var reader = FieldReader(text)
    let year = try reader.number(digits: 4)
    return try reader.moment(year: year, allowsFraction: true)
  }

  /// Decodes `YYMMDDhhmmss` with a time zone. Years from 50 on belong to the 20th century.
  static func decodeUTCTime(_ text: UnsafeRawBufferPointer) throws(Fault) -> KeychainDate {
    var reader = FieldReader(text)
    let year = try reader.number(digits: 2)
    return KeychainDate(
      secondsSinceReferenceDate: try reader.moment(year: year + (year < 50 ? 2000 : 1900), allowsFraction: false))
  }

  /// Returns the GeneralizedTime text of a date: the original text if it still represents the same date, otherwise a
  /// computed text.
  ///
  /// - Returns: The text, or `nil` if it must be computed, but the date is not a number or outside the years 0 to 9999.
  static func encode(_ date: KeychainDate) -> [UInt8]? {
    if let text = date.encodedText.map({ Array($0.utf8) }),
      let decoded = try? text.span.bytes.withUnsafeBytes(decode), decoded == date
    {
      return text
    }
    return encode(date.secondsSinceReferenceDate)
  }

  /// Returns the maximum size of `encode(date)` in bytes, or `nil` if the date may have no text.
  static func maximumByteCount(of date: KeychainDate) -> Int? {
    encodableRange.contains(date.secondsSinceReferenceDate)
      ? max(maximumTextByteCount, date.encodedText?.utf8.count ?? 0) : nil
  }

  /// The years 0 to 9999 in seconds since 2001. Every date in this range has a text.
  private static let encodableRange = firstSecond(of: 0)..<firstSecond(of: 10_000)

  private static func firstSecond(of year: Int64) -> Double {
    Double(CivilDate(year: year, month: 1, day: 1).daysSinceReference * 86_400)
  }

  /// The number of bytes of a text without the digits of a fraction: `YYYYMMDDhhmmss.Z`.
  private static let fieldsByteCount = 16
  /// The maximum number of bytes of a text. A fraction has at most 324 digits, as the smallest double, 5e-324.
  static let maximumTextByteCount = fieldsByteCount + 324

  /// A limit of about 12,700 years in seconds, below which the calculation of a date cannot overflow. Dates beyond this
  /// limit have no text.
  private static let maximumSecondCount: UInt64 = 400_000_000_000

  /// Returns the text of a number of seconds, with the fewest decimal places that represent the number exactly, or
  /// `nil` outside the years 0 to 9999.
  static func encode(_ seconds: Double) -> [UInt8]? {
    let wholeSeconds = seconds.rounded(.down)
    guard let whole = Int64(exactly: wholeSeconds), whole.magnitude < maximumSecondCount else { return nil }
    let (days, secondOfDay) = whole.quotientAndRemainder(flooredBy: 86_400)
    let date = CivilDate(daysSinceReference: days)
    guard (0...9999).contains(date.year) else { return nil }
    let fraction = seconds == wholeSeconds ? [] : SecondFraction.digits(of: seconds)
    var text: [UInt8] = []
    text.reserveCapacity(fieldsByteCount + fraction.count)
    append(date.year / 100, to: &text)
    for number in [date.year % 100, date.month, date.day] { append(number, to: &text) }
    for number in [secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60] { append(number, to: &text) }
    if !fraction.isEmpty { text += [UInt8(ascii: ".")] + fraction }
    text.append(UInt8(ascii: "Z"))
    return text
  }

  /// Appends the two digits of a number below 100.
  private static func append(_ number: Int64, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
    text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
  }

  /// Reads the fields of a date's text.
  private struct FieldReader {
    private let text: UnsafeRawBufferPointer
    private var position = 0

    init(_ text: UnsafeRawBufferPointer) { self.text = text }

    private var remaining: Slice<UnsafeRawBufferPointer> { text[position...] }

    mutating func number(digits: Int) throws(Fault) -> Int64 {
      guard text.count - position >= digits else { throw .malformed }
      var value: Int64 = 0
      for _ in 0..<digits {
        guard Self.isDigit(text[position]) else { throw .malformed }
        value = value * 10 + Int64(text[position] - UInt8(ascii: "0"))
        position += 1
      }
      return value
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Reads everything after the year, and returns the seconds since 2001.
    mutating func moment(year: Int64, allowsFraction: Bool) throws(Fault) -> Double {
      let month = try number(digits: 2)
      let day = try number(digits: 2)
      let hour = try number(digits: 2)
      let minute = try number(digits: 2)
      let second = try number(digits: 2)
      let fraction = allowsFraction ? try self.fraction() : 0
      let zone = try zoneSeconds()
      guard remaining.isEmpty else { throw .malformed }
      // The seconds 60 and 61 are leap seconds.
      guard (1...12).contains(month), (1...CivilDate.daysInMonth(month, of: year)).contains(day), hour < 24,
        minute < 60, second <= 61
      else { throw .outOfRange }
      let days = CivilDate(year: year, month: month, day: day).daysSinceReference
      return Double(days * 86_400 + hour * 3600 + minute * 60 + second - zone) + fraction
    }

    private mutating func fraction() throws(Fault) -> Double {
      guard remaining.first == UInt8(ascii: ".") else { return 0 }
      position += 1
      let digits = remaining.prefix(while: Self.isDigit)
      guard let last = digits.last, last != UInt8(ascii: "0") else { throw .malformed }
      position += digits.count
      let significantDigits = digits.prefix(maximumFractionDigits)
      let numerator = significantDigits.reduce(UInt64(0)) { $0 * 10 + UInt64($1 - UInt8(ascii: "0")) }
      let denominator = significantDigits.reduce(1.0) { denominator, _ in denominator * 10 }
      return Double(numerator) / denominator
    }

    private mutating func zoneSeconds() throws(Fault) -> Int64 {
      guard let sign = remaining.first else { throw .malformed }
      position += 1
      switch sign {
      case UInt8(ascii: "Z"):
        return 0
      case UInt8(ascii: "+"), UInt8(ascii: "-"):
        let hours = try number(digits: 2)
        let minutes = try number(digits: 2)
        guard hours < 24, minutes < 60 else { throw .outOfRange }
        return (hours * 3600 + minutes * 60) * (sign == UInt8(ascii: "-") ? -1 : 1)
      default:
        throw .malformed
      }
    }
  }
}

/// The packed text of a date, with two characters in a byte, for items in memory.
extension DERDate {
  /// The characters, in the order of their half bytes. A text with an odd number of characters ends with the filler.
  private static let characters = Array("0123456789.Z+-".utf8)
  private static let filler: UInt8 = 0xF
  /// The maximum length of a text to pack: longer than any that a device writes, and short enough for the stack.
  private static let maximumPackedTextByteCount = 64

  private static func halfByte(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "."): 10
    case UInt8(ascii: "Z"): 11
    case UInt8(ascii: "+"): 12
    case UInt8(ascii: "-"): 13
    default: nil
    }
  }

  /// Returns the packed size of a date's text in bytes, or `nil` if the text is not a date, has characters that cannot
  /// be packed, or does not decode to exactly `date`, bit for bit.
  static func packedByteCount(of text: UnsafeRawBufferPointer, representing date: KeychainDate? = nil) -> Int? {
    guard text.count <= maximumPackedTextByteCount, text.allSatisfy({ halfByte(of: $0) != nil }),
      let decoded = try? seconds(text),
      date.map({ $0.secondsSinceReferenceDate.bitPattern == decoded.bitPattern }) ?? true
    else { return nil }
    return (text.count + 1) / 2
  }

  /// Packs a text. `target` must have exactly `packedByteCount(of:representing:)` bytes.
  static func pack(_ text: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) {
    for index in target.indices {
      let high = halfByte(of: text[2 * index])
      let low = 2 * index + 1 < text.count ? halfByte(of: text[2 * index + 1]) : nil
      target[index] = (high ?? filler) << 4 | (low ?? filler)
    }
  }

  /// Returns the date of a packed text, or `nil` if the bytes are not a packed date.
  static func date(unpacking bytes: UnsafeRawBufferPointer) -> KeychainDate? {
    withUnsafeTemporaryAllocation(byteCount: 2 * bytes.count, alignment: 1) { text in
      var count = 0
      for position in 0..<(2 * bytes.count) {
        let byte = bytes[position / 2]
        let halfByte = Int(position.isMultiple(of: 2) ? byte >> 4 : byte & 0xF)
        guard halfByte < characters.count else { break }
        text[count] = characters[halfByte]
        count += 1
      }
      return try? decode(UnsafeRawBufferPointer(rebasing: text[..<count]))
    }
  }
}
