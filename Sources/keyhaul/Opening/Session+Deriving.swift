import CommandSession
import DataProtection
import KeychainFormats

extension Session {
  /// Shows that a key is being derived, and lets Ctrl-C end it.
  func deriving<Value: ~Copyable, Failure: Error>(
    rounds: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let title = "Deriving key: \(Amounts.grouped(rounds)) rounds"
    return try progress(title, phase: "derive-key") { (report) throws(Failure) in
      try body { done, total in
        report.update(done: done, total: total)
        return Interruption.pending == nil
      }
    }
  }

  /// The same for an archive, its errors told in the words of what the user named.
  func deriving<Value: ~Copyable, Failure: ExplainedError>(
    rounds: Int, of name: String, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(Failure) {
      return try deriving(rounds: rounds, body)
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: name)
    }
  }
}

extension Keybag {
  /// Rounds of both derivations, as the header asks for them.
  var totalRounds: Int { Int(iterations ?? 0) + Int(secondRound?.rounds ?? 0) }
}
