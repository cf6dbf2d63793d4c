public import DataProtection
public import KeychainFormats

extension KeychainStore {
  /// Adds an item and takes it back in the same transaction, to learn whether it could be added. The file stays as it is.
  ///
  /// - Returns: The item as it would be stored; its dates and identifiers are of this attempt alone.
  /// - Throws: What `add` throws.
  public func rehearseAdding(
    _ item: KeychainItem, keys: borrowing ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeychainStoreError) -> StoredItem {
    do throws(Rehearsal) {
      return try write(translating: Rehearsal.failed) { (transaction) throws(Rehearsal) in
        let stored: StoredItem
        do throws(KeychainStoreError) {
          stored = try transaction.add(item, keys: keys, now: now, random: random)
        } catch {
          throw .failed(error)
        }
        throw .succeeded(stored)
      }
    } catch {
      switch error {
      case .succeeded(let stored): return stored
      case .failed(let failure): throw failure
      }
    }
  }
}

/// How a transaction ends that is taken back whatever came of it.
private enum Rehearsal: Error {
  case succeeded(StoredItem)
  case failed(KeychainStoreError)
}
