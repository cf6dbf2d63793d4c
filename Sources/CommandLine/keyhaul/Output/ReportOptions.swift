import ArgumentParser

/// Where the result of a verb that only looks goes.
struct ReportOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the result to a file, or the page with --format html; --json is also printed.",
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
