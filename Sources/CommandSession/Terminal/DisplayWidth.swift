/// How many columns a text takes on a terminal.
///
/// Source: Unicode Standard Annex #11, "East Asian Width" (wide and full-width ranges); emoji by their presentation.
package enum DisplayWidth {
  package static func columns(of text: String) -> Int {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
    return text.reduce(0) { $0 + columns(of: $1) }
  }

  package static func columns(of character: Character) -> Int {
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

  private static func columns(of scalar: Unicode.Scalar) -> Int {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: break
    }
    if scalar.properties.isEmojiPresentation { return 2 }
    return wide.contains { $0.contains(scalar.value) } ? 2 : 1
  }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
    0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60,
    0xFFE0...0xFFE6, 0x16FE0...0x18CFF, 0x1AFF0...0x1B2FF, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
  ]
}
