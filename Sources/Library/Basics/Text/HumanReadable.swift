/// Formats numbers, durations and lists for display.
package enum HumanReadable {
  /// Returns a number with its digits grouped: "41,208".
  package static func grouped(_ number: some BinaryInteger) -> String {
    let digits = String(number.magnitude)
    var result = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { result.append(",") }
      result.append(digit)
    }
    return number < 0 ? "-" + result : result
  }

  /// Returns a number with a noun: "1 item", "2 items", "1,204 items".
  package static func count(_ number: Int, _ noun: String, plural: String? = nil) -> String {
    "\(grouped(number)) \(number == 1 ? noun : plural ?? noun + "s")"
  }

  /// Returns a number of bytes: "41,208 bytes".
  package static func bytes(_ number: some BinaryInteger) -> String {
    "\(grouped(number)) \(number == 1 ? "byte" : "bytes")"
  }

  /// Returns a list in words: "a", "a and b", "a, b and c".
  package static func list(_ names: [String], conjunction: String = "and") -> String {
    guard let last = names.last, names.count > 1 else { return names.first ?? "" }
    return names.dropLast().joined(separator: ", ") + " \(conjunction) \(last)"
  }

  /// Returns a duration in words: "about 0.8 s", "about 12 s", "about 6 min", or "under 0.1 s".
  package static func estimate(_ duration: Duration) -> String {
    let seconds = duration / .seconds(1)
    guard seconds >= 0.095 else { return "under 0.1 s" }
    if seconds < 9.95 {
      let tenths = Int((seconds * 10).rounded())
      return "about \(tenths / 10).\(tenths % 10) s"
    }
    return seconds < 120 ? "about \(Int(seconds.rounded())) s" : "about \(grouped(Int(seconds / 60))) min"
  }
}
