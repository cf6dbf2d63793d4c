/// A result that has a form in text and one in JSON.
protocol Report {
  var json: JSONValue { get }
  /// - Parameter showsAll: Every item, however many (`-v`).
  func lines(style: TextStyle, showsAll: Bool) -> [String]
}

extension Session {
  func say(_ report: some Report) throws(CommandFailure) {
    if isJSON { return try answer(report.json) }
    for line in report.lines(style: resultStyle, showsAll: common.verbose > 0) { try say(line) }
  }
}
