/// The four moves that there are of one phone.
public struct AllMoves: Sendable {
  /// To a new phone from an encrypted backup.
  public let newPhone: Move
  /// To a new phone from an unencrypted backup.
  public let newPhoneUnencrypted: Move
  /// To the same phone from an encrypted backup.
  public let samePhone: Move
  /// To the same phone from an unencrypted backup.
  public let samePhoneUnencrypted: Move

  /// The moves themselves, those to a new phone first.
  public var all: [Move] { [newPhone, newPhoneUnencrypted, samePhone, samePhoneUnencrypted] }

  /// What becomes of the item with this name in each of the four.
  public subscript(name: String) -> Fates {
    Fates(
      newPhone: newPhone[name], newPhoneUnencrypted: newPhoneUnencrypted[name], samePhone: samePhone[name],
      samePhoneUnencrypted: samePhoneUnencrypted[name])
  }
}

/// What becomes of an item in each of the four moves, for a test to compare with.
public struct Fates: Sendable, Equatable {
  /// On a new phone, from an encrypted backup.
  public let newPhone: Fate
  /// On a new phone, from an unencrypted backup.
  public let newPhoneUnencrypted: Fate
  /// On the same phone, from an encrypted backup.
  public let samePhone: Fate
  /// On the same phone, from an unencrypted backup.
  public let samePhoneUnencrypted: Fate

  /// Creates the four fates that a test expects.
  public init(newPhone: Fate, newPhoneUnencrypted: Fate, samePhone: Fate, samePhoneUnencrypted: Fate) {
    self.newPhone = newPhone
    self.newPhoneUnencrypted = newPhoneUnencrypted
    self.samePhone = samePhone
    self.samePhoneUnencrypted = samePhoneUnencrypted
  }

  /// Whether one of the four is unequal, as `Fate` says it: a mistyped name is unequal to nothing.
  public static func != (left: Fates, right: Fates) -> Bool {
    left.newPhone != right.newPhone || left.newPhoneUnencrypted != right.newPhoneUnencrypted
      || left.samePhone != right.samePhone || left.samePhoneUnencrypted != right.samePhoneUnencrypted
  }
}

extension Fates: CustomStringConvertible {
  /// The four fates, each as it is printed alone, in the order of the initializer's arguments.
  public var description: String {
    let named = [
      ("newPhone", newPhone), ("newPhoneUnencrypted", newPhoneUnencrypted), ("samePhone", samePhone),
      ("samePhoneUnencrypted", samePhoneUnencrypted),
    ]
    return named.map { "\($0.0): \($0.1)" }.joined(separator: "\n")
  }
}
