public import KeychainFormats

extension ExistingRow {
  /// The row that an item makes once it is stored, for deciding about a second item with its primary key.
  ///
  /// - Throws: `.parameter` for an item that has no digest.
  public init(storing item: KeychainItem) throws(KeychainStoreError) {
    if item.isTombstone {
      self.init(
        state: .tombstone(
          uuid: item[.uuid]?.stringValue, persistentReference: item[.persistentReference]?.dataValue))
    } else {
      self.init(state: .item(modificationDate: item.modificationDate, digest: try item.storedDigest()))
    }
  }

  /// What an opened row is to an item that collides with it.
  ///
  /// - Throws: `.notAvailable` where a digest cannot be computed.
  public init(_ row: KeychainRow) throws(KeychainStoreError) {
    switch row.content {
    case .fault(let fault): self.init(state: fault.isPermanent ? .corrupt : .unreadable(fault))
    case .item(let item):
      // Sound is what names its group and class and is what its stored digest says.
      guard item.accessGroup != nil, item.protection != nil, let digest = try? item.storedDigest(),
        digest == row.summary.digest
      else {
        self.init(state: .corrupt)
        return
      }
      try self.init(storing: item)
    }
  }
}
