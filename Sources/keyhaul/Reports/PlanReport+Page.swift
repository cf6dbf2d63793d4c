import DataProtection
import KeychainFormats
import Migration
import MigrationReports

extension PlanReport {
  /// The plan as one HTML file.
  func page() throws(CommandFailure) -> String {
    let page = PlanPage(
      plan, made: document.made, source: document.source, target: document.target,
      program: "keyhaul \(Keyhaul.version)")
    do throws(DataProtectionError) {
      return try page.html()
    } catch {
      throw CommandFailure(.failed, "the page cannot be made", why: error.reason)
    }
  }
}

extension Session {
  /// A page as the result: into a file, or to standard output where that is no terminal.
  func deliver(page: String, to output: String?) throws(CommandFailure) {
    if let output, output != "-" {
      try ReportFile.write(Array(page.utf8), to: output)
      note("Wrote \(HostileText.shown(output)); open it in a browser.")
      return
    }
    guard output != nil || !resultIsOnTerminal else {
      throw .usage("a page is nothing to read on a terminal", try: "-o FILE, or -o - to see its source")
    }
    try writeRaw(Array(page.utf8))
  }
}
