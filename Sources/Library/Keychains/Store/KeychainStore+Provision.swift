package import Basics
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Adds items with their own dates, to create a device from a description. In all other respects, items are added as
  /// by `add`. Either all items are added or none.
  ///
  /// - Parameters:
  ///   - items: The items to add.
  ///   - keepsIdentifiers: Whether items also keep their UUID, their persistent reference and their user, as in a copy
  ///     of another keychain.
  ///   - isUnfinished: Whether the file belongs to an unfinished device. Such a file is deleted if the process ends
  ///     before this method returns, so pages are written directly to the file, without the log.
  ///   - keys: The class keys of the device.
  ///   - random: The source of identifiers and keys.
  /// - Throws: `.duplicateItem`, `.interactionNotAllowed`, `.authFailed`, `.parameter`, `.cancelled`; `.storeBusy` if
  ///   `isUnfinished` is set and another process has the file open.
  package func provision(
    _ items: some Collection<KeychainItem>, keepsIdentifiers: Bool = false, isUnfinished: Bool = false,
    keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) {
    guard isUnfinished else {
      return try addWithDates(items, keepsIdentifiers: keepsIdentifiers, keys: keys, random: random)
    }
    try use(.memory)
    do throws(KeyhaulError) {
      try addWithDates(items, keepsIdentifiers: keepsIdentifiers, keys: keys, random: random)
    } catch {
      try? use(.writeAheadLog)
      throw error
    }
    try use(.writeAheadLog)
  }

  private func addWithDates(
    _ items: some Collection<KeychainItem>, keepsIdentifiers: Bool, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) {
    try write(isBulk: true) { (transaction) throws(KeyhaulError) in
      try transaction.addingInBulk(items.lazy.map(\.kind)) { () throws(KeyhaulError) in
        for item in items {
          try transaction.checkCancellation()
          let modificationDate = item.modificationDate ?? .reference
          var newItem = try translatingRuleErrors(
            try NewItemDefaults.prepared(item, now: modificationDate, random: random))
          newItem[.creationDate] = .date(item.creationDate ?? modificationDate)
          if keepsIdentifiers { newItem.copyIdentifiers(from: item) }
          let row = try WritableRow(encrypting: newItem, keys: keys, random: random)
          guard try transaction.insert(row) != nil else {
            throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
          }
        }
      }
    }
  }
}

extension KeychainItem {
  /// Copies the UUID, persistent reference and user of another item, if a row can store them.
  package mutating func copyIdentifiers(from other: KeychainItem) {
    if let uuid = other[.uuid]?.stringValue { self[.uuid] = .string(uuid) }
    if let reference = other[.persistentReference]?.dataValue, reference.count == PersistentReference.uuidByteCount {
      self[.persistentReference] = .data(reference)
    }
    if let user = other[.multiUser]?.dataValue { self[.multiUser] = .data(user) }
  }
}

extension KeychainStore {
  /// Adds an item and rolls the transaction back, to check whether the item can be added. The file is not changed.
  ///
  /// - Returns: The item as it would be stored. Its dates and identifiers are valid only for this attempt.
  /// - Throws: The errors of `add`.
  package func validateAdding(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    try dryRun { (transaction) throws(KeyhaulError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Updates the matching items and rolls the transaction back, to check whether they can be updated. The file is not
  /// changed.
  ///
  /// - Returns: The number of items that would be updated.
  /// - Throws: The errors of `update`.
  @discardableResult
  package func validateUpdating(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy = .forbid, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    let count = try dryRun { (transaction) throws(KeyhaulError) in
      try transaction.update(query, with: changes, keys: keys, now: now, tombstones: tombstones, random: random)
    }
    guard count > 0 else { throw .nothingMatches }
    return count
  }

  /// Runs the closure in a transaction that is always rolled back.
  private func dryRun<Value>(
    _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    var value: Value?
    do throws(DryRun) {
      try write(translating: DryRun.failed) { (transaction) throws(DryRun) -> Void in
        do throws(KeyhaulError) { value = try body(transaction) } catch { throw .failed(error) }
        throw .done
      }
    } catch {
      if case .failed(let failure) = error { throw failure }
    }
    guard let value else { throw KeyhaulError(.storeIO, "the transaction did not begin") }
    return value
  }
}

/// The end of a transaction that is always rolled back.
private enum DryRun: Error {
  case done
  case failed(KeyhaulError)
}
