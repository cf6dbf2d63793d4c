import CUTF8Proc

/// Measures the columns that text occupies on a terminal.
///
/// Source: Unicode Standard Annex #11, "East Asian Width", as implemented by utf8proc. The width of emoji depends on
/// the property `Emoji_Presentation`.
package enum DisplayWidth {
  package static func columns(of text: String) -> Int {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
    return text.reduce(0) { $0 + columns(of: $1) }
  }

  package static func columns(of character: Character) -> Int {
    // Most characters are ASCII, and looking up Unicode properties is slow. Control characters are excluded, because a
    // CR LF is one character with the ASCII value of LF.
    if let letter = character.asciiValue, letter >= 0x20, letter < 0x7F { return 1 }
    var widest = 0
    for scalar in character.unicodeScalars {
      // The variation selector for an emoji's colored form.
      if scalar == "\u{FE0F}" { return 2 }
      widest = max(widest, columns(of: scalar))
    }
    return widest
  }

  /// Returns the text, shortened to the given number of columns with an ellipsis at its end.
  ///
  /// - Parameter isComplete: Whether the text is complete. If more text follows, it gets an ellipsis even if it fits.
  package static func cut(
    _ text: String, columns limit: Int, ellipsis: String, isComplete: Bool = true
  ) -> String {
    guard !isComplete || columns(of: text) > limit else { return text }
    let available = limit - columns(of: ellipsis)
    guard available > 0 else { return String(ellipsis.prefix(max(0, limit))) }
    var result = ""
    var width = 0
    for character in text {
      let characterWidth = columns(of: character)
      if width + characterWidth > available { break }
      result.append(character)
      width += characterWidth
    }
    return result + ellipsis
  }

  /// Returns the text padded with spaces to a number of columns.
  package static func padded(_ text: String, columns width: Int, rightAligned: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, width - columns(of: text)))
    return rightAligned ? space + text : text + space
  }

  /// Returns the width of a scalar: 0 for a combining mark, at least 1 for a visible character.
  private static func columns(of scalar: Unicode.Scalar) -> Int {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: break
    }
    if scalar.properties.isEmojiPresentation { return 2 }
    return max(1, Int(utf8proc_charwidth(Int32(scalar.value))))
  }
}

extension DisplayWidth {
  /// The version of utf8proc in this process.
  package static var libraryVersion: String { String(cString: utf8proc_version()) }
}

extension TextStyle {
  /// Returns a name from a file, escaped and cut to the line width, but not below the width of the narrowest table
  /// column. A name may be a megabyte long and appear in every row.
  package func escapedName(_ name: String) -> String {
    guard cutsText else { return adapted(UntrustedText.escaped(name)) }
    return adapted(UntrustedText.escaped(name, columns: max(width, Table.minimumColumnWidth), ellipsis: ellipsis))
  }

  /// Returns text cut to a number of columns, if this style cuts text.
  package func cut(_ text: String, columns: Int) -> String {
    cutsText ? DisplayWidth.cut(text, columns: columns, ellipsis: ellipsis) : text
  }
}

extension UntrustedText {
  /// The number of scalars to process for each visible column. A name may be a megabyte long, and only its start is
  /// visible.
  private static let scalarsPerColumn = 8

  /// Returns the start of a name for an error's text. The name is not escaped, because an error's text is escaped when
  /// it is displayed.
  package static func shortened(_ text: String, columns: Int) -> String {
    let (start, isComplete) = start(of: text, columns: columns)
    return DisplayWidth.cut(start, columns: columns, ellipsis: "…", isComplete: isComplete)
  }

  /// Returns a name, escaped and cut to a number of columns.
  package static func escaped(_ text: String, columns: Int, ellipsis: String = "…") -> String {
    let (start, isComplete) = start(of: text, columns: columns)
    return DisplayWidth.cut(escaped(start), columns: columns, ellipsis: ellipsis, isComplete: isComplete)
  }

  /// Returns the part of a text that is processed for a number of columns, and whether it is the complete text.
  private static func start(of text: String, columns: Int) -> (text: String, isComplete: Bool) {
    let scalars = text.unicodeScalars.prefix(max(0, columns) * scalarsPerColumn)
    return (String(scalars), scalars.endIndex == text.unicodeScalars.endIndex)
  }
}
