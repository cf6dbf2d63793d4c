import KeyhaulKit
import Reports

/// The items of a backup, a database or a dump, for a search.
struct SearchableItems {
  /// The keychain's name in messages.
  let name: String
  /// The kind of source in documents.
  let sourceKind: String
  /// The items in the order of a backup, without tombstones.
  let entries: [KeychainEntry]
  /// Whether to omit secrets that an access control protects. A dump always shows such secrets.
  let omitsProtectedSecrets: Bool

  /// Creates the list of a backup's items.
  ///
  /// - Parameter name: The name of the backup.
  init(_ opened: UnlockedBackup, named name: String) {
    self.name = name
    sourceKind = "archive"
    omitsProtectedSecrets = true
    entries = opened.items.compactMap { item in
      item.item?.isTombstone == true
        ? nil : opened.entry(of: item, named: opened.encryptedItemSummaries[item.index]?.identity)
    }
  }

  /// Creates the list of the items of a dump or database.
  init(_ dump: ResolvedDump) {
    name = dump.name
    sourceKind = "dump"
    omitsProtectedSecrets = false
    entries = dump.contents.items.compactMap { dumpItem in
      let row = dump.database.map { $0.rows[dumpItem.entryPosition].row.number }
      let entry = KeychainEntry(dumpItem, of: dump.contents, row: row)
      if let item = entry.item {
        return item.isTombstone ? nil : KeychainEntry(item, at: entry.rowReference, index: entry.index)
      }
      // An item without its secret cannot be changed.
      return KeychainEntry(
        .undecryptable(entry.identity, nil), at: entry.rowReference, index: entry.index, entry.protection,
        reasonDetail: "its secret cannot be decrypted")
    }
  }

  /// Returns the matching items. For items that cannot be decrypted, compares the known attributes.
  func matching(_ selection: ItemSelection) -> [KeychainEntry] {
    entries.filter { entry in
      entry.item.map(selection.matches) ?? selection.matches(entry.identity, protection: entry.protection)
    }
  }

  /// The items that cannot be decrypted with the available keys.
  var undecryptable: [KeychainEntry] { entries.filter { $0.item == nil } }

  /// Reports the number of undecryptable items that may also match.
  ///
  /// - Parameters:
  ///   - foundEntries: The items that were already found, which are not counted again.
  ///   - selection: The attributes that an item must have.
  /// - Returns: Whether one of these undecryptable items is damaged, so that the result may be incomplete.
  @discardableResult
  func reportUndecryptable(
    excluding foundEntries: [KeychainEntry], for selection: ItemSelection, in session: Session
  ) -> Bool {
    let foundRows = Set(foundEntries.map(\.rowReference))
    let candidates = undecryptable.filter { !foundRows.contains($0.rowReference) && selection.couldMatch($0.identity) }
    guard !candidates.isEmpty else { return false }
    let count = HumanReadable.count(candidates.count, "item")
    // The result for one of many backups contains warnings, but no other messages.
    if session.isPartOfBatch {
      session.warn(
        "\(count) cannot be decrypted here and may match", why: nil,
        try: "keyhaul inspect \(ShellQuoting.quote(name)) --list")
    } else {
      session.info(
        "\(count) of \(UntrustedText.escaped(name)) cannot be decrypted here and may match; inspect --list shows the "
          + "reasons.")
    }
    return candidates.contains { $0.reason?.isDamage == true }
  }

  func document(revealsSecrets: Bool) -> ItemDocument {
    ItemDocument(
      source: (sourceKind, name), revealsSecrets: revealsSecrets, omitsProtectedSecrets: omitsProtectedSecrets)
  }
}
