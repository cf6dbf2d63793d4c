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

/// A count of rounds that is not the one of real keybags: of a keybag that was changed, so that no password fits any more,
/// or of one that was made to be opened fast.
public struct OddRounds: Sendable, Equatable {
  /// What the keybag asks for; 0 where it leaves the slow derivation out.
  public let rounds: UInt32
  /// What real keybags ask for in the same place.
  public let usual: UInt32
}

extension PasswordDerivation.Parameters {
  /// The first count that is another than that of real keybags, the slow one before the last.
  ///
  /// - Parameter isTwofold: Whether the backup is of a device that derives twice: since iOS 10.2, which is the first one
  ///   with an encrypted list of files.
  public func oddRounds(isTwofold: Bool) -> OddRounds? {
    let standard = UInt32(BackupKeybag.standardRounds)
    if isTwofold || first != nil, first?.iterations != standard {
      return OddRounds(rounds: first?.iterations ?? 0, usual: standard)
    }
    guard iterations != BackupKeybag.lastRounds else { return nil }
    return OddRounds(rounds: iterations, usual: BackupKeybag.lastRounds)
  }

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
