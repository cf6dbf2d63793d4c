/// Escapes names from a backup or the command line, so that they are safe to display.
///
/// Such a name may try to move the cursor, recolor the terminal, reverse the text after it or hide a part of itself.
/// Every character that is not plainly visible becomes an escape such as `\u{202E}`. Only spaces of all widths stay,
/// because ordinary names contain them. Machine-readable output keeps names unchanged.
package enum UntrustedText {
  /// Returns the text, with an escape for every character that a terminal would act on or not display, except spaces.
  /// The joiners in emoji sequences are escaped too, because they are invisible in other text.
  ///
  /// - Parameters:
  ///   - text: The text.
  ///   - keepingEscapes: Whether to leave existing escapes such as `\u{202E}` unchanged, for a sentence in which names
  ///     are escaped already.
  package static func escaped(_ text: String, keepingEscapes: Bool = false) -> String {
    guard !text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return text }
    var result = ""
    var previous: Unicode.Scalar?
    let scalars = text.unicodeScalars
    for index in scalars.indices {
      let scalar = scalars[index]
      if !keepingEscapes, scalar == "\\", scalars[scalars.index(after: index)...].starts(with: "u{".unicodeScalars) {
        result += escape(scalar)
      } else if isHarmless(scalar, after: previous) {
        result.unicodeScalars.append(scalar)
      } else {
        result += escape(scalar)
      }
      previous = scalar
    }
    return result
  }

  /// Appends escaped UTF-8 text to a buffer that is wiped, and makes no copy that is not wiped.
  package static func appendEscaped(_ utf8: UnsafeRawBufferPointer, to buffer: inout SensitiveBuffer) {
    let escapeStart = Array("u{".utf8)
    var previous: Unicode.Scalar?
    var offset = 0
    UTF8Scalars.forEach(in: utf8) { scalar, bytes in
      offset += bytes.count
      let looksLikeEscape = scalar == "\\" && utf8.dropFirst(offset).starts(with: escapeStart)
      if !looksLikeEscape, isHarmless(scalar, after: previous) {
        buffer.append(bytes)
      } else {
        buffer.append(escape(scalar))
      }
      previous = scalar
    }
  }

  /// Returns a name in quotes for an error's text, cut after 120 Unicode scalars. Quotes and backslashes in the name
  /// get a backslash.
  package static func quoted(_ name: String) -> String {
    let maximumCount = 120
    var result = "\""
    var previous: Unicode.Scalar?
    for (index, scalar) in name.unicodeScalars.enumerated() {
      guard index < maximumCount else { return result + "...\"" }
      if scalar == "\"" || scalar == "\\" { result += "\\" }
      if isHarmless(scalar, after: previous) { result.unicodeScalars.append(scalar) } else { result += escape(scalar) }
      previous = scalar
    }
    return result + "\""
  }

  package static func escape(_ scalar: Unicode.Scalar) -> String {
    "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
  }

  private static func isHarmless(_ scalar: Unicode.Scalar, after previous: Unicode.Scalar?) -> Bool {
    // Most characters are ASCII, and looking up Unicode properties is slow.
    if scalar.value >= 0x20, scalar.value < 0x7F { return true }
    let properties = scalar.properties
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: return false
    default: break
    }
    // The empty braille cell is a symbol and not a space, but looks like one. Source: The Unicode Standard, code chart
    // "Braille Patterns".
    if scalar == "\u{2800}" { return false }
    // The variation selector for an emoji's colored form is part of many ordinary names.
    if scalar == "\u{FE0F}", let previous, previous.properties.isEmoji { return true }
    return !properties.isDefaultIgnorableCodePoint
  }
}
