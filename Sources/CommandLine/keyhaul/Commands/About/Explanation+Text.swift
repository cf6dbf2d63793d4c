import Reports

extension Explanation {
  /// Every page there is.
  static let all = fates + terms + ways + vocabulary + classes + findings + faults + exitCodes

  /// The page on a terminal.
  func lines(style: TextStyle) -> [String] {
    let heading = code.map { "\(id) (exit code \($0))" } ?? id
    var lines = WordWrap.lines(of: style.adapted("\(heading) — \(headline)"), columns: style.width)
    if let first = lines.first { lines[0] = style.painted(first, .bold) }
    let parts =
      [("Rule", rule), ("Effect", effect), ("Do", action)] + (otherWays.map { [("Ways", $0)] } ?? [])
      + (source.map { [("Source", $0)] } ?? [])
    for (label, text) in parts {
      lines += WordWrap.labeled(
        "  " + DisplayWidth.padded(label, columns: 8) + " ", style.adapted(text), columns: style.width)
    }
    return lines
  }
}
