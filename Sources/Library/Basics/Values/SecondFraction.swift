/// The decimal digits of a date's fraction of a second.
package enum SecondFraction {
  /// Returns the digits after the decimal point, relative to the next lower whole second: the digits of the shortest
  /// decimal that gives the same double. For a negative number, they are the complement to one, computed in decimal.
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
