import KeyhaulKit
import Reports

/// The items of a backup, of a database or of a dump, as a search goes through them.
struct ListedItems {
  /// What messages call their keychain.
  let name: String
  /// What a document calls where they are from.
  let sourceKind: String
  /// In the order in which a backup numbers them, marks of deleted items left out.
  let rows: [ItemRow]
  /// The position of each.
  let indexes: [RowReference: Int]
  /// Whether an access control keeps a secret back: a dump has it in clear all the same.
  let keepsGuarded: Bool

  /// - Parameter name: Of the backup.
  init(_ opened: OpenedArchive, named name: String) {
    self.name = name
    sourceKind = "archive"
    keepsGuarded = true
    rows = opened.items.compactMap { item in
      let place = RowReference(kind: item.kind, rowID: Int64(item.index))
      guard let open = item.item else {
        return ItemRow(
          sealed: opened.knownSealed[item.index]?.identity ?? ItemIdentity(sealed: item.kind), at: place,
          item.protection, reason: opened.reason(of: item), faultText: nil)
      }
      return open.isTombstone ? nil : ItemRow(open, at: place)
    }
    indexes = Dictionary(uniqueKeysWithValues: rows.map { ($0.reference, Int($0.reference.rowID)) })
  }

  init(_ found: FoundDump) {
    name = found.typed
    sourceKind = "dump"
    keepsGuarded = false
    var indexes: [RowReference: Int] = [:]
    rows = found.dump.items.compactMap { dumped in
      let row = found.database.map { $0.rows[dumped.entry].row.number }
      let place = RowReference(kind: dumped.kind, rowID: row ?? Int64(dumped.index))
      indexes[place] = dumped.index
      // What has no secret that opens is no item to be changed.
      if let item = dumped.item, dumped.fault == nil { return item.isTombstone ? nil : ItemRow(item, at: place) }
      return ItemRow(
        sealed: dumped.item.map(ItemIdentity.init) ?? ItemIdentity(sealed: dumped.kind), at: place, dumped.protection,
        reason: nil, faultText: "its secret cannot be decrypted")
    }
    self.indexes = indexes
  }

  /// Those that a selection means; of what does not open, as far as what is known of it says so.
  func meant(by selection: ItemSelection) -> [ItemRow] {
    rows.filter { row in row.item.map(selection.admits) ?? selection.admits(row.identity, row.protection) }
  }

  /// Those that do not open here.
  var hidden: [ItemRow] { rows.filter { $0.item == nil } }

  /// Says of how many that do not open here any may be meant too.
  ///
  /// - Returns: Whether a damaged one is among them, so that nobody can tell whether these are all.
  @discardableResult
  func noteHidden(besides rows: [ItemRow], for selection: ItemSelection, in session: Session) -> Bool {
    let shown = Set(rows.map(\.reference))
    let hidden = hidden.filter { !shown.contains($0.reference) && selection.mayMean($0.identity) }
    let count = hidden.count
    guard count > 0 else { return false }
    session.note(
      "\(Amounts.count(count, "item")) of \(HostileText.shown(name)) cannot be decrypted here and may match; inspect "
        + "--list shows the reasons."
    )
    return hidden.contains { $0.reason?.isDamage == true }
  }

  func document(revealsSecrets: Bool) -> ItemDocument {
    ItemDocument(
      source: (sourceKind, name), indexes: indexes, revealsSecrets: revealsSecrets, keepsGuarded: keepsGuarded)
  }
}
