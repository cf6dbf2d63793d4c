/// The digits of a date's fraction of a second.
package enum SecondFraction {
  /// The digits after the point, counted up from the whole second below: those of the shortest decimal that gives this
  /// double again, and for a negative number their complement to one, done in decimal.
  package static func digits(of seconds: Double) -> [UInt8] {
    // Digits with one point, and an exponent where the number is very large or small.
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

  /// The digits of one less a fraction whose last digit is not zero.
  package static func complement(of fraction: [UInt8]) -> [UInt8] {
    guard let last = fraction.indices.last else { return fraction }
    return fraction.indices.map { index in
      UInt8(ascii: "0") + (index == last ? 10 : 9) - (fraction[index] - UInt8(ascii: "0"))
    }
  }
}
