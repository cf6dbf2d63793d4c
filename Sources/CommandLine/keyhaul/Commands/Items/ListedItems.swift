import KeyhaulKit
import Reports

/// The items of a backup, of a database or of a dump, as a search goes through them.
struct ListedItems {
  /// What messages call their keychain.
  let name: String
  /// What a document calls where they are from.
  let sourceKind: String
  /// In the order in which a backup numbers them, marks of deleted items left out.
  let entries: [KeychainEntry]
  /// Whether an access control keeps a secret back: a dump has it in clear all the same.
  let omitsProtectedSecrets: Bool

  /// - Parameter name: Of the backup.
  init(_ opened: UnlockedBackup, named name: String) {
    self.name = name
    sourceKind = "archive"
    omitsProtectedSecrets = true
    entries = opened.items.compactMap { item in
      item.item?.isTombstone == true
        ? nil : opened.entry(of: item, named: opened.encryptedItemSummaries[item.index]?.identity)
    }
  }

  init(_ found: FoundDump) {
    name = found.typed
    sourceKind = "dump"
    omitsProtectedSecrets = false
    entries = found.dump.items.compactMap { dumped in
      let row = found.database.map { $0.rows[dumped.entry].row.number }
      let entry = KeychainEntry(dumped, of: found.dump, row: row)
      if let item = entry.item {
        return item.isTombstone ? nil : KeychainEntry(item, at: entry.place, index: entry.index)
      }
      // An item without its secret cannot be changed.
      return KeychainEntry(
        .closed(entry.identity, nil), at: entry.place, index: entry.index, entry.protection,
        detail: "its secret cannot be decrypted")
    }
  }

  /// Those that a selection means; of what does not open, as far as what is known of it says so.
  func meant(by selection: ItemSelection) -> [KeychainEntry] {
    entries.filter { row in row.item.map(selection.matches) ?? selection.matches(row.identity, row.protection) }
  }

  /// Those that do not open here.
  var hidden: [KeychainEntry] { entries.filter { $0.item == nil } }

  /// Says of how many that do not open here any may be meant too.
  ///
  /// - Returns: Whether a damaged one is among them, so that nobody can tell whether these are all.
  @discardableResult
  func noteHidden(besides rows: [KeychainEntry], for selection: ItemSelection, in session: Session) -> Bool {
    let shown = Set(rows.map(\.place))
    let hidden = hidden.filter { !shown.contains($0.place) && selection.couldMatch($0.identity) }
    let count = hidden.count
    guard count > 0 else { return false }
    if session.isOneOfMany {
      session.warn(
        "\(HumanReadable.count(count, "item")) cannot be decrypted here and may match", why: nil,
        try: "keyhaul inspect \(ShellQuoting.quote(name)) --list")
    }
    session.note(
      "\(HumanReadable.count(count, "item")) of \(UntrustedText.escaped(name)) cannot be decrypted here and may match; inspect "
        + "--list shows the reasons."
    )
    return hidden.contains { $0.reason?.isDamage == true }
  }

  func document(revealsSecrets: Bool) -> ItemDocument {
    ItemDocument(
      source: (sourceKind, name), revealsSecrets: revealsSecrets, omitsProtectedSecrets: omitsProtectedSecrets)
  }
}
