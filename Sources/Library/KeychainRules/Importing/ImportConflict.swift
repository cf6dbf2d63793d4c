package import Basics
package import KeychainFormats

/// Decides which of two items with the same primary key stays.
///
/// `ExistingItemPolicy` in KeyhaulKit decides earlier which of the target's rows a restore removes.
package enum ImportConflict {
  /// A number of seconds. An item that replaces a row although its own date is not later is dated this much after the
  /// row.
  static let tieBreakInterval = 0.001

  /// Decides between an item of a backup and the row with the same primary key.
  ///
  /// The item with the later modification date wins, or with the smaller digest if the dates are equal. An item without
  /// a readable date loses to one with a date. An item that replaces an intact row is always dated after the row.
  ///
  /// A row that stays keeps its date, so merging the same backup again changes nothing. Apple's code would add a
  /// millisecond to the date.
  ///
  /// - Parameters:
  ///   - modificationDate: The date of the incoming item, or `nil` if it has no readable date.
  ///   - digest: Returns the SHA-1 of the incoming item's digest encoding; called only if the dates are equal or both
  ///     missing.
  ///   - existing: The existing row, or `nil` if no row has the primary key.
  /// - Throws: The error of `digest`.
  package static func resolve<Failure: Error>(
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
      let effect = try effect(
        incomingDate: modificationDate, incomingDigest: digest, existingDate: existingDate,
        existingDigest: existingDigest)
      let finalDate = date(after: effect, incomingDate: modificationDate, existingDate: existingDate)
      return ImportResolution(effect, modificationDate: finalDate)
    }
  }

  /// Decides between an item of a backup and the row with the same primary key.
  ///
  /// - Throws: `.notAvailable` if a digest cannot be computed.
  package static func resolve(
    incoming: IncomingItem, existing: ExistingRow?
  ) throws(KeychainRuleError) -> ImportResolution {
    try resolve(
      modificationDate: incoming.item.modificationDate, digest: incoming.digest, existing: existing)
  }

  /// Decides between an item and an intact row.
  private static func effect<Failure: Error>(
    incomingDate: KeychainDate?, incomingDigest: () throws(Failure) -> [UInt8],
    existingDate: KeychainDate?, existingDigest: [UInt8]
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

  /// Returns the modification date that the row has after the import.
  private static func date(
    after effect: ImportResolution.Effect, incomingDate: KeychainDate?, existingDate: KeychainDate?
  ) -> KeychainDate? {
    guard case .replaces = effect else { return existingDate }
    guard let existingDate else { return incomingDate }
    if let incomingDate, incomingDate > existingDate { return incomingDate }
    return existingDate.advancedByTieBreak()
  }
}

/// The result of importing an item of a backup: its effect on the row with the same primary key, if there is one.
///
/// The resolution is a value: the plan shows it, and the store applies it.
/// Source: Apple `SecItemDb.c` (`SecServerImportItem`), `SecDbItem.c` (`SecDbItemInsertOrReplace`).
package struct ImportResolution: Sendable, Equatable {
  /// An effect on the database.
  package enum Effect: Sendable, Equatable {
    /// No row has this primary key, so the item is inserted.
    case insertsNew
    /// The item replaces the row.
    case replaces(Replacement)
    /// The row stays, with its date.
    case keepsExisting(Retention)
    /// The dates and the digests are equal, so both are the same item. The existing row stays.
    case identical
    /// The existing row cannot be read now, so nothing can be decided.
    indirect case blocked(RowFault)
  }

  /// A reason why the backup's item wins.
  package enum Replacement: String, Sendable {
    /// The row cannot be decrypted.
    case existingCorrupt
    case existingTombstone
    case existingOlder
    /// The row has no date, but the item has one.
    case existingUndated
    /// The dates are equal, and the item has the smaller digest.
    case sameDateSmallerDigest
  }

  /// A reason why the existing row wins.
  package enum Retention: String, Sendable {
    case existingNewer
    /// The item has no date, but the row has one.
    case incomingUndated
    /// The dates are equal, and the row has the smaller digest.
    case sameDateSmallerDigest
  }

  /// The effect and its reason.
  package let outcome: Effect
  /// The modification date that the row has after the import. A row that stays keeps its date.
  package let modificationDate: KeychainDate?
  /// The UUID that the row inherits from the tombstone that it replaces.
  package let inheritedUUID: String?
  /// The persistent reference that the row inherits from the tombstone, 16 bytes.
  package let inheritedPersistentReference: [UInt8]?

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
  /// Returns the item that the row stores after the import, without its digest, which has to be computed again.
  ///
  /// - Parameters:
  ///   - incoming: The backup's item. The row gets the item's persistent reference, unless a replaced tombstone has one.
  ///   - existing: The item of the existing row.
  /// - Returns: The item, or `nil` if the row cannot be read now, or if the row stays and `existing` is `nil`.
  package func storedItem(incoming: KeychainItem, existing: KeychainItem?) -> KeychainItem? {
    let winner: KeychainItem?
    switch outcome {
    // There is no row to inherit anything from.
    case .insertsNew: return incoming
    case .replaces: winner = incoming
    case .keepsExisting, .identical: winner = existing
    case .blocked: return nil
    }
    guard var stored = winner else { return nil }
    // Most items stay unchanged, and then the attributes are not copied.
    if stored.modificationDate != modificationDate { stored[.modificationDate] = modificationDate.map { .date($0) } }
    if let inheritedUUID { stored[.uuid] = .string(inheritedUUID) }
    let reference = inheritedPersistentReference.map { .data($0) } ?? incoming[.persistentReference]
    if let reference, stored[.persistentReference] != reference { stored[.persistentReference] = reference }
    return stored
  }
}

