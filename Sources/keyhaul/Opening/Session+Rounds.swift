import BackupArchive
import CommandSession
import DataProtection
import KeychainFormats

extension Session {
  /// Asks before a keybag gets more work done than any real one asks for. A user who named a limit has answered.
  ///
  /// - Throws: `.refused` where nobody can be asked; `.failed` after a no.
  func confirmRounds(of named: NamedArchive, accepting options: OpeningOptions) throws(CommandFailure) {
    guard !options.namesRounds, let parameters = try? named.archive.keybag.derivationParameters(),
      let unusual = parameters.unusualRounds
    else { return }
    // Once for each archive: what is opened twice is asked about once.
    guard !acceptedRounds.contains(named.name) else { return }
    let demand = Self.demand(unusual, duration: try? parameters.estimatedDuration())
    guard let terminal = terminal() else {
      throw CommandFailure(
        .refused, "refused to open \(named.name)", why: "it \(demand); \(missingTerminal)",
        try: "don't trust this file; --max-rounds \(parameters.totalRounds) accepts so many")
    }
    if common.yes {
      warn("\(named.name) \(demand)", try: "don't trust this file")
    } else {
      let answer = try terminal.line(
        messageStyle.adapted(HostileText.shown("\(named.name) \(demand). Go on?")) + " [y/N] ")
      guard ["y", "yes"].contains(answer.lowercased()) else {
        throw CommandFailure(.failed, "stopped: the answer was not yes", why: "nothing was changed")
      }
    }
    acceptedRounds.insert(named.name)
  }

  /// "asks for 4,000,000 rounds of key derivation, 400 times the usual 10,000; about 12 s on this machine".
  private static func demand(_ unusual: UnusualRounds, duration: Duration?) -> String {
    let time = duration.map { "; \(Amounts.estimate($0)) on this machine" } ?? ""
    return "asks for \(Amounts.grouped(Int(unusual.rounds))) rounds of key derivation, "
      + "\(Amounts.grouped(Int(unusual.multiple))) times the usual \(Amounts.grouped(Int(unusual.usual)))\(time)"
  }
}
