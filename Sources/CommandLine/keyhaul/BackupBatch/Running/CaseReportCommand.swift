/// A command that can write a case report instead of its usual result.
protocol CaseReportCommand: BatchCommand {
  var report: ReportOptions { get set }
  var caseReport: CaseOptions { get set }
}

extension CaseReportCommand {
  var output: String? { report.output }

  func caseRequest() throws(CommandError) -> CaseOptions.Request? {
    try caseReport.request(output: output, common, many, fields: fieldOptions.fields)
  }

  func forCase() -> Self {
    var command = self
    command.report.output = nil
    command.caseReport = CaseOptions()
    return command
  }

  func command(for path: String) -> Self {
    var command = forCase()
    command.paths = [path]
    command.common.disablePrompts()
    return command
  }
}
