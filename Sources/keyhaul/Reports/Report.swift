import DataProtection
import KeychainFormats
import MigrationReports

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

  /// Gives a report in the form that is asked for: text, JSON or a page; into the file that `-o` names, or to standard
  /// output.
  func deliver(_ report: some Report, page: @autoclosure () -> some HTMLPage, to output: String?) throws(CommandFailure)
  {
    if common.isHTML { return try deliver(page(), to: output) }
    guard let output, output != "-" else { return try say(report) }
    if isJSON { return try write(report.json, to: output) }
    var style = resultStyle
    style.usesColour = false
    let text = report.lines(style: style, showsAll: common.verbose > 0).map { $0 + "\n" }.joined()
    try ReportFile.write(Array(text.utf8), to: output)
    note("Wrote \(HostileText.shown(output)).")
  }

  /// A page as the result: into a file, or to standard output where that is no terminal.
  func deliver(_ page: some HTMLPage, to output: String?) throws(CommandFailure) {
    let text: String
    do throws(DataProtectionError) {
      text = try page.html()
    } catch {
      throw CommandFailure(.failed, "the page cannot be made", why: error.reason)
    }
    if let output, output != "-" {
      try ReportFile.write(Array(text.utf8), to: output)
      note("Wrote \(HostileText.shown(output)); open it in a browser.")
      return
    }
    guard output != nil || !resultIsOnTerminal else {
      throw .usage("a page is nothing to read on a terminal", try: "-o FILE, or -o - to see its source")
    }
    try writeRaw(Array(text.utf8))
  }
}
