/// A name from outside, made safe to show: quoted, escaped, and cut where it is too long to read.
///
/// Control, format and private-use characters, line separators, quotes and backslashes become `\u{…}`.
func quoted(_ name: String) -> String {
  let longest = 120
  var text = "\""
  for (index, scalar) in name.unicodeScalars.enumerated() {
    guard index < longest else {
      text += "..."
      break
    }
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator:
      text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    default:
      if scalar == "\"" || scalar == "\\" { text += "\\" }
      text.unicodeScalars.append(scalar)
    }
  }
  return text + "\""
}

/// A byte count with separators: `41,208`.
func grouped(_ count: Int64) -> String {
  var text = ""
  for (index, digit) in String(count.magnitude).reversed().enumerated() {
    if index > 0, index.isMultiple(of: 3) { text.append(",") }
    text.append(digit)
  }
  return (count < 0 ? "-" : "") + String(text.reversed())
}

/// Lower-case hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
  let digits = Array("0123456789abcdef".utf8)
  return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
