public import Basics
public import KeychainCrypto
public import KeychainFormats
import KeychainRules

extension KeychainDatabase {
  /// The keys that open its items: those of a Simulator are in the database itself.
  ///
  /// - Parameter classKeys: Of a device, 32 bytes for each class: its own keybag's, not a backup's.
  /// - Throws: `.malformed` for a key of another length.
  public func keys(
    classKeys: [KeyClass: SensitiveBytes] = [:]
  ) throws(DataProtectionError) -> DatabaseKeys {
    try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys, classKeys: classKeys)
  }

  /// Every row with what of it opens, in the order of `rows`; none is left out.
  ///
  /// - Throws: What is not an item's fault.
  public func opened(with keys: DatabaseKeys) throws(DataProtectionError) -> [OpenedRow] {
    var all: [OpenedRow] = []
    for row in rows { all.append(try OpenedRow(row, opened: keys.open(row: row.sealed, kind: row.kind))) }
    return all
  }

  /// Whether an item has no key because the database itself has none for its class: then nothing opens it.
  public func lacksKey(of opened: OpenedDatabaseItem) -> Bool {
    guard opened.fault?.place == .metadataClassKey, let keyClass = opened.keyClass else { return false }
    return wrappedMetadataKeys[keyClass.withoutGeneration]?.isEmpty ?? true
  }

  /// A row with what of it opens.
  public struct OpenedRow: Sendable {
    /// The row.
    public let row: Row
    /// What of it opens, and what keeps the rest shut.
    public let opened: OpenedDatabaseItem
    /// Whether the column `sha1` is the digest of the content; `nil` if the secret is shut or there is no such column.
    public let hasFittingDigest: Bool?
    /// The columns that say something else than the attributes do from which they are made; none where the attributes
    /// are shut.
    public let differingColumns: [AttributeCode]

    init(_ row: Row, opened: OpenedDatabaseItem) {
      self.row = row
      self.opened = opened
      hasFittingDigest =
        opened.isOpen && row.hasDigestColumn ? opened.item.flatMap { try? $0.digest() }.map { row.digest == $0 } : nil
      differingColumns = opened.item.map { Self.differences(of: row, from: $0) } ?? []
    }

    /// What stands in a column alone, or is made again from something else: nothing in the item tells it.
    private static let ownColumns: Set<AttributeCode> = [.appClip, .accessControl]

    private static func differences(of row: Row, from item: KeychainItem) -> [AttributeCode] {
      ColumnDefinitions.all(of: row.kind).compactMap { definition in
        guard let stored = row.columns[definition.code], !ownColumns.contains(definition.code) else { return nil }
        // Of an absent attribute some releases write the default of its kind, others nothing.
        if stored == .null, item[definition.code] == nil { return nil }
        // A value that no column can have is the item's own matter.
        guard let expected = try? ItemColumns.value(item[definition.code], for: definition) else { return nil }
        if stored.isSame(as: expected) || !row.hasDigestColumn && holdsValue(stored, of: item, definition) {
          return nil
        }
        return definition.code
      }
    }

    /// Whether a column that newer schemas hash holds the value itself, as some of schema 5 do (`kcls` of iOS 6.1).
    private static func holdsValue(
      _ stored: ColumnValue, of item: KeychainItem, _ definition: AttributeDefinition
    ) -> Bool {
      guard definition.flags.contains(.hashedColumn) else { return false }
      let value = try? ItemColumns.value(item[definition.code], for: definition, isHashed: false)
      return value.map { stored.isSame(as: $0) } ?? false
    }
  }
}

extension ColumnValue {
  /// Whether a daemon takes both for the same: an empty text and empty data are, and a date may stand as a whole number.
  fileprivate func isSame(as other: ColumnValue) -> Bool {
    if self == other || isEmptyTextOrBlob && other.isEmptyTextOrBlob { return true }
    if case .real(let seconds) = other { return realValue == seconds }
    return false
  }
}
