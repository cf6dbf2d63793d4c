import CUTF8Proc

/// Text broken at its spaces. A word that is too long stands alone and whole: a path that is cut is of no use.
package enum WordWrap {
  package static func lines(of text: String, columns: Int) -> [String] {
    var lines: [String] = []
    for paragraph in text.split(separator: "\n", omittingEmptySubsequences: false) {
      var line = ""
      var width = 0
      for word in paragraph.split(separator: " ") {
        let wordWidth = DisplayWidth.columns(of: String(word))
        if line.isEmpty {
          (line, width) = (String(word), wordWidth)
        } else if width + 1 + wordWidth <= columns {
          line += " " + word
          width += 1 + wordWidth
        } else {
          lines.append(line)
          (line, width) = (String(word), wordWidth)
        }
      }
      lines.append(line)
    }
    return lines
  }

  /// The text behind a label, its further lines aligned under its first.
  package static func labeled(_ label: String, _ text: String, columns: Int) -> [String] {
    let indent = DisplayWidth.columns(of: label)
    let space = String(repeating: " ", count: indent)
    return lines(of: text, columns: max(20, columns - indent)).enumerated().map { index, line in
      (index == 0 ? label : space) + line
    }
  }
}

/// How many columns a text takes on a terminal.
///
/// Source: Unicode Standard Annex #11, "East Asian Width", as utf8proc has it; emoji by their presentation.
package enum DisplayWidth {
  package static func columns(of text: String) -> Int {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
    return text.reduce(0) { $0 + columns(of: $1) }
  }

  package static func columns(of character: Character) -> Int {
    // Most are, and what Unicode says of each costs a search. A line break of two characters has one ASCII value.
    if let letter = character.asciiValue, letter >= 0x20, letter < 0x7F { return 1 }
    var widest = 0
    for scalar in character.unicodeScalars {
      if scalar == "\u{FE0F}" { return 2 }
      widest = max(widest, columns(of: scalar))
    }
    return widest
  }

  /// The text, shortened to at most this many columns; the ellipsis takes the place of what was cut.
  package static func cut(_ text: String, columns limit: Int, ellipsis: String) -> String {
    guard columns(of: text) > limit else { return text }
    let room = limit - columns(of: ellipsis)
    guard room > 0 else { return String(ellipsis.prefix(max(0, limit))) }
    var taken = ""
    var width = 0
    for character in text {
      let next = columns(of: character)
      if width + next > room { break }
      taken.append(character)
      width += next
    }
    return taken + ellipsis
  }

  /// The text with spaces after it, or before it, up to this many columns.
  package static func padded(_ text: String, columns width: Int, rightAligned: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, width - columns(of: text)))
    return rightAligned ? space + text : text + space
  }

  /// A mark has no column of its own; what is visible has one at least.
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
  /// The version of utf8proc that this process runs with.
  package static var libraryVersion: String { String(cString: utf8proc_version()) }
}

extension TextStyle {
  /// Returns a name from a file, made safe to show and cut to the size of a line or table column. A name may be a
  /// megabyte long and appear in every row.
  package func shownName(_ name: String) -> String {
    adapted(HostileText.shown(name, columns: max(width, Table.minimumColumnWidth), ellipsis: ellipsis))
  }
}

extension HostileText {
  /// The start of a name for an error's text, which is escaped where it is shown.
  package static func shortened(_ text: String, columns: Int) -> String {
    DisplayWidth.cut(String(text.unicodeScalars.prefix(columns * 8)), columns: columns, ellipsis: "…")
  }

  /// The name, safe to show and at most this many columns wide.
  package static func shown(_ text: String, columns: Int, ellipsis: String = "…") -> String {
    // A name may be a megabyte long: no more of it is looked at than could be shown.
    let start = String(text.unicodeScalars.prefix(columns * 8 + 8))
    return DisplayWidth.cut(shown(start), columns: columns, ellipsis: ellipsis)
  }
}
