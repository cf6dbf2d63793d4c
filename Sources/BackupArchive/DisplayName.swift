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
