import Basics

/// The keychain of a backup: `keychain-backup.plist` in `KeychainDomain`, with its items sealed.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `SecServerImportKeychainInPlist`).
public struct KeychainBackupFile: Sendable, Hashable {
  /// The most items that a file may have; a full device has some thousands. What a reader does for them is limited by the
  /// file's own bytes: see `sharedByteAllowance`.
  public static let maximumEntryCount = 2_000_000
  /// What an entry counts for beside its blob and its reference, in bytes: less than any takes that is stored by itself.
  private static let entryByteCount = 16
  /// By how many bytes all entries together may be longer than the file, their blobs and references counted each for itself
  /// and sixteen bytes more for each entry. No device stores two items in the same bytes; every item is decrypted on its
  /// own, wherever its bytes lie.
  public static let sharedByteAllowance = 1 << 20

  /// The lower-case UUID of the bag the items are sealed for. Old backups have none.
  public var keybagUUID: String?
  /// In the order genp, inet, cert, keys, and within each as the file has them.
  public var entries: [Entry]
  /// Keys of the file that stand for no kind of item, or whose value is neither an array nor a dictionary.
  public private(set) var ignoredKeys: [String] = []
  /// Whether it was read from a property list in XML, in which no blob has a place of its own.
  public private(set) var isXML = false

  enum Key {
    static let keybagUUID = "keybag-uuid"
    static let identities = "idnt"
    static let blob = "v_Data"
    static let persistentReference = "v_PersistentRef"
  }

  /// Creates a file to write.
  ///
  /// - Parameters:
  ///   - keybagUUID: The lower-case UUID of the bag that the items are sealed for (`Keybag.uuidText`).
  ///   - entries: The sealed items, in the order in which the file shall have them.
  public init(keybagUUID: String?, entries: [Entry]) {
    self.keybagUUID = keybagUUID
    self.entries = entries
  }

