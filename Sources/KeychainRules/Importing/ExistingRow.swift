public import KeychainFormats

/// The row that is there already, as far as the decision needs it.
public struct ExistingRow: Sendable, Equatable {
  public enum State: Sendable, Equatable {
    /// Does not open, lacks what an item needs, or its stored digest is not the digest of its content.
    case corrupt
    case tombstone(uuid: String?, persistentReference: [UInt8]?)
    case item(modificationDate: KeychainDate?, digest: [UInt8])
    /// A fault that passes.
    case unreadable(RowFault)
  }

  public let state: State

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
