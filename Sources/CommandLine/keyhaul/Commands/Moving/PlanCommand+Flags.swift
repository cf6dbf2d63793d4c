extension PlanCommand {
  /// Refuses flags that cannot go together.
  func checkFlags() throws(CommandFailure) {
    try common.check(output: output)
    if move.to == nil, move.existing.given != nil {
      throw .usage(
        "--existing needs --to", why: "without a target, the plan assumes empty devices",
        try: "--to DEVICE, or leave --existing out")
    }
    if let name = view?.flag {
      // The comparison has a page of its own; the other views have none.
      let hasPage = view == .compare
      let savesResults = expect != nil && common.isJUnit
      if output != nil, !(hasPage && common.isHTML), !savesResults {
        throw .usage(
          "\(name) and -o cannot be used together", why: "it is not a plan to save", try: "a plan without \(name)")
      }
      if common.isHTML, !hasPage {
        throw .usage(
          "\(name) and --format html cannot be used together", why: "the page shows the plan",
          try: "use only one of them")
      }
      if expect != nil, view != .compare {
        throw .usage("\(name) and --expect cannot be used together", try: "one of them, or --compare --expect")
      }
      if redact {
        throw .usage("\(name) and --redact cannot be used together", why: "it shows names", try: "use only one of them")
      }
    }
    try checkExpectationFlags()
  }
}
