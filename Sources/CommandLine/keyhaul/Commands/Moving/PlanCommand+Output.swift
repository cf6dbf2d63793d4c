import KeyhaulKit
import Reports

extension PlanCommand {
  /// Writes the plan as a page, or saves and prints it.
  func deliverPlan(_ report: PlanReport, of argument: String?, in session: Session) throws {
    if common.isHTML {
      return try session.deliver(
        report.page(
          from: argument, to: move.to.map(session.stableArgument(ofDevice:)), program: ProgramVersion.signature),
        to: output)
    }
    try saveAndPrint(report, in: session) { () throws(CommandError) in try printPlan(report, in: session) }
  }

  /// Writes the comparison as a page, or prints it.
  func deliverComparison(_ report: ComparisonReport, of argument: String?, in session: Session) throws {
    guard common.isHTML else { return try session.print(report) }
    try session.deliver(
      report.page(
        from: argument, to: move.to.map(session.stableArgument(ofDevice:)), program: ProgramVersion.signature),
      to: output)
  }

  /// Prints the plan and, if it was saved, the command that carries it out.
  private func printPlan(_ report: PlanReport, in session: Session) throws(CommandError) {
    if session.chosenFields != nil { return try session.writeDocument(report.document.json) }
    if session.isJSON { return try report.printDocument(in: session) }
    try report.print(in: session)
    guard let output else { return }
    try session.print()
    let savedSentence = "Saved to \(UntrustedText.escaped(output))."
    guard !redact, report.source.isArchive, let target = move.to else {
      try session.print(
        "\(savedSentence) It is only a report: restore --plan needs a plan made from a backup, with names.")
      return
    }
    if let obstacle = report.obstacle { return try session.print("\(savedSentence) \(obstacle)") }
    let policy = move.policy == .replace ? "" : " --existing \(move.policy.rawValue)"
    let backupArgument = ShellQuoting.argument(source, placeholder: "ARCHIVE")
    let targetArgument = ShellQuoting.argument(target, placeholder: "DEVICE")
    let planArgument = ShellQuoting.argument(output, placeholder: "PLAN")
    let command = "keyhaul restore \(backupArgument) --to \(targetArgument) --plan \(planArgument)\(policy)"
    try session.print("\(savedSentence) To do exactly this:")
    try session.print("  " + session.addingHomeOption(to: command))
  }

  /// Saves the plan to the file given with `-o`, and prints the result. If either fails, the file is not saved.
  func saveAndPrint(
    _ report: PlanReport, in session: Session, printing: () throws(CommandError) -> Void
  ) throws(CommandError) {
    try saveAndPrint("the plan was saved", in: session, printing: printing, saving: report.forEachChunk)
  }

  /// Saves the bytes that `saving` passes in chunks, and prints the result. If either fails, the file is not saved.
  ///
  /// - Parameter clause: The change as a clause, without the file name: "the plan was saved".
  func saveAndPrint(
    _ clause: String, in session: Session, printing: () throws(CommandError) -> Void,
    saving: ((UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) -> Void
  ) throws(CommandError) {
    guard let output else { return try printing() }
    if output == "-" { return try saving { (bytes) throws(CommandError) in try session.writeRaw(bytes) } }
    func printAndFlush() throws(CommandError) {
      try printing()
      try session.flush()
    }
    try session.committing(CommittedChange("\(clause) in \(output)")) { () throws(CommandError) in
      try OutputFile.write(to: output, beforeRenaming: printAndFlush, saving)
    }
  }
}
