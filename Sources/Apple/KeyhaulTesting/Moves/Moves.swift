/// The four possible moves of a phone.
public struct Moves: Sendable {
  /// The move to a new phone from an encrypted backup.
  public let newPhone: Move
  /// The move to a new phone from an unencrypted backup.
  public let newPhoneUnencrypted: Move
  /// The move to the same phone from an encrypted backup.
  public let samePhone: Move
  /// The move to the same phone from an unencrypted backup.
  public let samePhoneUnencrypted: Move

  /// All moves, those to a new phone first.
  public var all: [Move] { [newPhone, newPhoneUnencrypted, samePhone, samePhoneUnencrypted] }

  /// The item's outcome in each of the four moves. The item is found by its name, as in `Move`.
  public subscript(name: String) -> Fates {
    Fates(
      newPhone: newPhone[name], newPhoneUnencrypted: newPhoneUnencrypted[name], samePhone: samePhone[name],
      samePhoneUnencrypted: samePhoneUnencrypted[name])
  }
}

/// The outcomes (`Fate`) of one item in the four moves, for comparisons in tests.
public struct Fates: Sendable, Equatable {
  /// The outcome on a new phone, from an encrypted backup.
  public let newPhone: Fate
  /// The outcome on a new phone, from an unencrypted backup.
  public let newPhoneUnencrypted: Fate
  /// The outcome on the same phone, from an encrypted backup.
  public let samePhone: Fate
  /// The outcome on the same phone, from an unencrypted backup.
  public let samePhoneUnencrypted: Fate

  /// Creates the four outcomes that a test expects.
  public init(newPhone: Fate, newPhoneUnencrypted: Fate, samePhone: Fate, samePhoneUnencrypted: Fate) {
    self.newPhone = newPhone
    self.newPhoneUnencrypted = newPhoneUnencrypted
    self.samePhone = samePhone
    self.samePhoneUnencrypted = samePhoneUnencrypted
  }

  /// Returns whether at least one of the four pairs of outcomes is unequal, as defined by `!=` of `Fate`. Returns
  /// `false` for a mistyped name, so a test that expects a difference fails.
  public static func != (left: Fates, right: Fates) -> Bool {
    left.newPhone != right.newPhone || left.newPhoneUnencrypted != right.newPhoneUnencrypted
      || left.samePhone != right.samePhone || left.samePhoneUnencrypted != right.samePhoneUnencrypted
  }
}

extension Fates: CustomStringConvertible {
  /// The four outcomes with their descriptions, in the order of the initializer's parameters.
  public var description: String {
    """
    newPhone: \(newPhone)
    newPhoneUnencrypted: \(newPhoneUnencrypted)
    samePhone: \(samePhone)
    samePhoneUnencrypted: \(samePhoneUnencrypted)
    """
  }
}
