/// A count of rounds that no real keybag of its form comes near, though it may be within the limit.
public struct UnusualRounds: Sendable, Equatable {
  /// What the keybag asks for, and what real ones do.
  public let rounds: UInt32
  /// What real keybags ask for in the same place.
  public let usual: UInt32

  /// "400 times": how many times the usual count it is, rounded down.
  public var multiple: UInt32 { rounds / max(1, usual) }

  /// - Returns: `nil` for a count up to `RoundLimit.usualMultiple` times the usual.
  init?(_ rounds: UInt32, usual: UInt32) {
    guard UInt64(rounds) > UInt64(usual) * UInt64(RoundLimit.usualMultiple) else { return nil }
    self.rounds = rounds
    self.usual = usual
  }
}

extension PasswordDerivation.Parameters {
  /// The count that is furthest from what a real keybag asks for: 10,000 in its last or only round, and 10,000,000 in
  /// the first of two. `nil` where none is more than five times that.
  ///
  /// Source: as `BackupKeybag.standardRounds` and `BackupKeybag.lastRounds`.
  public var unusualRounds: UnusualRounds? {
    let last = UnusualRounds(iterations, usual: BackupKeybag.lastRounds)
    let first = first.flatMap { UnusualRounds($0.iterations, usual: UInt32(BackupKeybag.standardRounds)) }
    guard let last, let first else { return last ?? first }
    return first.multiple > last.multiple ? first : last
  }
}
