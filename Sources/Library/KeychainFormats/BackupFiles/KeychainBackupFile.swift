import Basics

/// The keychain of a backup: `keychain-backup.plist` in `KeychainDomain`, with encrypted items.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `SecServerImportKeychainInPlist`).
public struct KeychainBackupFile: Sendable, Hashable {
  /// The maximum number of items in a file; a full device has some thousands.
  package static let maximumEntryCount = 2_000_000
  /// The number of bytes that are counted for each entry in addition to its blob and its reference. In a file, every
  /// entry takes more.
  private static let entryByteCount = 16
  /// The number of bytes by which the entries together may exceed the size of the file. A device never stores two items
  /// in the same bytes, but a crafted file could make a reader decrypt the same bytes over and over.
  package static let sharedByteAllowance = 1 << 20

  /// The lower-case UUID of the keybag whose keys encrypt the items, or `nil` in old backups.
  package var keybagUUID: String?
  /// The entries in the order genp, inet, cert, keys, and within each kind in the order of the file.
  package var entries: [Entry]
  /// The file's keys that are not a kind of item, or whose value is neither an array nor a dictionary.
  package private(set) var ignoredKeys: [String] = []
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
  /// Rejects every file that a device would reject completely, because of a key that is not a string, a key `idnt`, or
  /// an element that is not a dictionary.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion` or `.overLimit`, with the offset.
  package init(parsing bytes: [UInt8], limits: BinaryPlist.Limits = .keychainFile) throws(FormatError) {
    try self.init(parsing: bytes, limits: limits, acceptingAtMost: Self.maximumEntryCount)
  }

