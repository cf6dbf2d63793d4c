public import KeychainFormats

/// What happens to an item of a backup that meets a row with its primary key, or none.
///
/// A pure decision: the plan shows it, the store carries it out.
/// Source: Apple `SecItemDb.c` (`SecServerImportItem`), `SecDbItem.c` (`SecDbItemInsertOrReplace`).
public struct ImportResolution: Sendable, Equatable {
  public enum Outcome: Sendable, Equatable {
    case insertsNew
    case replaces(Replacement)
    case keepsExisting(Retention)
    /// Both are the same item to the last byte that counts; the existing row stays.
    case identical
    /// The existing row cannot be looked at now, so nothing can be decided.
    case blocked(RowFault)
  }

  /// Why the item of the backup wins.
  public enum Replacement: String, Sendable {
    case existingCorrupt, existingTombstone, existingOlder, existingUndated, sameDateSmallerDigest
  }

  /// Why the existing row wins.
  public enum Retention: String, Sendable {
    case existingNewer, incomingUndated, sameDateSmallerDigest
  }

  public let outcome: Outcome
  /// The modification date that the row holds afterwards; that of a row that stays is left as it is.
  public let modificationDate: KeychainDate?
  /// What the row takes over from the tombstone that it replaces.
  public let inheritedUUID: String?
  public let inheritedPersistentReference: [UInt8]?

  init(
    _ outcome: Outcome, modificationDate: KeychainDate?, inheritedUUID: String? = nil,
    inheritedPersistentReference: [UInt8]? = nil
  ) {
    self.outcome = outcome
    self.modificationDate = modificationDate
    self.inheritedUUID = inheritedUUID
    self.inheritedPersistentReference = inheritedPersistentReference
  }
}

extension ImportResolution {
  /// What the row holds afterwards, but for the digest, which is made anew.
  ///
  /// - Parameters:
  ///   - incoming: The backup's item; its persistent reference goes to the winner.
  ///   - existing: The item of the row that was there.
  /// - Returns: `nil` where nothing was decided or the winner is not given.
  public func storedItem(incoming: KeychainItem, existing: KeychainItem?) -> KeychainItem? {
    let winner: KeychainItem? =
      switch outcome {
      case .insertsNew, .replaces: incoming
      case .keepsExisting, .identical: existing
      case .blocked: nil
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
  /// - Returns: `nil` where it takes over nothing, or is not given.
  func keptItem(incoming: IncomingItem, existing: KeychainItem?) -> KeychainItem? {
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

extension ImportResolution.Outcome {
  package var isReplacement: Bool {
    switch self {
    case .replaces: true
    case .insertsNew, .keepsExisting, .identical, .blocked: false
    }
  }
}

/// The row that is there already, as far as the decision needs it.
public struct ExistingRow: Sendable, Equatable {
  public enum State: Sendable, Equatable {
    /// Does not open, lacks what an item needs, or its stored digest is not the digest of its content.
    case corrupt
    case tombstone(uuid: String?, persistentReference: [UInt8]?)
    case item(modificationDate: KeychainDate?, digest: [UInt8])
    /// A fault that passes.
    case unreadable(RowFault)
  }

  public let state: State

  public init(state: State) { self.state = state }
}

public enum ImportConflict {
  /// By how much a winner is dated after the row that it replaces, where its own date is not later.
  public static let makeYoungerSeconds = 0.001

  /// Decides between an item of a backup and the row with the same primary key.
  ///
  /// The later modification date wins; at equal dates the smaller digest; an item without a readable date loses
  /// against one with it. What replaces a row ends up younger than that was. A row that stays keeps its date, where
  /// Apple's code adds a millisecond: the same backup merged again then changes nothing.
  ///
  /// - Parameters:
  ///   - modificationDate: The date of the incoming item, `nil` where it has none that can be read.
  ///   - digest: SHA-1 of the incoming item's digest encoding; asked for only where the dates decide nothing.
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

  /// - Throws: `.notAvailable` where a digest cannot be computed.
  public static func resolve(
    incoming: IncomingItem, existing: ExistingRow?
  ) throws(KeychainStoreError) -> ImportResolution {
    try resolve(
      modificationDate: incoming.item.modificationDate, digest: incoming.digest, existing: existing)
  }

  private static func winner<Failure: Error>(
    _ incomingDate: KeychainDate?, _ incomingDigest: () throws(Failure) -> [UInt8],
    over existingDate: KeychainDate?, _ existingDigest: [UInt8]
  ) throws(Failure) -> ImportResolution.Outcome {
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
    after outcome: ImportResolution.Outcome, _ incoming: KeychainDate?, _ existing: KeychainDate?
  ) -> KeychainDate? {
    guard case .replaces = outcome else { return existing }
    guard let existing else { return incoming }
    if let incoming, incoming > existing { return incoming }
    return existing.makingYounger()
  }
}

extension KeychainDate {
  /// The smallest later date that Apple's code gives to what replaces something.
  func makingYounger() -> KeychainDate {
    KeychainDate(secondsSinceReferenceDate: secondsSinceReferenceDate + ImportConflict.makeYoungerSeconds)
  }
}
