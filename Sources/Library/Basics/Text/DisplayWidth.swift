import CUTF8Proc

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
