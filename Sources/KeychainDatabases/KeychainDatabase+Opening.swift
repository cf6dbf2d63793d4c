public import DataProtection
public import KeychainFormats

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
    for row in rows {
      let opened = try keys.open(row: row.sealed, kind: row.kind)
      var digestFits: Bool?
      if opened.isOpen, let item = opened.item, let digest = try? item.digest() { digestFits = row.digest == digest }
      all.append(OpenedRow(row: row, opened: opened, hasFittingDigest: digestFits))
    }
    return all
  }

  /// A row with what of it opens.
  public struct OpenedRow: Sendable {
    /// The row.
    public let row: Row
    /// What of it opens, and what keeps the rest shut.
    public let opened: OpenedDatabaseItem
    /// Whether the column `sha1` is the digest of the content; `nil` where that is not known, the secret being shut.
    public let hasFittingDigest: Bool?
  }
}
