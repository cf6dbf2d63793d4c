import Basics

/// The keychain of a backup: `keychain-backup.plist` in `KeychainDomain`, with encrypted items.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `SecServerImportKeychainInPlist`).
public struct KeychainBackupFile: Sendable, Hashable {
  /// The maximum number of items in a file; a full device has some thousands.
  package static let maximumEntryCount = 2_000_000
  /// The number of bytes that a limit counts for each entry in addition to its blob and its reference. An entry in a
  /// file is always larger.
  static let entryByteCount = 16
  /// The number of bytes by which all entries together may be larger than the file. A device never stores
  /// two items in the same bytes, but a crafted file could make a reader decrypt the same bytes over and over.
  package static let maximumOverlap = 1 << 20

  /// The lower-case UUID of the keybag whose keys encrypt the items, or `nil` in old backups.
  package var keybagUUID: String?
  /// The entries in the order genp, inet, cert, keys, and within each kind in the order of the file.
  package var entries: [Entry]
  /// The file's keys that are not a kind of item, or whose value is neither an array nor a dictionary.
  package internal(set) var ignoredKeys: [String] = []
  /// Whether the file is an XML property list, in which blobs have no offsets.
  package private(set) var isXML = false

  enum Key {
    static let keybagUUID = "keybag-uuid"
    static let identities = "idnt"
    static let blob = "v_Data"
    static let persistentReference = "v_PersistentRef"
  }

  /// Creates a file to write.
  ///
  /// - Parameters:
  ///   - keybagUUID: The lower-case UUID of the keybag whose keys encrypt the items (`Keybag.uuidText`).
  ///   - entries: The encrypted items, in the order of the file.
  package init(keybagUUID: String?, entries: [Entry]) {
    self.keybagUUID = keybagUUID
    self.entries = entries
  }

  /// Reads a file.
  ///
  /// Rejects every file that a device would reject as a whole. Such a file has a key that is not a string, the key
  /// `idnt`, or an element that is not a dictionary.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion` or `.overLimit`, with the offset.
  package init(parsing bytes: [UInt8], limits: BinaryPlist.Limits = .keychainFile) throws(FormatError) {
    try self.init(parsing: bytes, limits: limits, acceptingAtMost: Self.maximumEntryCount)
  }

  /// Reads a file with a given limit on the number of items.
  ///
  /// - Throws: The errors of `init(parsing:limits:)`.
  package init(
    parsing bytes: [UInt8], limits: BinaryPlist.Limits = .keychainFile, acceptingAtMost limit: Int
  ) throws(FormatError) {
    guard !XMLPlist.isXML(bytes) else {
      self = try Self(fromXML: bytes, limits: limits)
      return
    }
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> KeychainBackupFile in
      let document = try BinaryPlistReader(buffer, limits: limits)
      var reader = FileReader(
        bytes, decoder: BinaryPlistDecoder(document, limits: limits), maximumEntryCount: limit)
      return try reader.readFile()
    }
  }

  /// Indexes a binary file that is not in memory: its entries have offsets, but no bytes.
  ///
  /// - Throws: The errors of `init(parsing:limits:)`. `PagedBytes` reports read errors.
  package init(indexing pages: PagedBytes, limits: BinaryPlist.Limits = .keychainFile) throws(FormatError) {
    let document = try BinaryPlistReader(PropertyListBytes(pages), limits: limits)
    var reader = FileReader(
      [], decoder: BinaryPlistDecoder(document, limits: limits), maximumEntryCount: Self.maximumEntryCount)
    self = try reader.readFile()
  }

  /// Reads an XML file, as people and their tools write it, by converting it to binary first.
  private init(fromXML bytes: [UInt8], limits: BinaryPlist.Limits) throws(FormatError) {
    self = try Self(parsing: try BinaryPlist.encode(try XMLPlist.decode(bytes)), limits: limits)
    isXML = true
    for index in entries.indices { entries[index].clearOffset() }
  }

  /// Returns the file as a binary property list. Kinds without items have no key.
  ///
  /// - Throws: `.overLimit` for more entries than `maximumEntryCount`.
  package func serialized() throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    // Each entry has three objects with some bytes each, a reference to each object, and its offset.
    bytes.reserveCapacity(entries.reduce(1 << 12) { $0 + $1.byteCount + 3 * (8 + 4 + 4) })
    // The entries already have their bytes, so there is nothing to load.
    try KeychainFileWriter(self).write { (entry) throws(FormatError) in
      entry
    } to: { (chunk) throws(FormatError) in
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }
}
