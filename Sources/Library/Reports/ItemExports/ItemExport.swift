public import KeyhaulKit

/// Keychain items in a format of another program.
public struct ItemExport: Sendable {
  /// The complete text, in memory that is overwritten when it is released.
  public let contents: SensitiveBytes
  /// The counts of exported and omitted items.
  public let counts: ItemExportCounts
  /// The items of the format's kinds that the format cannot represent.
  public let leftOut: [ItemExportCounts.LeftOut]

  /// Creates an export of items in memory. To export very many items, use `ItemExportWriter`.
  ///
  /// - Parameters:
  ///   - items: Items of any kind. The export contains those of the format's kinds.
  ///   - format: The format; not `.document`.
  ///   - date: The time of the export, for formats that state it.
  public init(_ items: [KeychainItem], as format: ExportFormat, date: KeychainDate) {
    var text = SensitiveBuffer()
    var writer = ItemExportWriter(format, date: date)
    var leftOut: [ItemExportCounts.LeftOut] = []
    for item in items {
      writer.append(item) { text.append($0) }
      if writer.counts.leftOutCount > leftOut.count, let last = writer.counts.lastLeftOut { leftOut.append(last) }
    }
    counts = writer.end { text.append($0) }
    contents = text.bytes()
    self.leftOut = leftOut
  }
}

extension Backup {
  /// Exports the items that can be decrypted, with their secrets.
  ///
  /// - Parameters:
  ///   - format: The format of another program; not `.document`.
  ///   - date: The time of the export, for formats that state it.
  public func export(as format: ExportFormat, date: KeychainDate) -> ItemExport {
    ItemExport(items.compactMap(\.item), as: format, date: date)
  }
}

/// The counts of exported and omitted items.
public struct ItemExportCounts: Sendable, Hashable {
  /// The number of exported items.
  public internal(set) var count = 0
  /// The number of secrets in plain text.
  public internal(set) var secretCount = 0
  /// The number of items of the format's kinds that it cannot represent.
  public private(set) var leftOutCount = 0
  /// The first item that the format cannot represent.
  public private(set) var firstLeftOut: LeftOut?
  /// The last item that the format cannot represent.
  private(set) var lastLeftOut: LeftOut?
  /// The number of names that begin with an added apostrophe, so that a spreadsheet does not evaluate them.
  public internal(set) var inertNameCount = 0
  /// The number of secrets that a spreadsheet would evaluate. They are not changed, because a changed password is useless.
  public internal(set) var formulaSecretCount = 0
  /// The number of entries without a title, because the item has no label, service, server or account.
  public internal(set) var namelessCount = 0
  /// The number of one-time passwords that are omitted as duplicates.
  public internal(set) var repeatedCount = 0
  /// The reason why the export failed; `nil` if it did not. If it failed, discard what was written.
  public internal(set) var failure: ItemExportFailure?

  /// An item that the format cannot represent.
  public struct LeftOut: Sendable, Hashable {
    /// The names of the item.
    public let identity: ItemDescriptor
    /// The reason, as the end of a sentence: "its secret is not text".
    public let reason: String
  }

  /// Records an item that the format cannot represent.
  mutating func skip(_ item: KeychainItem, _ reason: String) {
    leftOutCount += 1
    lastLeftOut = LeftOut(identity: ItemDescriptor(item), reason: reason)
    if firstLeftOut == nil { firstLeftOut = lastLeftOut }
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

extension KeychainItem {
  /// Returns an attribute as text: a string, data that is UTF-8, or a number; empty if there is none.
  func text(of code: AttributeCode) -> String { ItemDescriptor.text(self[code]) ?? "" }

  /// Whether the secret is text, as a password is: UTF-8 without a null character.
  var hasTextSecret: Bool {
    secret.map { $0.withBytes { !$0.contains(0) && UTF8Scalars.isValid($0) } } ?? false
  }
}
