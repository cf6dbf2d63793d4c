public import Basics
public import KeychainFormats

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
  /// - Returns: `nil` where nothing was decided or the winner is not given.
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
  /// - Returns: `nil` where it takes over nothing, or is not given.
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
