extension Session {
  /// What a verb has changed, or would change, in one line. Results alone are printed under `-q`, and this is none.
  func announce(_ line: String) throws(CommandFailure) {
    guard !common.quiet else { return }
    for line in Self.wrapped(line, isOnTerminal: resultIsOnTerminal, style: resultStyle) { try say(line) }
  }

  /// A sentence broken between its words where a terminal would break it anywhere; one line for what reads lines.
  static func wrapped(_ line: String, isOnTerminal: Bool, style: TextStyle) -> [String] {
    guard isOnTerminal, !line.hasPrefix(" "), DisplayWidth.columns(of: line) > style.width else { return [line] }
    return WordWrap.lines(of: line, columns: style.width)
  }
}
