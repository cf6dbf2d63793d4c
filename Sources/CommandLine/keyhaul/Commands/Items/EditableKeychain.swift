import KeyhaulKit
import Reports

/// A change of a keychain's items.
enum ItemEdit {
  case add(KeychainItem)
  case update([KeychainEntry], ItemChanges)
  case delete([KeychainEntry])
}

/// The keychain of a device, a backup or a Simulator, whose items a command changes.
///
/// A command gets the matching entries, and makes its change after the user has agreed. A change is made completely or
/// not at all.
protocol EditableKeychain {
  /// The keychain's name in messages.
  var name: String { get }
  /// The preposition before the name: "on" a device, "in" a backup.
  var preposition: String { get }
  /// The end of a sentence about a change: the name of the changed copy, or nothing if the keychain itself is changed.
  var ending: String { get }
  /// The document of the items, without secrets.
  var document: ItemDocument { get }
  /// The number of items that cannot be decrypted. A new item may duplicate one of them.
  var undecryptableCount: Int { get }

  /// Returns a remark about an added item: where it can move, or how it is stored. An example is "moves with an encrypted
  /// backup".
  func remark(about item: KeychainItem) -> String

  /// Rejects attributes with which no item can be added to this keychain.
  func check(_ attributes: ItemAttributeOptions) throws(CommandError)

  /// Returns the entries that match the selection.
  ///
  /// - Parameter changes: The intended changes; `nil` if the entries are to be deleted.
  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry]

  /// Returns whether all entries already have the new values.
  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool

  /// Removes leftovers of killed commands, for a command that has nothing to change.
  func removeLeftovers()

  /// Changes the keychain.
  ///
  /// - Parameters:
  ///   - edit: The change to make.
  ///   - isDryRun: Whether this is a dry run, which does everything except writing.
  ///   - change: The description of the change, for messages of errors that occur after the change is made.
  /// - Returns: The items that were added or changed, with their new values.
  func apply(
    _ edit: ItemEdit, isDryRun: Bool, reportedAs change: CommittedChange, in session: Session
  ) throws -> [KeychainEntry]
}

/// A keychain whose items are all read when it is opened. A change uses these items, and does not search again.
protocol PreloadedKeychain: EditableKeychain {
  var items: SearchableItems { get }
  var selection: ItemSelection { get }
}

extension EditableKeychain {
  var ending: String { "" }
}

extension PreloadedKeychain {
  var name: String { items.name }
  var preposition: String { "in" }
  var document: ItemDocument { items.document(revealsSecrets: false) }
  var undecryptableCount: Int { items.undecryptable.count }

  func check(_ attributes: ItemAttributeOptions) throws(CommandError) {
    try selection.rejectAppFlag(for: name)
    guard attributes.accessGroup == nil else { return }
    throw .usage(
      "no access group was given for the item", why: "only a device can choose one; \(name) cannot",
      try: "--access-group GROUP")
  }

  func entries(for changes: ItemChanges?, in session: Session) throws -> [KeychainEntry] {
    try selection.rejectAppFlag(for: name)
    let entries = items.matching(selection)
    items.reportUndecryptable(excluding: entries, for: selection, in: session)
    return entries
  }

  func hasValues(of changes: ItemChanges, in entries: [KeychainEntry]) throws -> Bool {
    entries.compactMap(\.item).allSatisfy { changes.isNoOp(for: $0) }
  }
}

extension KeychainEntry {
  /// Returns the entry with its index among all items of its keychain.
  func numbered(_ indexes: [RowReference: Int]) -> KeychainEntry {
    var result = self
    result.index = indexes[rowReference]
    return result
  }
}

extension ItemSelection {
  /// Rejects `--app` for a keychain that does not state the access groups of apps.
  func rejectAppFlag(for name: String) throws(CommandError) {
    guard let app else { return }
    throw .usage(
      "--app \(app) applies only to devices", why: "\(name) does not show which access groups an app has",
      try: "--access-group GROUP")
  }
}
