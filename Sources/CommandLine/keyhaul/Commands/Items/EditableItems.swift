import KeyhaulKit
import Reports

/// One change of a keychain that is not a device's.
enum ItemEdit {
  case add(KeychainItem)
  case update([ItemRow], ItemChanges)
  case delete([ItemRow])
}

/// A keychain that is changed as a whole: what it holds was read, and a change is written at once or not at all.
protocol EditableItems {
  var items: ListedItems { get }
  /// "a backup", "a Simulator": how far an item that is added there gets, in words.
  func reach(of item: KeychainItem) -> String
  /// What is to be said before anybody is asked; `nil` for nothing.
  var note: String? { get }

  /// Removes what runs that were killed left, where nothing is to be changed.
  func sweepLeftovers()

  /// Changes it.
  ///
  /// - Parameters:
  ///   - isRehearsed: Whether everything is done but the writing.
  ///   - done: What is so once it was written.
  /// - Returns: The items that were added or changed, as they are then, with their positions.
  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [(row: ItemRow, index: Int?)]
}

extension EditableItems {
  var name: String { items.name }

  func sweepLeftovers() {}
}
