import KeyhaulKit
import Reports

/// One run of `inspect` or `verify` for a case report: every backup is asked as if it were alone, and its files are compared
/// before and after.
struct CaseRun<Verb: BackupVerb> {
  private let run: ManyBackupsRun<Verb>
  private let paths: [String]
  private let request: CaseOptions.Request
  private let session: Session

  init(_ verb: Verb, _ request: CaseOptions.Request, in session: Session) throws {
    guard !verb.paths.contains("-") else {
      throw CommandFailure.usage(
        "a case report needs backups in files", why: "- is a stream, whose files cannot be compared before and after",
        try: "the path of the backup")
    }
    let inputs = verb.paths + verb.unlocking.files + verb.many.files
    try session.prepareOutput(request.output, inputs: inputs)
    // The results go into the report.
    run = try ManyBackupsRun(verb.forCase(), in: session)
    paths = verb.paths
    self.request = request
    self.session = session
  }

  func perform() throws -> CommandStatus {
    let clock = DeviceEnvironment.interruptible.clock
    let started = clock.now()
    var (summary, backups) = (AnswerSummary(), [CaseReport.ExaminedBackup]())
    while let place = try run.places.next() {
      try Interruption.check("no report was written")
      let before = EvidenceRecord(of: place.path)
      let answer = run.asking.answer(about: place, nil).answer
      try Interruption.check("no report was written")
      summary.add(answer, isResumed: false)
      backups.append(examined(answer, before.compared(with: EvidenceRecord(of: place.path))))
    }
    guard !backups.isEmpty else {
      throw CommandFailure(.noMatch, "no backup was given", why: "the list of paths is empty", try: "a list with paths")
    }
    summary.passedOver = run.places.passedOver
    let report = CaseReport(
      name: request.name, examiner: request.examiner, program: ProgramVersion.line,
      folder: (try? FileSystem.real.workingDirectoryPath()) ?? "",
      command: ["keyhaul"] + Self.withoutSecrets(Array(ProgramArguments.all.dropFirst())), started: started,
      ended: clock.now(), backups: backups)
    try write(report)
    // Under `--json` standard output holds the document whatever else is written.
    if session.isJSON { try session.answer(report.json) }
    for line in [summary.sentence] + summary.remarks + [report.writingSentence] { session.note(line) }
    session.note("Wrote \(UntrustedText.escaped(request.output)).")
    return summary.status
  }

  private func write(_ report: CaseReport) throws(CommandFailure) {
    guard request.isPage else {
      return try ReportFile.write(to: request.output) { (portion) throws(CommandFailure) in
        try report.json.forEachPortion(portion)
      }
    }
    let text: String
    do throws(DataProtectionError) {
      text = try CasePage(report, program: ProgramVersion.signature).html()
    } catch {
      throw CommandFailure(.failed, "the page cannot be created", why: error.reason)
    }
    try ReportFile.write(Array(text.utf8), to: request.output)
  }

  private func examined(_ answer: BackupAnswer, _ files: EvidenceComparison) -> CaseReport.ExaminedBackup {
    let facts = answer.facts
    let device = answer.document?["device"]
    let claims: [(String, String?)] = [
      ("device_name", facts.deviceName), ("udid", facts.identifier),
      ("made", facts.date.map { Timestamp.text(of: $0) }), ("encrypted", facts.isEncrypted.map { $0 ? "yes" : "no" }),
      ("state", facts.state), ("product_type", device?["product_type"]?.stringValue),
      ("ios", device?["product_version"]?.stringValue), ("build", device?["build_version"]?.stringValue),
      ("serial_number", device?["serial_number"]?.stringValue),
    ]
    let warnings = answer.warnings.map { $0.message + ($0.why.map { ": \($0)" } ?? "") }
    return CaseReport.ExaminedBackup(
      path: answer.path, result: answer.result, headline: BackupAnswer.headline(of: answer.result) ?? "",
      reason: answer.reason, digest: facts.digest, sealCode: facts.sealCode,
      sealState: answer.document?["seal"]?.stringValue ?? (facts.hasSeal == false ? "missing" : nil), files: files,
      claims: claims.compactMap { name, value in value.map { (name, $0) } }, warnings: warnings,
      document: answer.document)
  }

  /// Returns the arguments without the values of options that take a command, because a command can contain a password.
  static func withoutSecrets(_ arguments: [String]) -> [String] {
    let hidden = "(not shown)"
    var result: [String] = []
    var isValue = false
    for argument in arguments {
      if isValue {
        result.append(hidden)
        isValue = false
      } else if argument.hasPrefix("--"), let equals = argument.firstIndex(of: "="),
        argument[..<equals].hasSuffix("command")
      {
        result.append(argument[...equals] + hidden)
      } else {
        isValue = argument.hasPrefix("--") && argument.hasSuffix("command")
        result.append(argument)
      }
    }
    return result
  }
}
