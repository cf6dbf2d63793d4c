package import Basics

/// SQLite's conversion of text that is stored in, or compared with, a column of type INTEGER.
///
/// Number attributes may contain text (`ptcl` is "htps"), and SQLite converts text that spells a number to that number:
/// "007" and 7 are the same value in a primary key. Keyhaul also computes primary keys outside the database, so it
/// converts text in the same way.
///
/// Source: SQLite, "Datatypes in SQLite", sections 3 and 3.1 (well-formed literals; lossless conversion to INTEGER).
package enum NumericAffinity {
  /// Returns the value that a column of type INTEGER stores for a text.
  package static func storedValue(ofText bytes: [UInt8]) -> ColumnValue {
    guard let literal = numericLiteral(in: bytes) else { return .text(bytes) }
    if let integer = Int64(literal) { return .integer(integer) }
    guard let real = Double(literal) else { return .text(bytes) }
    return storedValue(ofReal: real)
  }

  /// Returns an integer if the real number is whole and an `Int64` represents it exactly, otherwise the number itself.
  package static func storedValue(ofReal real: Double) -> ColumnValue {
    // SQLite also leaves the smallest and the largest integer as a real number.
    guard let integer = Int64(exactly: real), integer > Int64.min, integer < Int64.max else { return .real(real) }
    return .integer(integer)
  }

  /// Returns `[+-]digits[.digits][e[+-]digits]` without the blanks around it, or `nil` if the text is anything else.
  private static func numericLiteral(in bytes: [UInt8]) -> String? {
    var remaining = ArraySlice(bytes)
    while let first = remaining.first, isBlank(first) { remaining.removeFirst() }
    while let last = remaining.last, isBlank(last) { remaining.removeLast() }
    let literal = remaining
    skipSign(&remaining)
    var mantissaDigitCount = skipDigits(&remaining)
    if remaining.first == UInt8(ascii: ".") {
      remaining.removeFirst()
      mantissaDigitCount += skipDigits(&remaining)
    }
    guard mantissaDigitCount > 0 else { return nil }
    if remaining.first == UInt8(ascii: "e") || remaining.first == UInt8(ascii: "E") {
      remaining.removeFirst()
      skipSign(&remaining)
      guard skipDigits(&remaining) > 0 else { return nil }
    }
    return remaining.isEmpty ? String(decoding: literal, as: UTF8.self) : nil
  }

  private static func skipSign(_ remaining: inout ArraySlice<UInt8>) {
    if let sign = remaining.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { remaining.removeFirst() }
  }

  /// Removes digits from the start, and returns their number.
  private static func skipDigits(_ remaining: inout ArraySlice<UInt8>) -> Int {
    let initialCount = remaining.count
    while let first = remaining.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) {
      remaining.removeFirst()
    }
    return initialCount - remaining.count
  }

  /// Returns whether a byte is a space, or one of the control characters from tab to carriage return.
  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
