import Basics
import KeychainCrypto
import KeychainFormats

/// What a list of unencrypted files shows of a backup that says it has a password.
///
/// The rows decide, never a version's text. iOS 10.0 sealed each row and kept `salt` and `passwordHash` in the table
/// `Properties`; iOS 10.1 wrote rows in clear, each with its file's key. A row in clear is a binary property list.
///
/// Source: dinosec/iphone-dataprotection, `backup10.py`; the published readers that open backups of iOS 10.1.
enum ClearList {
  /// Files have keys, as every encrypted one has since.
  case filesHaveKeys
  /// No row can be read without the password.
  case rowsAreSealed(RecordSalt)
  /// Rows can be read, and none that was looked at has a key: nothing is encrypted.
  case nothingIsEncrypted

  /// Rows of files that are looked at. In an encrypted backup each has a key.
  static let maximumRowCount = 100

  /// - Returns: `nil` if the stored list is not a database: then it is encrypted itself, or damaged.
  init?(_ stored: StoredBytes, replacing pages: ReplacedPages?) throws(KeyhaulError) {
    let magic = DatabaseBytes.magic
    guard stored.byteCount >= magic.count else { return nil }
    let start = try [UInt8](count: magic.count) { (buffer) throws(KeyhaulError) in
      try stored.read(at: 0, into: buffer)
    }
    guard start == magic else { return nil }
    self = try ManifestDatabase(try DatabaseBytes(stored, replacing: pages)).clearList()
  }
}

extension ManifestDatabase {
  fileprivate func clearList() throws(KeyhaulError) -> ClearList {
    let records = RecordReader(key: nil)
    var (hasKey, hasSealedRow) = (false, false)
    // The flags leave files, and what leaves its kind to the record.
    try forEachRow(
      "file", where: "file IS NOT NULL AND ifnull(flags, 0) & 7 IN (0, 1)", atMost: ClearList.maximumRowCount
    ) { row in
      if row.bytes(0)?.starts(with: RecordReader.plistMagic) != true {
        hasSealedRow = true
      } else if records.file(in: row, 0)?.encryptionKey != nil {
        hasKey = true
      }
    }
    if hasKey { return .filesHaveKeys }
    let properties = try passwordProperties(try ManifestConnection(bytes))
    guard hasSealedRow || (properties.hasHash && !properties.salts.isEmpty) else { return .nothingIsEncrypted }
    return .rowsAreSealed(RecordSalt(properties.salts))
  }

  /// What iOS 10.0 keeps of the password beside its rows.
  private func passwordProperties(
    _ connection: ManifestConnection
  ) throws(KeyhaulError) -> (salts: [[UInt8]?], hasHash: Bool) {
    var (salts, hasHash, hasTable): ([[UInt8]?], Bool, Bool) = ([], false, false)
    try connection.forEachRow("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Properties'") { _ in
      hasTable = true
    }
    guard hasTable else { return ([], false) }
    try connection.forEachRow("SELECT value FROM Properties WHERE key = 'salt' LIMIT 2") { salts.append($0.bytes(0)) }
    try connection.forEachRow("SELECT 1 FROM Properties WHERE key = 'passwordHash' LIMIT 1") { _ in hasHash = true }
    return (salts, hasHash)
  }
}
