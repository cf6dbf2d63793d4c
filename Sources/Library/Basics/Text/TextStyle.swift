/// How text for people looks on one stream: its width, its colors and the characters it may use.
package struct TextStyle: Equatable, Sendable {
  /// In columns.
  package var width: Int
  package var usesColor: Bool
  /// Whether the locale is UTF-8; otherwise everything becomes ASCII.
  package var isUnicode: Bool

  package init(width: Int, usesColor: Bool, isUnicode: Bool) {
    self.width = width
    self.usesColor = usesColor
    self.isUnicode = isUnicode
  }

  package static let plain = TextStyle(width: 80, usesColor: false, isUnicode: true)

  /// The text in a color, where the stream has colors.
  package func painted(_ text: String, _ color: Color?) -> String {
    guard usesColor, let color, !text.isEmpty else { return text }
    return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
  }

  /// The text in characters that the locale can show: our own signs have a spelling in ASCII, all others are escaped.
  package func adapted(_ text: String) -> String {
    guard !isUnicode, !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if scalar.isASCII {
        result.unicodeScalars.append(scalar)
      } else {
        result += Self.spelledInASCII[scalar] ?? HostileText.escape(scalar)
      }
    }
    return result
  }

  /// The style of what stands behind an indentation.
  package func narrowed(by columns: Int) -> TextStyle {
    var narrower = self
    narrower.width -= columns
    return narrower
  }

  /// What stands for a text that was cut off.
  package var ellipsis: String { isUnicode ? "…" : "..." }

  private static let spelledInASCII: [Unicode.Scalar: String] = [
    "·": "-", "→": "->", "…": "...", "–": "-", "—": "-", "×": "x", "’": "'", "“": "\"", "”": "\"",
  ]
}

/// What color adds to a text that says the same without it.
package enum Color: String, Sendable {
  case bold = "1"
  case faint = "2"
  case red = "31"
  case green = "32"
  case yellow = "33"
}