  /// Reads a file.
  ///
  /// What makes a device refuse the whole file is refused here too: a key that is not a string, a key `idnt`, an element
  /// that is not a dictionary.
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion` or `.overLimit`, with the offset.
  public init(parsing bytes: [UInt8], limits: BinaryPlist.Limits = .keychainFile) throws(FormatError) {
    try self.init(parsing: bytes, limits: limits, acceptingAtMost: Self.maximumEntryCount)
  }

  /// The same with another limit of items.
  package init(
    parsing bytes: [UInt8], limits: BinaryPlist.Limits = .keychainFile, acceptingAtMost limit: Int
  ) throws(FormatError) {
    guard !XMLPlist.isXML(bytes) else {
      self = try Self(fromXML: bytes, limits: limits)
      return
    }
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> KeychainBackupFile in
      var reader = KeychainFileReader(
        of: bytes, builder: BinaryPlistBuilder(try BinaryPlistReader(buffer, limits: limits), limits: limits))
      return try reader.file(acceptingAtMost: limit)
    }
  }

  /// Reads one that is not held and not in XML: its entries have places, and no bytes.
  ///
  /// - Throws: As of one that is held. What could not be read is none of these: see `PagedBytes`.
  package init(placesIn pages: PagedBytes, limits: BinaryPlist.Limits = .keychainFile) throws(FormatError) {
    let document = try BinaryPlistReader(PropertyListBytes(pages), limits: limits)
    var reader = KeychainFileReader(of: [], builder: BinaryPlistBuilder(document, limits: limits))
    self = try reader.file(acceptingAtMost: Self.maximumEntryCount)
  }

  /// Reads one in XML, as people and their tools write it: by the same rules, from the same values in binary.
  private init(fromXML bytes: [UInt8], limits: BinaryPlist.Limits) throws(FormatError) {
    self = try Self(parsing: try BinaryPlist.encode(try XMLPlist.decode(bytes)), limits: limits)
    isXML = true
    for index in entries.indices { entries[index].losePlace() }
  }

  /// The file as a binary property list. Kinds without items have no key.
  ///
  /// - Throws: `.overLimit` for more entries than `maximumEntryCount`.
  public func serialized() throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    // Three objects for each entry, each some bytes long itself, with a reference to it and its place.
    bytes.reserveCapacity(entries.reduce(1 << 12) { $0 + $1.byteCount + 3 * (8 + 4 + 4) })
    try KeychainFileWriter(self).write { (entry) throws(FormatError) in
      entry
    } to: { (portion) throws(FormatError) in
      bytes.append(contentsOf: portion)
    }
    return bytes
  }

  /// Reads the file object by object, so that each blob's place is known.
  private struct KeychainFileReader {
    /// The document's bytes.
    private let bytes: [UInt8]
    private var builder: BinaryPlistBuilder
    /// What entries may still hold, each counted for itself.
    private var remainingBytes: Int

    private var document: BinaryPlistReader { builder.document }

    init(of bytes: [UInt8], builder: BinaryPlistBuilder) {
      self.bytes = bytes
      self.builder = builder
      remainingBytes = builder.document.bytes.count + sharedByteAllowance
    }

    mutating func file(acceptingAtMost limit: Int) throws(FormatError) -> KeychainBackupFile {
      guard case .dictionary(let keys, let values) = try document.object(at: document.rootIndex) else {
        throw try malformed("it is not a dictionary", at: document.rootIndex)
      }
      var file = KeychainBackupFile(keybagUUID: nil, entries: [])
      var indices: [String: Int] = [:]
      for position in 0..<keys.count {
        let keyIndex = try document.index(position, of: keys)
        guard let key = try builder.value(at: keyIndex).stringValue else {
          throw try malformed("a key is not a string", at: keyIndex)
        }
        guard key != Key.identities else { throw try malformed("a key is idnt, which no backup has", at: keyIndex) }
        let index = try document.index(position, of: values)
        guard indices.updateValue(indices[key] ?? index, forKey: key) == nil else { continue }
        if ItemKind(rawValue: key) == nil, key != Key.keybagUUID { file.ignoredKeys.append(key) }
      }
      if let index = indices[Key.keybagUUID] { file.keybagUUID = try document.text(document.object(at: index)) }
      // Once for all kinds: what has to grow is there twice meanwhile.
      var count = ItemKind.allCases.count
      for kind in ItemKind.allCases {
        guard let index = indices[kind.rawValue] else { continue }
        if case .array(let references) = try document.object(at: index) { count += references.count }
      }
      file.entries.reserveCapacity(min(limit, count, remainingBytes / entryByteCount))
      for kind in ItemKind.allCases {
        guard let index = indices[kind.rawValue] else { continue }
        if try !readEntries(of: kind, at: index, into: &file, acceptingAtMost: limit) {
          file.ignoredKeys.append(kind.rawValue)
        }
      }
      return file
    }

    /// - Returns: Whether there are any: whether the value is an array or a dictionary.
    private mutating func readEntries(
      of kind: ItemKind, at index: Int, into file: inout KeychainBackupFile, acceptingAtMost limit: Int
    ) throws(FormatError) -> Bool {
      let room = (left: limit - file.entries.count, of: limit)
      switch try document.object(at: index) {
      case .dictionary:
        try checkRoom(room, for: 1, at: index)
        file.entries.append(try entry(of: kind, at: index))
      case .array(let references):
        try checkRoom(room, for: references.count, at: index)
        for position in 0..<references.count {
          file.entries.append(try entry(of: kind, at: document.index(position, of: references)))
        }
      default: return false
      }
      return true
    }

    private func checkRoom(_ room: (left: Int, of: Int), for count: Int, at index: Int) throws(FormatError) {
      guard count <= room.left else {
        throw FormatError(
          .keychainFile, .overLimit, "more than \(room.of) items",
          offset: try document.offset(ofObject: index))
      }
    }

    private mutating func entry(of kind: ItemKind, at index: Int) throws(FormatError) -> Entry {
      guard case .dictionary(let keys, let values) = try document.object(at: index) else {
        throw try malformed("an item is not a dictionary", at: index)
      }
      var (blob, reference): (Range<Int>?, Range<Int>?)
      try charge(entryByteCount, at: index)
      for position in 0..<keys.count {
        let key = try builder.value(at: document.index(position, of: keys)).stringValue
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
  /// One item as the file holds it.
  public struct Entry: Sendable {
    /// The file that was read, so that a hundred thousand items are not there twice; of an entry that was made its own
    /// bytes.
    private let source: [UInt8]
    private let sealed: Part
    private let reference: Part
    /// Where the blob begins in the file; `max` where it has no place that anybody could look at.
    private var place = UInt32.max
    /// The kind whose array the item stands in.
    public var kind: ItemKind

    /// Where bytes of an entry lie. As small as can be: there are two for every item, and no file that is read has four
    /// gigabytes.
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

    /// Creates an entry of an item that was sealed.
    ///
    /// - Parameters:
    ///   - kind: The kind of item.
    ///   - blob: The sealed item; `nil` for an item without one.
    ///   - persistentReference: The value of `v_PersistentRef`, if it has one.
    public init(kind: ItemKind, blob: [UInt8]?, persistentReference: [UInt8]? = nil) {
      self.kind = kind
      let count = blob?.count ?? 0
      var bytes: [UInt8] = []
      bytes.reserveCapacity(count + (persistentReference?.count ?? 0))
      for part in [blob, persistentReference] { bytes += part ?? [] }
      source = bytes
      sealed = Part(blob.map { _ in 0..<count })
      reference = Part(persistentReference.map { count..<(count + $0.count) })
    }

    /// An entry of a file that is read, or of one whose bytes are kept elsewhere.
    ///
    /// - Parameters:
    ///   - source: The file's bytes; none where its place alone is held.
    ///   - blob: Where the value of `v_Data` lies in them; `nil` for an item without one.
    ///   - persistentReference: The same of `v_PersistentRef`.
    package init(kind: ItemKind, in source: [UInt8], blob: Range<Int>?, persistentReference: Range<Int>?) {
      self.kind = kind
      self.source = source
      sealed = Part(blob)
      reference = Part(persistentReference)
      place = blob.map { UInt32(clamping: $0.lowerBound) } ?? .max
    }

    /// The sealed item, copied out of what was read; `nil` if the file has none, which makes the item unreadable and no
    /// other.
    public var blob: [UInt8]? {
      get { sealed.bytes(of: source) }
      set { self = Entry(kind: kind, blob: newValue, persistentReference: persistentReference) }
    }
    /// The value of `v_PersistentRef`: twelve or twenty bytes that `PersistentReference` reads, kept as they came.
    public var persistentReference: [UInt8]? { reference.bytes(of: source) }
    /// Where the blob's bytes begin in the file that was read, in bytes from its start; `nil` for an entry that was made.
    public var blobOffset: Int? { place == .max ? nil : Int(place) }

    /// Its place is none that anybody could look at.
    mutating func losePlace() { place = .max }
  }
}

extension KeychainBackupFile.Entry {
  /// The most bytes that there may be where its blob and its reference lie.
  package static let maximumSourceByteCount = Int(UInt32.max) - 1

  var hasBlob: Bool { sealed.range != nil }
  var hasPersistentReference: Bool { reference.range != nil }
  /// Of both.
  package var byteCount: Int { ranges.reduce(0) { $0 + $1.count } }

  /// Where its blob and its reference lie in the bytes that it was read from.
  package var ranges: [Range<Int>] { [sealed.range, reference.range].compactMap(\.self) }

  /// The same entry out of other bytes; out of none its places are left.
  ///
  /// - Parameters:
  ///   - bytes: A part of the file in which both of its ranges are.
  ///   - start: Where that part begins.
  package init(_ entry: Self, in bytes: [UInt8], beginningAt start: Int = 0) {
    kind = entry.kind
    source = bytes
    sealed = Part(entry.sealed.range.map { $0.lowerBound - start..<$0.upperBound - start })
    reference = Part(entry.reference.range.map { $0.lowerBound - start..<$0.upperBound - start })
    place = entry.place
  }

  /// The same with the bytes of each of its ranges for themselves, in their order.
  package init(_ entry: Self, of parts: [[UInt8]]) {
    let blob = entry.sealed.range == nil ? nil : parts.first
    self.init(kind: entry.kind, blob: blob, persistentReference: entry.reference.range == nil ? nil : parts.last)
    place = entry.place
  }
}

extension KeychainBackupFile.Entry: Hashable {
  /// Whether both are of one kind with the same bytes, wherever these lie, and at one place of their files.
  public static func == (left: Self, right: Self) -> Bool {
    left.kind == right.kind && left.blob == right.blob && left.persistentReference == right.persistentReference
      && left.blobOffset == right.blobOffset
  }

  /// By the bytes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(blob)
  }
}
