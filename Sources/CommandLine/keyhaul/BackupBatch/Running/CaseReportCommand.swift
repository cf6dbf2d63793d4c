/// A command that can write a case report instead of its usual result.
protocol CaseReportCommand: BatchCommand {
  var report: ReportOptions { get set }
  var caseReport: CaseOptions { get set }
}

extension CaseReportCommand {
  /// Returns a help screen's rows, followed by the rows about many backups, case reports and JSON.
  static func addingSharedRows(to rows: [HelpScreen.Row]) -> [HelpScreen.Row] {
    let sharedRows: [HelpScreen.Row] = [
      .init("--paths-from", "read more paths from a file; - is standard input"),
      .init("--passwords", "a file that says where each backup's password is"),
      .init("--case", "with --examiner and -o, write a report for a case file"),
      .init("--resume", "skip backups whose results are already in this file"), "--json",
    ]
    return rows + sharedRows
  }

  var output: String? { report.output }

  func caseRequest() throws(CommandError) -> CaseOptions.Request? {
    try caseReport.request(output: output, common, batchOptions, fields: fieldOptions.fields)
  }

  func withoutOutput() -> Self {
    var command = self
    command.report.output = nil
    command.caseReport = CaseOptions()
    return command
  }

  func command(for path: String) -> Self {
    var command = withoutOutput()
    command.paths = [path]
    command.common.limitOutputToDocument()
    return command
  }
}
