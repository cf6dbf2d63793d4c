import KeyhaulKit
import Reports

extension PlanCommand {
  /// Rejects flags that cannot be combined with `--expect`, and `--format junit` without it.
  func checkExpectationFlags() throws(CommandError) {
    guard expect != nil else {
      guard common.isJUnit else { return }
      throw .usage(
        "--format junit needs --expect", why: "its tests come from a list of expectations", try: "--expect FILE")
    }
    if common.isHTML {
      throw .usage(
        "--expect and --format html cannot be used together", why: "the page shows the plan",
        try: "use only one of them")
    }
    if redact {
      throw .usage(
        "--redact and --expect cannot be used together", why: "an expectation uses names",
        try: "use only one of them")
    }
  }

  /// Checks the plan, or with `--compare` all four restores, against a list of expectations, and prints the result.
  ///
  /// - Returns: Whether all expectations that apply are met.
  /// - Throws: `.usage` if no expectation applies to this restore.
  func check(
    _ expectations: [PlanExpectation], _ comparable: ComparablePlan, in session: Session
  ) throws(CommandError) -> Bool {
    let report = comparable.report
    let scenario = ActualScenario(hasPassword: report.source.isEncrypted, onSameDevice: comparable.isSameDevice)
    let comparison = view == .compare ? try comparable.compare() : nil
    let check: ExpectationCheck
    do throws(KeyhaulError) {
      check = try session.computing { () throws(KeyhaulError) in
        if let comparison { return try ExpectationCheck(expectations, comparison) }
        return try ExpectationCheck(expectations, report.plan, in: scenario)
      }
    } catch {
      throw CommandError(error, failedAction: "cannot check the expectations")
    }
    guard !check.cases.isEmpty else {
      throw .usage(
        "no expectation applies to this restore",
        why: "it is a restore \(ExpectationMessages.description(of: scenario))",
        try: "--compare, which checks all four restores, or expectations without password and same_device")
    }
    let result = ExpectationReport(check, report)
    if common.isJUnit {
      func printResult() throws(CommandError) {
        if output == nil { try session.writeRaw(result.junit) } else { try session.print(result) }
      }
      try saveAndPrint("the results were saved", in: session, printing: printResult) { (write) throws(CommandError) in
        try result.junit.withRawBytes(write)
      }
    } else {
      try saveAndPrint(report, in: session) { () throws(CommandError) in try session.print(result) }
    }
    return check.isMet
  }
}

/// A file of expectations (format `plan-expectations/1`).
enum ExpectationFile {
  /// The maximum size of the file in bytes, far more than anyone writes by hand.
  static let maximumByteCount = 16 << 20

  /// Reads the bytes of the file.
  static func bytes(of path: String, in session: Session) throws(CommandError) -> [UInt8] {
    try InputFile.read(path, atMost: maximumByteCount, what: "the expectations", in: session)
  }

  /// Reads the expectations.
  ///
  /// - Throws: `.usage` if the file is not a list of expectations.
  static func read(_ path: String, in session: Session) throws(CommandError) -> [PlanExpectation] {
    let bytes = try bytes(of: path, in: session)
    do throws(KeyhaulError) {
      return try PlanExpectations(parsing: bytes).expectations
    } catch {
      throw .usage("\(InputFile.name(path)) is not a list of expectations", why: error.reason, try: error.advice)
    }
  }
}
