import Basics
import KeychainFormats
public import KeychainRules

extension ExistingRow {
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
      self = try byRule(try ExistingRow(storing: item))
    }
  }
}
