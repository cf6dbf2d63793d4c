import KeyhaulKit
import Reports

extension PlanReport {
  /// Prints the plan as text. A warning that nothing moves comes first, on standard error.
  func print(in session: Session) throws(CommandError) {
    if let warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    let style = session.resultStyle
    for line in verdictLines(style: style) + heading(style: style) { try session.print(line) }
    try session.print()
    let text = text(showsAll: session.common.verbose > 0)
    for line in text.legend(style: style) { try session.print(line) }
    for line in text.lines(style: style) { try session.print(line) }
  }

  /// Passes the document with its checksum to a closure, in chunks. Equal plans result in equal bytes.
  func forEachChunk(_ body: (UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) {
    try PlanFile.forEachChunk(
      of: document, translating: { CommandError($0, failedAction: "the plan cannot be written") }, body)
  }

  /// Writes the document with its checksum as the command's result.
  func printDocument(in session: Session) throws(CommandError) {
    try forEachChunk(session.writeChunk)
  }
}
