import Basics
import KeychainCrypto
import KeychainFormats

/// The encryption of a backup that claims a password, although its `Manifest.db` is an unencrypted database.
///
/// iOS 10.0 encrypted each row and stored `salt` and `passwordHash` in the table `Properties`. iOS 10.1 wrote
/// unencrypted rows with the files' keys. An unencrypted row is a binary property list. The rows determine the case,
/// not the version of iOS.
///
/// Sources: dinosec/iphone-dataprotection, `backup10.py`; published readers of iOS 10.1 backups.
enum PlaintextManifest {
  /// Files have keys, as in all later encrypted backups.
  case filesHaveKeys
  /// The rows are encrypted.
  case rowsAreEncrypted(RecordSalt)
  /// The rows are unencrypted and have no keys, so nothing is encrypted.
  case nothingIsEncrypted

  /// The maximum number of file rows that are sampled. In an encrypted backup, each has a key.
  static let maximumRowCount = 100

  /// Examines a list. Returns `nil` if the stored list is encrypted or damaged, and thus not a database.
  init?(_ stored: SpooledData, replacing pages: ReplacementPages?) throws(KeyhaulError) {
    let magic = DatabaseBytes.magic
    guard stored.byteCount >= magic.count else { return nil }
    let start = try [UInt8](count: magic.count) { (buffer) throws(KeyhaulError) in
      try stored.read(at: 0, into: buffer)
    }
    guard start == magic else { return nil }
    self = try ManifestDatabase(try DatabaseBytes(stored, replacing: pages)).plaintextManifest()
  }
}

extension ManifestDatabase {
  fileprivate func plaintextManifest() throws(KeyhaulError) -> PlaintextManifest {
    let records = RecordReader(key: nil)
    var (hasKey, hasEncryptedRow) = (false, false)
    // The three low bits of `flags` state the type. 1 is a file, and 0 means that only the record states the type.
    try forEachRow(
      "file", where: "file IS NOT NULL AND ifnull(flags, 0) & 7 IN (0, 1)", atMost: PlaintextManifest.maximumRowCount
    ) { row in
      if row.bytes(0)?.starts(with: RecordReader.plistMagic) != true {
        hasEncryptedRow = true
      } else if records.file(in: row, 0)?.encryptionKey != nil {
        hasKey = true
      }
    }
    if hasKey { return .filesHaveKeys }
    // If no row shows the case, such as in a list without files, the properties of iOS 10.0 decide.
    let properties = try passwordProperties(try ManifestConnection(bytes))
    guard hasEncryptedRow || (properties.hasHash && !properties.salts.isEmpty) else { return .nothingIsEncrypted }
    return .rowsAreEncrypted(RecordSalt(properties.salts))
  }

  /// Returns the password properties of iOS 10.0. More than one salt is an error, so at most two are read.
  private func passwordProperties(
    _ connection: ManifestConnection
  ) throws(KeyhaulError) -> (salts: [[UInt8]?], hasHash: Bool) {
    var hasTable = false
    try connection.forEachRow("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Properties'") { _ in
      hasTable = true
    }
    guard hasTable else { return ([], false) }
    var salts: [[UInt8]?] = []
    var hasHash = false
    try connection.forEachRow("SELECT value FROM Properties WHERE key = 'salt' LIMIT 2") { salts.append($0.bytes(0)) }
    try connection.forEachRow("SELECT 1 FROM Properties WHERE key = 'passwordHash' LIMIT 1") { _ in hasHash = true }
    return (salts, hasHash)
  }
}

/// The salt of the encrypted records of iOS 10.0, from the `Properties` table.
enum RecordSalt: Sendable, Equatable {
  case bytes([UInt8])
  /// There is no salt, or one that no device writes.
  case unusable(reason: String)

  /// The maximum size of a salt in bytes. Devices write a few.
  static let maximumByteCount = 1024

  /// Creates the salt from the values of all `salt` rows. A value is `nil` if it is neither data nor text.
  init(_ values: [[UInt8]?]) {
    let start = "\(MetadataFile.database.path) encrypts its records and has"
    switch values.count {
    case 0: self = .unusable(reason: "\(start) no salt for them")
    case 1:
      guard let salt = values[0] else {
        self = .unusable(reason: "\(start) a salt for them that is neither data nor text")
        return
      }
      self =
        (1...Self.maximumByteCount).contains(salt.count)
        ? .bytes(salt) : .unusable(reason: "\(start) a salt of \(HumanReadable.count(salt.count, "byte")) for them")
    default: self = .unusable(reason: "\(start) several salts for them")
    }
  }
}
