import CommandArguments
import CommandSession

extension Plan {
  /// Refuses flags that cannot go together.
  func checkFlags() throws(CommandFailure) {
    try common.check(output: output)
    if move.to == nil, move.existing.given != nil {
      throw .usage(
        "--existing needs --to", why: "without it the devices are thought of, and nothing is on them",
        try: "--to DEVICE, or leave --existing out")
    }
    if let name = view?.flag {
      // The comparison has a page of its own; the other views have none.
      let hasPage = view == .compare
      let savesResults = expect != nil && common.isJUnit
      if output != nil, !(hasPage && common.isHTML), !savesResults {
        throw .usage(
          "\(name) and -o cannot go together", why: "it is not a plan to save", try: "a plan without \(name)")
      }
      if common.isHTML, !hasPage {
        throw .usage(
          "\(name) and --format html cannot go together", why: "the page is that of the plan", try: "one of them")
      }
      if expect != nil, view != .compare {
        throw .usage("\(name) and --expect cannot go together", try: "one of them, or --compare --expect")
      }
      if redact {
        throw .usage("\(name) and --redact cannot go together", why: "it is about names", try: "one of them")
      }
    }
    try checkExpectationFlags()
  }
}
