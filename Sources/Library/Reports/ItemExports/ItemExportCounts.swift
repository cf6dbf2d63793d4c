public import KeyhaulKit

/// The counts of exported and omitted items.
public struct ItemExportCounts: Sendable, Hashable {
  /// The number of exported items.
  public internal(set) var count = 0
  /// The number of secrets in plain text.
  public internal(set) var secretCount = 0
  /// The number of items of the format's kinds that the format cannot represent.
  public private(set) var omittedCount = 0
  /// The first item that the format cannot represent.
  public private(set) var firstOmittedItem: OmittedItem?
  /// The last item that the format cannot represent.
  private(set) var lastOmittedItem: OmittedItem?
  /// The number of names that begin with an added apostrophe. It prevents a spreadsheet from evaluating them.
  public internal(set) var inertNameCount = 0
  /// The number of secrets that a spreadsheet would evaluate. They are not changed, because a changed password is useless.
  public internal(set) var formulaSecretCount = 0
  /// The number of entries without a title, because the item has no label, service, server or account.
  public internal(set) var namelessCount = 0
  /// The number of one-time passwords that are omitted as duplicates.
  public internal(set) var repeatedCount = 0
  /// The reason why the export failed; `nil` if it did not. If the export failed, discard the written text.
  public internal(set) var failure: ItemExportFailure?

  /// An item that the format cannot represent.
  public struct OmittedItem: Sendable, Hashable {
    /// The names of the item.
    public let identity: ItemDescriptor
    /// The reason, as the end of a sentence: "its secret is not text".
    public let reason: String
  }

  /// Records an item that the format cannot represent.
  mutating func skip(_ item: KeychainItem, _ reason: String) {
    omittedCount += 1
    lastOmittedItem = OmittedItem(identity: ItemDescriptor(item), reason: reason)
    if firstOmittedItem == nil { firstOmittedItem = lastOmittedItem }
  }
}

/// A reason why an export failed.
public enum ItemExportFailure: Sendable, Hashable {
  /// libqrencode 4, which creates QR codes, cannot be loaded.
  case noCodeLibrary
  /// There is not enough memory for a QR code.
  case noMemory
  /// The frame of a page cannot be created, for this reason.
  case page(_ reason: String)
}
