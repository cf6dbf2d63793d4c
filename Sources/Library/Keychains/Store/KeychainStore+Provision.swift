package import Basics
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Puts items in place that bring their dates along, as a device made from a description needs. Everything else is as
  /// for added items. All of them or, where one cannot be added, none.
  ///
  /// - Parameters:
  ///   - keepsIdentifiers: Whether items also bring their UUID, their persistent reference and their user along, as those of
  ///     another keychain do.
  ///   - isUnfinished: Whether the file is of no use to anybody until this has returned, and thrown away where the process
  ///     ends before. Every page goes into it at once then; in the log each would stand before it stands here.
  /// - Throws: `.duplicateItem`, `.interactionNotAllowed`, `.authFailed`, `.parameter`, `.cancelled`; `.storeBusy` where the file is
  ///   unfinished and somebody else has it open.
  package func provision(
    _ items: some Collection<KeychainItem>, keepsIdentifiers: Bool = false, isUnfinished: Bool = false,
    keys: ClassKeys,
    random: any RandomSource
  ) throws(KeyhaulError) {
    guard isUnfinished else {
      try provision(items, keepsIdentifiers, keys, random)
      return
    }
    try use(.memory)
    do throws(KeyhaulError) {
      try provision(items, keepsIdentifiers, keys, random)
    } catch {
      try? use(.writeAheadLog)
      throw error
    }
    try use(.writeAheadLog)
  }

  private func provision(
    _ items: some Collection<KeychainItem>, _ keepsIdentifiers: Bool, _ keys: ClassKeys,
    _ random: any RandomSource
  ) throws(KeyhaulError) {
    try write(isBulk: true) { (transaction) throws(KeyhaulError) in
      try transaction.adding(items.lazy.map(\.kind)) { () throws(KeyhaulError) in
        for item in items {
          try transaction.requireGoingOn()
          let modified = item.modificationDate ?? .reference
          var prepared = try byRule(try NewItemDefaults.prepared(item, now: modified, random: random))
          prepared[.creationDate] = .date(item.creationDate ?? modified)
          if keepsIdentifiers { prepared.takeIdentifiers(of: item) }
          let row = try WritableRow(sealing: prepared, keys: keys, random: random)
          guard try transaction.insert(row) != nil else {
            throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
          }
        }
      }
    }
  }
}

extension KeychainItem {
  /// Those that another item has, in the form that a row takes.
  fileprivate mutating func takeIdentifiers(of other: KeychainItem) {
    if let uuid = other[.uuid]?.stringValue { self[.uuid] = .string(uuid) }
    if let reference = other[.persistentReference]?.dataValue, reference.count == 16 {
      self[.persistentReference] = .data(reference)
    }
    if let user = other[.multiUser]?.dataValue { self[.multiUser] = .data(user) }
  }
}

extension KeychainStore {
  /// Adds an item and takes it back in the same transaction, to learn whether it could be added. The file stays as it is.
  ///
  /// - Returns: The item as it would be stored; its dates and identifiers are of this attempt alone.
  /// - Throws: What `add` throws.
  package func rehearseAdding(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    try rehearse { (transaction) throws(KeyhaulError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Changes what a query means and takes it back in the same transaction, to learn whether it could be changed. The file
  /// stays as it is.
  ///
  /// - Returns: How many items would be changed.
  /// - Throws: What `update` throws.
  @discardableResult
  package func rehearseUpdating(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy = .forbid, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    let count = try rehearse { (transaction) throws(KeyhaulError) in
      try transaction.update(query, with: changes, keys: keys, now: now, tombstones: tombstones, random: random)
    }
    guard count > 0 else { throw .nothingMatches }
    return count
  }

  /// Runs the closure in a transaction that is taken back whatever comes of it.
  private func rehearse<Value>(
    _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    var value: Value?
    do throws(Rehearsal) {
      try write(translating: Rehearsal.failed) { (transaction) throws(Rehearsal) -> Void in
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

/// How a transaction ends that is taken back whatever came of it.
private enum Rehearsal: Error {
  case done
  case failed(KeyhaulError)
}
