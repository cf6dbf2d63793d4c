import KeyhaulKit

extension ArchiveUnlocker {
  /// Refuses a keybag that asks for too much work, and asks about one that asks for far more than is usual, before anybody
  /// is asked for a password.
  func checkRounds() throws(CommandFailure) {
    do throws(ArchivedKeychainError) {
      try ArchiveKey.checkRounds(of: archive, acceptingAtMost: options.rounds)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    try confirmRounds()
  }

  /// Asks before a keybag gets more work done than any real one asks for. A user who named a limit has answered.
  ///
  /// - Throws: `.refused` where nobody can be asked; `.failed` after a no.
  private func confirmRounds() throws(CommandFailure) {
    guard !options.namesRounds, let parameters = try? archive.keybag.derivationParameters(),
      let unusual = parameters.unusualRounds
    else { return }
    guard !isWorkAccepted else { return }
    let demand = Self.demand(unusual, duration: try? parameters.estimatedDuration())
    guard let terminal = session.terminal() else {
      throw CommandFailure(
        .refused, "refused to open \(name)", why: "it \(demand); \(session.missingTerminal)",
        try: "don't trust this file; --max-rounds \(parameters.totalRounds) accepts this many")
    }
    if session.common.yes {
      session.warn("\(name) \(demand)", try: "don't trust this file")
    } else {
      try session.ask("\(name) \(demand). Go on?", on: terminal)
    }
    isWorkAccepted = true
  }

  /// "asks for 4,000,000 rounds of key derivation, 400 times the usual 10,000; about 12 s on this machine".
  private static func demand(_ unusual: UnusualRounds, duration: Duration?) -> String {
    let time = duration.map { "; \(Amounts.estimate($0)) on this machine" } ?? ""
    return "asks for \(Amounts.grouped(Int(unusual.rounds))) iterations of key derivation, "
      + "\(Amounts.grouped(Int(unusual.multiple))) times the usual \(Amounts.grouped(Int(unusual.usual)))\(time)"
  }
}

extension Keybag {
  /// The iterations of both derivations, as the header asks for them.
  var totalRounds: Int { Int(iterations ?? 0) + Int(secondRound?.rounds ?? 0) }
}
