extension Session {
  /// What a verb has changed, or would change, in one line. Results alone are printed under `-q`, and this is none.
  func announce(_ line: String) throws(CommandFailure) {
    guard !common.quiet else { return }
    try say(line)
  }
}
