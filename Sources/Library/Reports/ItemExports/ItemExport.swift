public import KeyhaulKit

/// Keychain items in a format of another program.
public struct ItemExport: Sendable {
  /// The complete text, in memory that is overwritten when it is released.
  public let contents: SensitiveBytes
  /// The counts of exported and omitted items.
  public let counts: ItemExportCounts
  /// The items of the format's kinds that the format cannot represent.
  public let omittedItems: [ItemExportCounts.OmittedItem]

  /// Creates an export of items in memory. To export very many items, use `ItemExportWriter`.
  ///
  /// - Parameters:
  ///   - items: Items of any kind. The export contains the items of the format's kinds.
  ///   - format: The format; not `.document`.
  ///   - date: The time of the export, for formats that state it.
  public init(_ items: [KeychainItem], as format: ExportFormat, date: KeychainDate) {
    var text = SensitiveBuffer()
    var writer = ItemExportWriter(format, date: date)
    var omittedItems: [ItemExportCounts.OmittedItem] = []
    for item in items {
      writer.append(item) { text.append($0) }
      if writer.counts.omittedCount > omittedItems.count, let omittedItem = writer.counts.lastOmittedItem {
        omittedItems.append(omittedItem)
      }
    }
    counts = writer.end { text.append($0) }
    contents = text.bytes()
    self.omittedItems = omittedItems
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

extension KeychainItem {
  /// Returns an attribute as text: a string, data that is UTF-8, or a number; empty if there is none.
  func text(of code: AttributeCode) -> String { ItemDescriptor.text(self[code]) ?? "" }

  /// Whether the secret is text, as a password is: UTF-8 without a null character.
  var hasTextSecret: Bool {
    secret.map { $0.withBytes { !$0.contains(0) && UTF8Scalars.isValid($0) } } ?? false
  }
}
