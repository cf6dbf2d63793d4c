import KeyhaulKit
import Reports

extension PlanCommand {
  /// Refuses what cannot go together with a list of expectations, and what goes with nothing else.
  func checkExpectationFlags() throws(CommandFailure) {
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

  /// Holds a list against the plan, or with `--compare` against all four restores, and says what it came to.
  ///
  /// - Returns: Whether all that was checked is met.
  /// - Throws: `.usage` where nothing of the list is for this restore.
  func check(
    _ expectations: [PlanExpectation], _ outlook: Outlook, _ report: PlanReport, in session: Session
  ) throws(CommandFailure) -> Bool {
    let setting = ExpectedSetting(hasPassword: report.source.isEncrypted, onSameDevice: outlook.isSameDevice)
    let check =
      view == .compare
      ? ExpectationCheck(expectations, try outlook.compare())
      : ExpectationCheck(expectations, report.plan, in: setting)
    guard !check.cases.isEmpty else {
      throw .usage(
        "no expectation is for this restore", why: "it is a restore \(ExpectationWords.words(setting))",
        try: "--compare, which checks all four, or expectations without password and same_device")
    }
    let result = ExpectationReport(check, report)
    if common.isJUnit {
      func print() throws(CommandFailure) {
        if output == nil { try session.writeRaw(result.junit) } else { try session.say(result) }
      }
      try saveAndPrint("the results were saved", in: session, printing: print) { (portion) throws(CommandFailure) in
        try result.junit.withRawBytes(portion)
      }
    } else {
      try saveAndPrint(report, in: session) { () throws(CommandFailure) in try session.say(result) }
    }
    return check.isMet
  }
}
