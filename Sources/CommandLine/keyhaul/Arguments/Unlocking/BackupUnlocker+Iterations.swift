import KeyhaulKit

extension BackupUnlocker {
  /// Checks the keybag's iteration count before asking for a password. Rejects a count over the limit, and asks about
  /// an unusually high one.
  func checkIterationCount() throws(CommandError) {
    do throws(KeyhaulError) {
      try BackupKey.checkIterations(of: archive, acceptingAtMost: options.maximumIterations)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    try confirmIterations()
  }

  /// Asks before deriving a key with far more iterations than any real keybag has. Does not ask if the user set the
  /// limit.
  ///
  /// - Throws: `.refused` if Keyhaul cannot ask; `.failed` if the user does not agree.
  private func confirmIterations() throws(CommandError) {
    guard !options.hasIterationLimit, !isIterationCountAccepted,
      let parameters = try? archive.keybag.derivationParameters(),
      let unusual = parameters.excessiveIterations
    else { return }
    let warning = Self.iterationWarning(unusual, duration: try? parameters.estimatedDuration())
    guard let terminal = session.terminal() else {
      throw CommandError(
        .refused, "refused to open \(name)", why: "it \(warning); \(session.missingTerminal)",
        try: "don't trust this file; --max-rounds \(parameters.totalIterations) accepts this many iterations")
    }
    if session.common.yes {
      session.warn("\(name) \(warning)", try: "don't trust this file")
    } else {
      try session.ask("\(name) \(warning). Go on?", on: terminal)
    }
    isIterationCountAccepted = true
  }

  /// Returns a clause such as "asks for 4,000,000 iterations of key derivation, 400 times the usual 10,000; about 12 s
  /// on this machine".
  private static func iterationWarning(_ unusual: ExcessiveIterationCount, duration: Duration?) -> String {
    let time = duration.map { "; \(HumanReadable.estimate($0)) on this machine" } ?? ""
    let count = HumanReadable.grouped(Int(unusual.iterations))
    let multiple = HumanReadable.grouped(Int(unusual.multiple))
    let usualCount = HumanReadable.grouped(Int(unusual.usual))
    return "asks for \(count) iterations of key derivation, \(multiple) times the usual \(usualCount)\(time)"
  }
}

extension Keybag {
  /// The iterations of both derivations.
  var totalIterations: Int { Int(iterations ?? 0) + Int(secondStep?.iterations ?? 0) }
}
