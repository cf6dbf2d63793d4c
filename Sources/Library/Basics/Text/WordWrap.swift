/// Breaks text at its spaces. A word that is too long is not broken, because a broken path is unusable; it gets its own
/// line.
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

  /// Returns the lines of a text after a label, with further lines aligned to the first. The text gets at least 20
  /// columns.
  package static func labeled(_ label: String, _ text: String, columns: Int) -> [String] {
    let indent = DisplayWidth.columns(of: label)
    let space = String(repeating: " ", count: indent)
    return lines(of: text, columns: max(20, columns - indent)).enumerated().map { index, line in
      (index == 0 ? label : space) + line
    }
  }
}