extension ImportResolution {
  /// Returns the row that stays, with the values that it inherits from the backup's item.
  ///
  /// - Returns: The row's item, or `nil` if it inherits nothing or `existing` is `nil`.
  package func keptItem(incoming: IncomingItem, existing: KeychainItem?) -> KeychainItem? {
    guard let existing, let updated = storedItem(incoming: incoming.item, existing: existing) else { return nil }
    let isUnchanged =
      updated.modificationDate == existing.modificationDate
      && updated[.persistentReference] == existing[.persistentReference]
    return isUnchanged ? nil : updated
  }

  /// Returns whether the existing row stays unchanged, byte for byte.
  package func leavesUnchanged(_ existing: KeychainItem?, whenImporting incoming: IncomingItem) -> Bool {
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

/// The properties of an existing row that decide a conflict.
package struct ExistingRow: Sendable, Equatable {
  /// A row's state, from the view of an incoming item.
  package enum State: Sendable, Equatable {
    /// The row cannot be decrypted, lacks a required attribute, or its stored digest differs from the digest of its
    /// content.
    case corrupt
    /// The row is a tombstone; an item that replaces it inherits its UUID and its reference.
    case tombstone(uuid: String?, persistentReference: [UInt8]?)
    /// The row is an intact item; the later date wins, then the smaller digest.
    case item(modificationDate: KeychainDate?, digest: [UInt8])
    /// The row cannot be read now, but may be readable later.
    case unreadable(RowFault)
  }

  /// The state of the row.
  package let state: State

  /// Creates a row with a state.
  package init(state: State) { self.state = state }
}

extension ExistingRow {
  /// Creates the row that an item becomes once it is stored, for resolving a conflict with a second item.
  ///
  /// - Throws: `.parameter` if the item has no digest encoding; `.notAvailable` if SHA-1 cannot be computed.
  package init(storing item: KeychainItem) throws(KeychainRuleError) {
    if item.isTombstone {
      self.init(
        state: .tombstone(
          uuid: item[.uuid]?.stringValue, persistentReference: item[.persistentReference]?.dataValue))
    } else {
      self.init(state: .item(modificationDate: item.modificationDate, digest: try item.storedDigest()))
    }
  }
}

/// A reason why a row could not be read.
package enum RowFault: Hashable, Sendable {
  /// No key of this device can decrypt the row, or its plaintext is not an item (`errSecDecode`, -26275). The
  /// reason contains no value.
  case undecodable(reason: String)
  /// The key for the row's class is not in memory now (`errSecInteractionNotAllowed`, -25308).
  case locked(KeyClass)
  /// The keybag's key for the row's class cannot be used at all (`errSecNotAvailable`, -25291).
  case keyUnavailable(KeyClass)

  /// Whether the row itself is damaged. Unlocking the device then does not help.
  package var isPermanent: Bool {
    switch self {
    case .undecodable: true
    case .locked, .keyUnavailable: false
    }
  }
}
