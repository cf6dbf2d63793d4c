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
  /// Returns the quotient rounded down, so that the remainder is never negative. The divisor must be positive.
  package func quotientAndRemainder(flooredBy divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
