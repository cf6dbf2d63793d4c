import ArgumentParser
import KeyhaulKit
import Reports

extension Session {
  func say(_ report: some Report) throws(CommandFailure) {
    if isJSON {
      return try forEachPortion(ofDocument: report, writePortion)
    }
    try forEachLine(of: report, style: resultStyle) { (line) throws(CommandFailure) in try say(line) }
  }

  /// Gives a report in the form that is asked for: text, JSON or a page; into the file that `-o` names, or to standard
  /// output.
  func deliver(_ report: some Report, page: @autoclosure () -> some HTMLPage, to output: String?) throws(CommandFailure)
  {
    if common.isHTML { return try deliver(page(), to: output) }
    try deliver(report, to: output)
  }

  /// Gives a report that has no page, in the form that is asked for.
  func deliver(_ report: some Report, to output: String?) throws(CommandFailure) {
    guard let output, output != "-" else { return try say(report) }
    // Under `--json` standard output holds the document whatever else is written; where it cannot, no file is left.
    func print() throws(CommandFailure) {
      guard isJSON else { return }
      try say(report)
      try flush()
    }
    try ReportFile.write(to: output, beforeNaming: print) { (portion) throws(CommandFailure) in
      guard !isJSON else { return try forEachPortion(ofDocument: report, portion) }
      var waiting: [UInt8] = []
      var style = resultStyle
      (style.usesColor, style.cutsText) = (false, false)
      try forEachLine(of: report, style: style) { (line) throws(CommandFailure) in
        waiting.append(contentsOf: line.utf8)
        waiting.append(UInt8(ascii: "\n"))
        guard waiting.count >= ByteStream.bufferByteCount else { return }
        try waiting.withRawBytes(portion)
        waiting.removeAll(keepingCapacity: true)
      }
      try waiting.withRawBytes(portion)
    }
    note("Wrote \(UntrustedText.escaped(output)).")
  }

  /// What kept the end of a report from being read, with the name that the user knows the backup by.
  private func failure(_ error: KeyhaulError) -> CommandFailure {
    CommandFailure(archive: error, name: subjectPath)
  }

  private func forEachLine(
    of report: some Report, style: TextStyle, _ body: (String) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    let lines = computing { report.lines(style: style, showsAll: common.verbose > 0) }
    for line in lines {
      try Interruption.check()
      try body(line)
    }
    guard let tail = report.streamedSection else { return }
    try tail.forEachLine(style: style, failure: failure) { (line) throws(CommandFailure) in
      try Interruption.check()
      try body(line)
    }
  }

  private func forEachPortion(
    ofDocument report: some Report, _ body: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    if let chosen { return try chosen.rows(of: computing { report.json }).forEachPortion(body) }
    guard let tail = report.streamedSection else { return try computing { report.json }.forEachPortion(body) }
    var stream = JSONStream(report.json.adding([(tail.member, [])]))
    try tail.forEachElement(failure: failure) { (element) throws(CommandFailure) in
      try Interruption.check()
      try stream.append(element, to: body)
    }
    try stream.end(to: body)
  }

  /// A page as the result: into a file, or to standard output where that is no terminal.
  func deliver(_ page: some HTMLPage, to output: String?) throws(CommandFailure) {
    let text: String
    do throws(DataProtectionError) {
      text = try page.html()
    } catch {
      throw CommandFailure(.failed, "the page cannot be created", why: error.reason)
    }
    if let output, output != "-" {
      try ReportFile.write(Array(text.utf8), to: output)
      note("Wrote \(UntrustedText.escaped(output)); open it in a browser.")
      return
    }
    try requirePlaceForPage(output)
    try writeRaw(Array(text.utf8))
  }

  /// Refuses a page that has nowhere to go, before anything is opened or asked for.
  func requirePlaceForPage(_ output: String?) throws(CommandFailure) {
    guard common.isHTML, output == nil, resultIsOnTerminal else { return }
    throw .usage("an HTML page cannot be read on a terminal", try: "-o FILE, or -o - to see its source")
  }
}

extension Session {
  /// Writes items as the one document of `--json`, or only their rows if fields were chosen.
  ///
  /// - Parameters:
  ///   - document: Makes the document's entries.
  ///   - entries: The items.
  ///   - outcome: Further members, about the command's result.
  ///   - path: The file to write; standard output for "-" and `nil`.
  func answer(
    _ document: ItemDocument, of entries: [KeychainEntry], _ outcome: [(String, JSONValue)] = [], to path: String? = nil
  ) throws(CommandFailure) {
    try write(to: path) { (portion) throws(CommandFailure) in
      guard let chosen else {
        var stream = document.stream()
        for entry in entries { try stream.append(document.object(entry), to: portion) }
        return try stream.end(outcome, to: portion)
      }
      try JSONValue.array(entries.map { chosen.row(document.object($0)) }).forEachPortion(portion)
    }
  }
}

/// Where the result of a verb that only looks goes.
struct ReportOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the result (with --format html, the page) to a file; with --json, also print the document.",
      valueName: "file"),
    completion: .file())
  var output: String?

  /// Before anything is read: the file must not take the place of an input, nor that of another without a yes.
  func prepare(inputs: [String?], in session: Session) throws(CommandFailure) {
    try session.common.check(output: output)
    try session.requirePlaceForPage(output)
    guard let output, output != "-" else { return }
    try session.prepareOutput(output, inputs: inputs)
  }
}
