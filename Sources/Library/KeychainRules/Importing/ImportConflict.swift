public import Basics
import KeychainFormats

/// Which of two items with one primary key stays.
public enum ImportConflict {
  /// By how much a winner is dated after the row that it replaces, where its own date is not later.
  static let makeYoungerSeconds = 0.001

  /// Decides between an item of a backup and the row with the same primary key.
  ///
  /// The later modification date wins; at equal dates the smaller digest; an item without a readable date loses
  /// against one with it. What replaces a row ends up younger than that was. A row that stays keeps its date, where
  /// Apple's code adds a millisecond: the same backup merged again then changes nothing.
  ///
  /// - Parameters:
  ///   - modificationDate: The date of the incoming item, `nil` where it has none that can be read.
  ///   - digest: SHA-1 of the incoming item's digest encoding; asked for only where the dates decide nothing.
  ///   - existing: The row that is there; `nil` where nothing has the primary key.
  public static func resolve<Failure: Error>(
    modificationDate: KeychainDate?, digest: () throws(Failure) -> [UInt8], existing: ExistingRow?
  ) throws(Failure) -> ImportResolution {
    guard let existing else { return ImportResolution(.insertsNew, modificationDate: modificationDate) }
    switch existing.state {
    case .corrupt: return ImportResolution(.replaces(.existingCorrupt), modificationDate: modificationDate)
    case .unreadable(let fault): return ImportResolution(.blocked(fault), modificationDate: nil)
    case .tombstone(let uuid, let reference):
      return ImportResolution(
        .replaces(.existingTombstone), modificationDate: modificationDate, inheritedUUID: uuid,
        inheritedPersistentReference: reference)
    case .item(let existingDate, let existingDigest):
      let outcome = try winner(modificationDate, digest, over: existingDate, existingDigest)
      return ImportResolution(outcome, modificationDate: date(after: outcome, modificationDate, existingDate))
    }
  }

  /// Decides between an item of a backup and the row with the same primary key.
  ///
  /// - Throws: `.notAvailable` where a digest cannot be computed.
  public static func resolve(
    incoming: IncomingItem, existing: ExistingRow?
  ) throws(KeychainRuleError) -> ImportResolution {
    try resolve(
      modificationDate: incoming.item.modificationDate, digest: incoming.digest, existing: existing)
  }

  private static func winner<Failure: Error>(
    _ incomingDate: KeychainDate?, _ incomingDigest: () throws(Failure) -> [UInt8],
    over existingDate: KeychainDate?, _ existingDigest: [UInt8]
  ) throws(Failure) -> ImportResolution.Effect {
    switch (incomingDate, existingDate) {
    case (.some, nil): return .replaces(.existingUndated)
    case (nil, .some): return .keepsExisting(.incomingUndated)
    case (let incoming?, let existing?) where incoming > existing: return .replaces(.existingOlder)
    case (let incoming?, let existing?) where incoming < existing: return .keepsExisting(.existingNewer)
    default:
      let incomingDigest = try incomingDigest()
      if incomingDigest == existingDigest { return .identical }
      return incomingDigest.lexicographicallyPrecedes(existingDigest)
        ? .replaces(.sameDateSmallerDigest) : .keepsExisting(.sameDateSmallerDigest)
    }
  }

  private static func date(
    after outcome: ImportResolution.Effect, _ incoming: KeychainDate?, _ existing: KeychainDate?
  ) -> KeychainDate? {
    guard case .replaces = outcome else { return existing }
    guard let existing else { return incoming }
    if let incoming, incoming > existing { return incoming }
    return existing.makingYounger()
  }
}
