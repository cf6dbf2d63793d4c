public import Basics
public import KeychainFormats

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
  ///   - modificationDate: The date of the incoming item, `nil` if it has none that can be read.
  ///   - digest: SHA-1 of the incoming item's digest encoding; asked for only where the dates decide nothing.
  ///   - existing: The row that is there; `nil` if nothing has the primary key.
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

/// What happens to an item of a backup that meets a row with its primary key, or none.
///
/// A pure decision: the plan shows it, the store carries it out.
/// Source: Apple `SecItemDb.c` (`SecServerImportItem`), `SecDbItem.c` (`SecDbItemInsertOrReplace`).
public struct ImportResolution: Sendable, Equatable {
  /// What happens.
  public enum Effect: Sendable, Equatable {
    /// Nothing with this primary key is there.
    case insertsNew
    /// The item takes the place of the row.
    case replaces(Replacement)
    /// The row stays, with its date.
    case keepsExisting(Retention)
    /// Both are the same item to the last byte that counts; the existing row stays.
    case identical
    /// The existing row cannot be looked at now, so nothing can be decided.
    indirect case blocked(RowFault)
  }

  /// Why the item of the backup wins.
  public enum Replacement: String, Sendable {
    /// The row does not open, is a mark, is older, has no date while the item has one, or at equal dates has the larger
    /// digest.
    case existingCorrupt, existingTombstone, existingOlder, existingUndated, sameDateSmallerDigest
  }

  /// Why the existing row wins.
  public enum Retention: String, Sendable {
    /// The row is newer, the item has no date while the row has one, or at equal dates the row has the smaller digest.
    case existingNewer, incomingUndated, sameDateSmallerDigest
  }

  /// What happens, and why.
  public let outcome: Effect
  /// The modification date that the row holds afterwards; that of a row that stays is left as it is.
  public let modificationDate: KeychainDate?
  /// What the row takes over from the tombstone that it replaces.
  public let inheritedUUID: String?
  /// The persistent reference that the row takes over from the tombstone, 16 bytes.
  public let inheritedPersistentReference: [UInt8]?

  init(
    _ outcome: Effect, modificationDate: KeychainDate?, inheritedUUID: String? = nil,
    inheritedPersistentReference: [UInt8]? = nil
  ) {
    self.outcome = outcome
    self.modificationDate = modificationDate
    self.inheritedUUID = inheritedUUID
    self.inheritedPersistentReference = inheritedPersistentReference
  }
}

extension ImportResolution {
  /// What the row holds afterwards, but for the digest, which is made again.
  ///
  /// - Parameters:
  ///   - incoming: The backup's item; its persistent reference goes to the winner.
  ///   - existing: The item of the row that was there.
  /// - Returns: `nil` if nothing was decided or the winner is not given.
  public func storedItem(incoming: KeychainItem, existing: KeychainItem?) -> KeychainItem? {
    let winner: KeychainItem?
    switch outcome {
    // It has met nothing that it could take anything over from.
    case .insertsNew: return incoming
    case .replaces: winner = incoming
    case .keepsExisting, .identical: winner = existing
    case .blocked: return nil
    }
    guard var stored = winner else { return nil }
    // Most stay as they are, and the attributes are not copied then.
    if stored.modificationDate != modificationDate { stored[.modificationDate] = modificationDate.map { .date($0) } }
    if let inheritedUUID { stored[.uuid] = .string(inheritedUUID) }
    let reference = inheritedPersistentReference.map { .data($0) } ?? incoming[.persistentReference]
    if let reference, stored[.persistentReference] != reference { stored[.persistentReference] = reference }
    return stored
  }
}

extension ImportResolution {
  /// The row that stays, with what it takes over from the item of the backup.
  ///
  /// - Returns: `nil` if it takes over nothing, or is not given.
  package func keptItem(incoming: IncomingItem, existing: KeychainItem?) -> KeychainItem? {
    guard let existing, let kept = storedItem(incoming: incoming.item, existing: existing) else { return nil }
    let isSame =
      kept.modificationDate == existing.modificationDate
      && kept[.persistentReference] == existing[.persistentReference]
    return isSame ? nil : kept
  }

  /// Whether the row that was there stays as it is, to the last byte.
  package func leaves(_ existing: KeychainItem?, meeting incoming: IncomingItem) -> Bool {
    switch outcome {
    case .keepsExisting, .identical: existing != nil && keptItem(incoming: incoming, existing: existing) == nil
    case .insertsNew, .replaces, .blocked: false
    }
  }
}

extension ImportResolution.Effect {
  package var isReplacement: Bool {
    switch self {
    case .replaces: true
    case .insertsNew, .keepsExisting, .identical, .blocked: false
    }
  }
}

/// The row that is there already, as far as the decision needs it.
public struct ExistingRow: Sendable, Equatable {
  /// What the row is to an item that comes.
  public enum State: Sendable, Equatable {
    /// Does not open, lacks what an item needs, or its stored digest is not the digest of its content.
    case corrupt
    /// The mark of a deleted item. What replaces it takes over its UUID and its reference.
    case tombstone(uuid: String?, persistentReference: [UInt8]?)
    /// A sound item; the later date wins, then the smaller digest.
    case item(modificationDate: KeychainDate?, digest: [UInt8])
    /// A fault that passes.
    case unreadable(RowFault)
  }

  /// What the row is.
  public let state: State

  /// Creates a row of a state.
  public init(state: State) { self.state = state }
}

extension ExistingRow {
  /// The row that an item makes once it is stored, for deciding about a second item with its primary key.
  ///
  /// - Throws: `.parameter` for an item that has no digest.
  public init(storing item: KeychainItem) throws(KeychainRuleError) {
    if item.isTombstone {
      self.init(
        state: .tombstone(
          uuid: item[.uuid]?.stringValue, persistentReference: item[.persistentReference]?.dataValue))
    } else {
      self.init(state: .item(modificationDate: item.modificationDate, digest: try item.storedDigest()))
    }
  }
}