  /// Reads a file with another limit on the number of items.
  package init(
    parsing bytes: [UInt8], limits: BinaryPlist.Limits = .keychainFile, acceptingAtMost limit: Int
  ) throws(FormatError) {
    guard !XMLPlist.isXML(bytes) else {
      self = try Self(fromXML: bytes, limits: limits)
      return
    }
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> KeychainBackupFile in
      let document = try BinaryPlistReader(buffer, limits: limits)
      var reader = KeychainFileReader(
        bytes, decoder: BinaryPlistDecoder(document, limits: limits), maximumEntryCount: limit)
      return try reader.readFile()
    }
  }

  /// Indexes a binary file that is not in memory: its entries have offsets, but no bytes.
  ///
  /// - Throws: The errors of reading a file in memory. `PagedBytes` reports read errors.
  package init(indexing pages: PagedBytes, limits: BinaryPlist.Limits = .keychainFile) throws(FormatError) {
    let document = try BinaryPlistReader(PropertyListBytes(pages), limits: limits)
    var reader = KeychainFileReader(
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
    try KeychainFileWriter(self).write { (entry) throws(FormatError) in
      entry
    } to: { (portion) throws(FormatError) in
      bytes.append(contentsOf: portion)
    }
    return bytes
  }

  /// Reads the file object by object, so that the offset of each blob is known.
  private struct KeychainFileReader {
    /// The document's bytes, or none if the entries need only their offsets.
    private let bytes: [UInt8]
    private var decoder: BinaryPlistDecoder
    private let maximumEntryCount: Int
    /// The number of bytes that further entries may have, each counted separately.
    private var remainingBytes: Int
    private var file = KeychainBackupFile(keybagUUID: nil, entries: [])

    private var document: BinaryPlistReader { decoder.document }

    init(_ bytes: [UInt8], decoder: BinaryPlistDecoder, maximumEntryCount: Int) {
      self.bytes = bytes
      self.decoder = decoder
      self.maximumEntryCount = maximumEntryCount
      remainingBytes = decoder.document.bytes.count + sharedByteAllowance
    }

    mutating func readFile() throws(FormatError) -> KeychainBackupFile {
      let valueIndexes = try readKeys()
      if let index = valueIndexes[Key.keybagUUID] { file.keybagUUID = try document.text(document.object(at: index)) }
      try reserveEntries(valueIndexes)
      for kind in ItemKind.allCases {
        guard let index = valueIndexes[kind.rawValue] else { continue }
        if try !readEntries(of: kind, at: index) { file.ignoredKeys.append(kind.rawValue) }
      }
      return file
    }

    /// Reads the keys of the root dictionary, and records those that are ignored.
    ///
    /// - Returns: The index of each key's value. If a key occurs twice, the first value counts.
    private mutating func readKeys() throws(FormatError) -> [String: Int] {
      guard case .dictionary(let keys, let values) = try document.object(at: document.rootIndex) else {
        throw try malformed("it is not a dictionary", at: document.rootIndex)
      }
      var valueIndexes: [String: Int] = [:]
      for position in 0..<keys.count {
        let keyIndex = try document.index(position, of: keys)
        guard let key = try decoder.value(at: keyIndex).stringValue else {
          throw try malformed("a key is not a string", at: keyIndex)
        }
        guard key != Key.identities else { throw try malformed("a key is idnt, which no backup has", at: keyIndex) }
        let valueIndex = try document.index(position, of: values)
        guard valueIndexes[key] == nil else { continue }
        valueIndexes[key] = valueIndex
        if ItemKind(rawValue: key) == nil, key != Key.keybagUUID { file.ignoredKeys.append(key) }
      }
      return valueIndexes
    }

    /// Reserves memory once for the entries of all kinds, because a growing array is in memory twice.
    private mutating func reserveEntries(_ valueIndexes: [String: Int]) throws(FormatError) {
      // A kind may have a single entry without an array.
      var count = ItemKind.allCases.count
      for kind in ItemKind.allCases {
        guard let index = valueIndexes[kind.rawValue] else { continue }
        if case .array(let references) = try document.object(at: index) { count += references.count }
      }
      file.entries.reserveCapacity(min(maximumEntryCount, count, remainingBytes / entryByteCount))
    }

    /// Reads the items of one kind.
    ///
    /// - Returns: Whether the value is an array or a dictionary.
    private mutating func readEntries(of kind: ItemKind, at index: Int) throws(FormatError) -> Bool {
      switch try document.object(at: index) {
      case .dictionary:
        try requireRoom(for: 1, at: index)
        let entry = try readEntry(of: kind, at: index)
        file.entries.append(entry)
      case .array(let references):
        try requireRoom(for: references.count, at: index)
        for position in 0..<references.count {
          let entry = try readEntry(of: kind, at: document.index(position, of: references))
          file.entries.append(entry)
        }
      default: return false
      }
      return true
    }

    private func requireRoom(for count: Int, at index: Int) throws(FormatError) {
      guard count <= maximumEntryCount - file.entries.count else {
        throw FormatError(
          .keychainFile, .overLimit, "more than \(maximumEntryCount) items",
          offset: try document.offset(ofObject: index))
      }
    }

    private mutating func readEntry(of kind: ItemKind, at index: Int) throws(FormatError) -> Entry {
      guard case .dictionary(let keys, let values) = try document.object(at: index) else {
        throw try malformed("an item is not a dictionary", at: index)
      }
      var (blob, reference): (Range<Int>?, Range<Int>?)
      try charge(entryByteCount, at: index)
      for position in 0..<keys.count {
        let key = try decoder.value(at: document.index(position, of: keys)).stringValue
        guard key == Key.blob || key == Key.persistentReference else { continue }
        let valueIndex = try document.index(position, of: values)
        guard case .data(let range) = try document.object(at: valueIndex) else { continue }
        if key == Key.blob, blob == nil {
          try charge(range.count, at: valueIndex)
          blob = range
        } else if key == Key.persistentReference, reference == nil {
          try charge(range.count, at: valueIndex)
          reference = range
        }
      }
      return Entry(kind: kind, in: bytes, blob: blob, persistentReference: reference)
    }

    private mutating func charge(_ byteCount: Int, at index: Int) throws(FormatError) {
      guard byteCount <= remainingBytes else {
        throw FormatError(
          .keychainFile, .overLimit, "its items share bytes, and together have more bytes than are accepted",
          offset: try document.offset(ofObject: index))
      }
      remainingBytes -= byteCount
    }

    private func malformed(_ reason: String, at index: Int) throws(FormatError) -> FormatError {
      FormatError(.keychainFile, .malformed, reason, offset: try document.offset(ofObject: index))
    }
  }
}

