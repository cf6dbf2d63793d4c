/// The style of text on one output stream: its width, whether it has colors, and its character set.
package struct TextStyle: Equatable, Sendable {
  /// The width in columns.
  package var width: Int
  package var usesColor: Bool
  /// Whether the locale uses UTF-8; otherwise all text is converted to ASCII.
  package var isUnicode: Bool
  /// Whether text that is too wide is cut. Text in a pipe or a file is not cut, because its reader needs all of it.
  package var cutsText: Bool

  package init(width: Int, usesColor: Bool, isUnicode: Bool, cutsText: Bool = true) {
    self.width = width
    self.usesColor = usesColor
    self.isUnicode = isUnicode
    self.cutsText = cutsText
  }

  package static let plain = TextStyle(width: 80, usesColor: false, isUnicode: true)

  /// Returns the text in a color if the stream has colors.
  package func painted(_ text: String, _ color: Color?) -> String {
    guard usesColor, let color, !text.isEmpty else { return text }
    return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
  }

  /// Returns the text in characters of the locale: typographic characters get an ASCII replacement, other
  /// characters are escaped.
  package func adapted(_ text: String) -> String {
    guard !isUnicode, !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if scalar.isASCII {
        result.unicodeScalars.append(scalar)
      } else {
        result += Self.asciiReplacements[scalar] ?? UntrustedText.escape(scalar)
      }
    }
    return result
  }

  /// Returns the style for text after an indentation.
  package func narrowed(by columns: Int) -> TextStyle {
    var narrower = self
    narrower.width -= columns
    return narrower
  }

  /// The sign for omitted text.
  package var ellipsis: String { isUnicode ? "…" : "..." }

  private static let asciiReplacements: [Unicode.Scalar: String] = [
    "·": "-", "→": "->", "…": "...", "–": "-", "—": "-", "×": "x", "’": "'", "“": "\"", "”": "\"",
  ]
}

/// Colors that emphasize text. The text must be understandable without them.
package enum Color: String, Sendable {
  case bold = "1"
  case faint = "2"
  case red = "31"
  case green = "32"
  case yellow = "33"
}
