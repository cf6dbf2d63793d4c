import KeyhaulKit
import Reports

/// A run of `inspect` or `verify` for a case report. It processes each backup on its own, and compares the backup's
/// files before and after.
struct CaseReportRun<Command: BatchCommand> {
  private let batch: BatchRun<Command>
  private let paths: [String]
  private let request: CaseOptions.Request
  private let session: Session

  init(_ command: Command, _ request: CaseOptions.Request, in session: Session) throws {
    guard !command.paths.contains("-") else {
      throw CommandError.usage(
        "a case report needs backups in files", why: "- is a stream, whose files cannot be compared before and after",
        try: "the path of the backup")
    }
    let inputs = command.paths + command.accessOptions.files + command.batchOptions.files
    try session.prepareOutput(request.output, inputs: inputs)
    // The results go into the case report, so the batch writes no output file.
    batch = try BatchRun(command.withoutOutput(), in: session)
    paths = command.paths
    self.request = request
    self.session = session
  }

  func run() throws -> CommandExitStatus {
    let clock = DeviceEnvironment.interruptible.clock
    let started = clock.now()
    var summary = BatchSummary()
    var backups: [CaseReport.ExaminedBackup] = []
    while let queued = try batch.queue.next() {
      try Interruption.check("no report was written")
      let filesBefore = EvidenceRecord(of: queued.path)
      let result = batch.worker.result(for: queued, resumingFrom: nil).result
      try Interruption.check("no report was written")
      summary.add(result, isResumed: false)
      let filesAfter = EvidenceRecord(of: queued.path)
      backups.append(examinedBackup(result, files: filesBefore.compared(with: filesAfter)))
    }
    guard !backups.isEmpty else {
      throw CommandError(.noMatch, "no backup was given", why: "the list of paths is empty", try: "a list with paths")
    }
    summary.skipped = batch.queue.skipped
    let report = CaseReport(
      name: request.name, examiner: request.examiner, program: ProgramVersion.line,
      folder: (try? FileSystem.real.workingDirectoryPath()) ?? "",
      command: ["keyhaul"] + Self.withoutSecrets(Array(ProgramArguments.all.dropFirst())), started: started,
      ended: clock.now(), backups: backups)
    if request.isPage {
      try OutputFile.write(CasePage(report, program: ProgramVersion.signature).bytes(), to: request.output)
    } else {
      try session.writeDocument(report.json, to: request.output)
    }
    // With `--json`, the document also goes to standard output.
    if session.isJSON { try session.writeDocument(report.json) }
    for line in [summary.sentence] + summary.remarks + [report.changeSentence] { session.info(line) }
    session.info("Wrote \(UntrustedText.escaped(request.output)).")
    return summary.status
  }

  /// Returns the part of the report about one backup.
  private func examinedBackup(_ result: BatchResult, files: EvidenceComparison) -> CaseReport.ExaminedBackup {
    let metadata = result.metadata
    let device = result.document?["device"]
    let claims: [(name: String, value: String?)] = [
      ("device_name", metadata.deviceName), ("udid", metadata.identifier),
      ("made", metadata.date.map { Timestamp.text(of: $0) }),
      ("encrypted", metadata.isEncrypted.map { $0 ? "yes" : "no" }),
      ("state", metadata.state), ("product_type", device?["product_type"]?.stringValue),
      ("ios", device?["product_version"]?.stringValue), ("build", device?["build_version"]?.stringValue),
      ("serial_number", device?["serial_number"]?.stringValue),
    ]
    let warnings = result.warnings.map { $0.message + ($0.why.map { ": \($0)" } ?? "") }
    return CaseReport.ExaminedBackup(
      path: result.path, result: result.outcome, code: result.code,
      headline: BatchResult.headline(of: result.outcome) ?? "", reason: result.reason, digest: metadata.digest,
      sealCode: metadata.sealCode,
      sealState: result.document?["seal"]?.stringValue ?? (metadata.hasSeal == false ? "missing" : nil), files: files,
      claims: claims.compactMap { name, value in value.map { (name, $0) } }, warnings: warnings,
      document: result.document)
  }

  /// Returns the arguments with a placeholder for each shell command, because a shell command can contain a password.
  ///
  /// A shell command is the value of an option whose name ends in "command", such as `--password-command`.
  static func withoutSecrets(_ arguments: [String]) -> [String] {
    let placeholder = "(not shown)"
    var result: [String] = []
    var isCommand = false
    for argument in arguments {
      if isCommand {
        result.append(placeholder)
        isCommand = false
      } else if argument.hasPrefix("--"), let equals = argument.firstIndex(of: "="),
        argument[..<equals].hasSuffix("command")
      {
        result.append(argument[...equals] + placeholder)
      } else {
        isCommand = argument.hasPrefix("--") && argument.hasSuffix("command")
        result.append(argument)
      }
    }
    return result
  }
}