extension KeychainBackupFile {
  /// An item as the file stores it.
  package struct Entry: Sendable {
    /// The bytes of the complete file, so that they are in memory only once. For a new entry, only its own bytes.
    private let source: [UInt8]
    private let blobPart: Part
    private let referencePart: Part
    /// The offset of the blob in the file; `max` if there is none.
    private var blobStart = UInt32.max
    /// The kind whose array contains the item.
    package var kind: ItemKind

    /// A range of an entry's bytes, in 8 bytes because every item has two. Files of 4 GB or more are not read.
    private struct Part {
      private var start: UInt32 = .max
      private var count: UInt32 = 0

      init(_ range: Range<Int>?) {
        guard let range, let start = UInt32(exactly: range.lowerBound), let count = UInt32(exactly: range.count) else {
          return
        }
        (self.start, self.count) = (start, count)
      }

      var range: Range<Int>? { start == .max ? nil : Int(start)..<Int(start) + Int(count) }

      func bytes(of source: [UInt8]) -> [UInt8]? {
        range.flatMap { $0.upperBound <= source.count ? Array(source[$0]) : nil }
      }
    }

    /// Creates an entry for an encrypted item.
    ///
    /// - Parameters:
    ///   - kind: The kind of item.
    ///   - blob: The encrypted item, or `nil` if there is none.
    ///   - persistentReference: The value of `v_PersistentRef`, or `nil` if there is none.
    package init(kind: ItemKind, blob: [UInt8]?, persistentReference: [UInt8]? = nil) {
      self.kind = kind
      let count = blob?.count ?? 0
      var bytes: [UInt8] = []
      bytes.reserveCapacity(count + (persistentReference?.count ?? 0))
      for part in [blob, persistentReference] { bytes += part ?? [] }
      source = bytes
      blobPart = Part(blob.map { _ in 0..<count })
      referencePart = Part(persistentReference.map { count..<(count + $0.count) })
    }

    /// Creates an entry of a file.
    ///
    /// - Parameters:
    ///   - source: The file's bytes, or none if only the offsets are wanted.
    ///   - blob: The range of the value of `v_Data`, or `nil` if there is none.
    ///   - persistentReference: The range of the value of `v_PersistentRef`, or `nil` if there is none.
    package init(kind: ItemKind, in source: [UInt8], blob: Range<Int>?, persistentReference: Range<Int>?) {
      self.kind = kind
      self.source = source
      blobPart = Part(blob)
      referencePart = Part(persistentReference)
      blobStart = blob.map { UInt32(clamping: $0.lowerBound) } ?? .max
    }

    /// A copy of the encrypted item, or `nil` if the file has none, in which case only this item is unreadable.
    package var blob: [UInt8]? {
      get { blobPart.bytes(of: source) }
      set { self = Entry(kind: kind, blob: newValue, persistentReference: persistentReference) }
    }
    /// The value of `v_PersistentRef`: 12 or 20 bytes, unchanged, which `PersistentReference` parses.
    package var persistentReference: [UInt8]? { referencePart.bytes(of: source) }
    /// The offset of the blob in the file, in bytes from its start, or `nil` if the entry is not from a file.
    package var blobOffset: Int? { blobStart == .max ? nil : Int(blobStart) }

    /// Removes the offset, which refers to the converted file instead of the original one.
    mutating func clearOffset() { blobStart = .max }
  }
}

extension KeychainBackupFile.Entry {
  /// The maximum number of bytes in which the ranges of an entry can lie.
  package static let maximumSourceByteCount = Int(UInt32.max) - 1

  var hasBlob: Bool { blobPart.range != nil }
  var hasPersistentReference: Bool { referencePart.range != nil }
  /// The number of bytes of the blob and the reference together.
  package var byteCount: Int { ranges.reduce(0) { $0 + $1.count } }

  /// The ranges of the blob and the reference in the bytes from which the entry was read.
  package var ranges: [Range<Int>] { [blobPart.range, referencePart.range].compactMap(\.self) }

  /// Creates the same entry for other bytes. Without bytes, only its offsets remain.
  ///
  /// - Parameters:
  ///   - bytes: A part of the file that contains both ranges of the entry.
  ///   - start: The offset of that part.
  package init(_ entry: Self, in bytes: [UInt8], beginningAt start: Int = 0) {
    kind = entry.kind
    source = bytes
    blobPart = Part(entry.blobPart.range.map { $0.lowerBound - start..<$0.upperBound - start })
    referencePart = Part(entry.referencePart.range.map { $0.lowerBound - start..<$0.upperBound - start })
    blobStart = entry.blobStart
  }

  /// Creates the same entry from the separate bytes of each of its ranges, in their order.
  package init(_ entry: Self, of parts: [[UInt8]]) {
    let blob = entry.blobPart.range == nil ? nil : parts.first
    self.init(kind: entry.kind, blob: blob, persistentReference: entry.referencePart.range == nil ? nil : parts.last)
    blobStart = entry.blobStart
  }
}

extension KeychainBackupFile.Entry: Hashable {
  /// Returns whether both have the same kind, bytes and offset.
  package static func == (left: Self, right: Self) -> Bool {
    left.kind == right.kind && left.blob == right.blob && left.persistentReference == right.persistentReference
      && left.blobOffset == right.blobOffset
  }

  /// Hashes the kind and the blob.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(blob)
  }
}
