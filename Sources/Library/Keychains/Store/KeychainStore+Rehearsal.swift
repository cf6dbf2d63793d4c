public import Basics
public import KeychainCrypto
public import KeychainFormats
public import KeychainRules

extension KeychainStore {
  /// Adds an item and takes it back in the same transaction, to learn whether it could be added. The file stays as it is.
  ///
  /// - Returns: The item as it would be stored; its dates and identifiers are of this attempt alone.
  /// - Throws: What `add` throws.
  public func rehearseAdding(
    _ item: KeychainItem, keys: borrowing ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeychainStoreError) -> StoredItem {
    try rehearse { (transaction) throws(KeychainStoreError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Changes what a query means and takes it back in the same transaction, to learn whether it could be changed. The file
  /// stays as it is.
  ///
  /// - Returns: How many items would be changed.
  /// - Throws: What `update` throws.
  @discardableResult
  public func rehearseUpdating(
    _ query: ItemQuery, with changes: ItemChanges, keys: borrowing ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy = .forbid, random: any RandomSource
  ) throws(KeychainStoreError) -> Int {
    let count = try rehearse { (transaction) throws(KeychainStoreError) in
      try transaction.update(query, with: changes, keys: keys, now: now, tombstones: tombstones, random: random)
    }
    guard count > 0 else { throw .nothingMatches }
    return count
  }

  /// Runs the closure in a transaction that is taken back whatever comes of it.
  private func rehearse<Value>(
    _ body: (KeychainTransaction) throws(KeychainStoreError) -> Value
  ) throws(KeychainStoreError) -> Value {
    var value: Value?
    do throws(Rehearsal) {
      try write(translating: Rehearsal.failed) { (transaction) throws(Rehearsal) -> Void in
        do throws(KeychainStoreError) { value = try body(transaction) } catch { throw .failed(error) }
        throw .done
      }
    } catch {
      if case .failed(let failure) = error { throw failure }
    }
    guard let value else { throw KeychainStoreError(.io, "the transaction did not begin") }
    return value
  }
}

/// How a transaction ends that is taken back whatever came of it.
private enum Rehearsal: Error {
  case done
  case failed(KeychainStoreError)
}
