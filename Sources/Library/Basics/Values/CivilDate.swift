/// A day in the proleptic Gregorian calendar, convertible to and from days since 2001-01-01.
///
/// The conversions count in eras of 400 years, after which the calendar repeats. Years start in March, so that the leap
/// day comes last and a month's first day is a linear function of its number.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" (`civil_from_days`, `days_from_civil`).
package struct CivilDate {
  package let year: Int64
  package let month: Int64
  package let day: Int64

  /// The day number of 2001-01-01, counted from March 1 of year 0.
  private static let referenceDay: Int64 = 730_791
  private static let daysPerEra: Int64 = 146_097

  package init(year: Int64, month: Int64, day: Int64) {
    self.year = year
    self.month = month
    self.day = day
  }

  package init(daysSinceReference days: Int64) {
    let (era, dayOfEra) = (days + Self.referenceDay).quotientAndRemainder(flooredBy: Self.daysPerEra)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
  }

  package var daysSinceReference: Int64 {
    let (era, yearOfEra) = (year - (month <= 2 ? 1 : 0)).quotientAndRemainder(flooredBy: 400)
    let marchMonth = month > 2 ? month - 3 : month + 9
    let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * Self.daysPerEra + dayOfEra - Self.referenceDay
  }

  package static func daysInMonth(_ month: Int64, of year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

extension Int64 {
  /// Returns the quotient, rounded down, and a remainder that is never negative. The divisor must be positive.
  package func quotientAndRemainder(flooredBy divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

/// The decimal digits of a date's fraction of a second.
package enum SecondFraction {
  /// Returns the decimal digits of the time since the next lower whole second.
  ///
  /// For a positive number, they are the digits after the point in the shortest decimal that gives the same double. For
  /// a negative number, they are the complement of these digits to one.
  package static func digits(of seconds: Double) -> [UInt8] {
    // `description` has one decimal point, and an exponent if the number is very large or small.
    let decimal = Array(seconds.magnitude.description.utf8)
    let mantissa = decimal.prefix { $0 != UInt8(ascii: "e") }
    let exponent = Int(String(decoding: decimal.dropFirst(mantissa.count + 1), as: UTF8.self)) ?? 0
    let integerCount = mantissa.firstIndex(of: UInt8(ascii: ".")) ?? mantissa.count
    var fraction = [UInt8](repeating: UInt8(ascii: "0"), count: max(-integerCount - exponent, 0))
    let digits = mantissa.lazy.filter { $0 != UInt8(ascii: ".") }
    fraction.append(contentsOf: digits.dropFirst(max(integerCount + exponent, 0)))
    while fraction.last == UInt8(ascii: "0") { fraction.removeLast() }
    return seconds < 0 ? complement(of: fraction) : fraction
  }

  /// Returns the digits of one minus a fraction whose last digit is not zero.
  package static func complement(of fraction: [UInt8]) -> [UInt8] {
    guard let last = fraction.indices.last else { return fraction }
    return fraction.indices.map { index in
      UInt8(ascii: "0") + (index == last ? 10 : 9) - (fraction[index] - UInt8(ascii: "0"))
    }
  }
}
