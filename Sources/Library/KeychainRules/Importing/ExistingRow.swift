public import Basics
public import KeychainFormats

/// The row that is there already, as far as the decision needs it.
public struct ExistingRow: Sendable, Equatable {
  /// What the row is to an item that comes.
  public enum State: Sendable, Equatable {
    /// Does not open, lacks what an item needs, or its stored digest is not the digest of its content.
    case corrupt
    /// The mark of a deleted item. What replaces it takes over its UUID and its reference.
    case tombstone(uuid: String?, persistentReference: [UInt8]?)
    /// A sound item; the later date wins, then the smaller digest.
    case item(modificationDate: KeychainDate?, digest: [UInt8])
    /// A fault that passes.
    case unreadable(RowFault)
  }

  /// What the row is.
  public let state: State

  /// Creates a row of a state.
  public init(state: State) { self.state = state }
}

extension ExistingRow {
  /// The row that an item makes once it is stored, for deciding about a second item with its primary key.
  ///
  /// - Throws: `.parameter` for an item that has no digest.
  public init(storing item: KeychainItem) throws(KeychainRuleError) {
    if item.isTombstone {
      self.init(
        state: .tombstone(
          uuid: item[.uuid]?.stringValue, persistentReference: item[.persistentReference]?.dataValue))
    } else {
      self.init(state: .item(modificationDate: item.modificationDate, digest: try item.storedDigest()))
    }
  }
}
