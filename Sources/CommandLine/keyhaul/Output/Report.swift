import ArgumentParser
import KeyhaulKit
import Reports

extension Session {
  /// Prints a report as text, or its document with `--json`.
  func print(_ report: some Report) throws(CommandError) {
    if isJSON { return try forEachChunk(ofDocument: report, writeChunk) }
    try forEachLine(of: report, style: resultStyle) { (line) throws(CommandError) in try print(line) }
  }

  /// Writes a report in the requested format (text, JSON or HTML) to the file given with `-o`, or to standard output.
  func deliver(_ report: some Report, page: @autoclosure () -> some HTMLPage, to output: String?) throws(CommandError) {
    if common.isHTML { return try deliver(page(), to: output) }
    try deliver(report, to: output)
  }

  /// Writes a report that has no HTML page.
  func deliver(_ report: some Report, to output: String?) throws(CommandError) {
    guard let output, output != "-" else { return try print(report) }
    // With `--json`, the document also goes to standard output. If it cannot be written there, no file is left.
    func printDocument() throws(CommandError) {
      guard isJSON else { return }
      try print(report)
      try flush()
    }
    try OutputFile.write(to: output, beforeRenaming: printDocument) { (write) throws(CommandError) in
      guard !isJSON else { return try forEachChunk(ofDocument: report, write) }
      var buffered: [UInt8] = []
      try forEachLine(of: report, style: fileStyle) { (line) throws(CommandError) in
        buffered.append(contentsOf: line.utf8)
        buffered.append(UInt8(ascii: "\n"))
        guard buffered.count >= BufferedOutput.bufferByteCount else { return }
        try buffered.withRawBytes(write)
        buffered.removeAll(keepingCapacity: true)
      }
      try buffered.withRawBytes(write)
    }
    info("Wrote \(UntrustedText.escaped(output)).")
  }

  /// Returns the error for a backup that fails while its items are streamed into the report.
  private func readError(_ error: KeyhaulError) -> CommandError {
    CommandError(backup: error, name: backupPath)
  }

  private func forEachLine(
    of report: some Report, style: TextStyle, _ body: (String) throws(CommandError) -> Void
  ) throws(CommandError) {
    let lines = computing { report.lines(style: style, showsAll: common.verbose > 0) }
    for line in lines {
      try Interruption.check()
      try body(line)
    }
    guard let section = report.streamedSection else { return }
    try section.forEachLine(style: style, failure: readError) { (line) throws(CommandError) in
      try Interruption.check()
      try body(line)
    }
  }

  private func forEachChunk(
    ofDocument report: some Report, _ body: (UnsafeRawBufferPointer) throws(CommandError) -> Void
  ) throws(CommandError) {
    if let chosenFields { return try chosenFields.rows(of: computing { report.json }).forEachChunk(body) }
    guard let section = report.streamedSection else { return try computing { report.json }.forEachChunk(body) }
    var stream = JSONStream(report.json.adding([(section.member, [])]))
    try section.forEachElement(failure: readError) { (element) throws(CommandError) in
      try Interruption.check()
      try stream.append(element, to: body)
    }
    try stream.end(to: body)
  }

  /// Writes a page to a file, or to standard output if that is not a terminal.
  func deliver(_ page: some HTMLPage, to output: String?) throws(CommandError) {
    let bytes = try page.bytes()
    if let output, output != "-" {
      try OutputFile.write(bytes, to: output)
      info("Wrote \(UntrustedText.escaped(output)); open it in a browser.")
      return
    }
    try requireOutputForPage(output)
    try writeRaw(bytes)
  }

  /// Rejects writing an HTML page to a terminal. Commands check this first, before they read or ask for anything.
  func requireOutputForPage(_ output: String?) throws(CommandError) {
    guard common.isHTML, output == nil, resultIsOnTerminal else { return }
    throw .usage("an HTML page cannot be read on a terminal", try: "-o FILE, or -o - to see its source")
  }
}

extension HTMLPage {
  /// Returns the bytes of the page.
  func bytes() throws(CommandError) -> [UInt8] {
    do throws(DataProtectionError) {
      return Array(try html().utf8)
    } catch {
      throw CommandError(.failed, "the page cannot be created", why: error.reason)
    }
  }
}

extension Session {
  /// Writes items as a JSON document. If fields were chosen, writes only an array with the chosen fields of each item.
  ///
  /// - Parameters:
  ///   - document: The frame of the document, which also turns each entry into an object.
  ///   - entries: The items.
  ///   - outcome: Members about the command's result, added at the end of the document.
  ///   - path: The file to write; standard output for "-" and `nil`.
  func writeDocument(
    _ document: ItemDocument, of entries: [KeychainEntry], outcome: [(String, JSONValue)] = [], to path: String? = nil
  ) throws(CommandError) {
    try write(to: path) { (write) throws(CommandError) in
      guard let chosenFields else {
        var stream = document.stream()
        for entry in entries { try stream.append(document.object(entry), to: write) }
        return try stream.end(outcome, to: write)
      }
      try JSONValue.array(entries.map { chosenFields.row(document.object($0)) }).forEachChunk(write)
    }
  }
}

/// The output option of commands that only read.
struct ReportOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the result (with --format html, the page) to a file; with --json, also print the document.",
      valueName: "file"),
    completion: .file())
  var output: String?

  /// Checks the output file before anything is read. It must not be an input, and the user must agree to replace an
  /// existing file.
  func prepare(inputs: [String?], in session: Session) throws(CommandError) {
    try session.common.check(output: output)
    try session.requireOutputForPage(output)
    guard let output, output != "-" else { return }
    try session.prepareOutput(output, inputs: inputs)
  }
}
