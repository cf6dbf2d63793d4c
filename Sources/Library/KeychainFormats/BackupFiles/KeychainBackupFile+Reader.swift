import Basics

extension KeychainBackupFile {
  /// Reads the file object by object, so that the offset of each blob is known.
  struct FileReader {
    /// The document's bytes; empty if only the offsets of the entries are needed.
    private let bytes: [UInt8]
    private var decoder: BinaryPlistDecoder
    private let maximumEntryCount: Int
    /// The number of bytes that the remaining entries may have. Bytes that several entries share count for each of them.
    private var remainingBytes: Int
    private var file = KeychainBackupFile(keybagUUID: nil, entries: [])

    private var document: BinaryPlistReader { decoder.document }

    init(_ bytes: [UInt8], decoder: BinaryPlistDecoder, maximumEntryCount: Int) {
      self.bytes = bytes
      self.decoder = decoder
      self.maximumEntryCount = maximumEntryCount
      remainingBytes = decoder.document.bytes.count + maximumOverlap
    }

    mutating func readFile() throws(FormatError) -> KeychainBackupFile {
      let valueIndexes = try readKeys()
      if let index = valueIndexes[Key.keybagUUID] { file.keybagUUID = try document.string(document.object(at: index)) }
      try reserveEntries(valueIndexes)
      for kind in ItemKind.allCases {
        guard let index = valueIndexes[kind.rawValue] else { continue }
        if try !readEntries(of: kind, at: index) { file.ignoredKeys.append(kind.rawValue) }
      }
      return file
    }

    /// Reads the keys of the root dictionary, and records the keys that are ignored.
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

    /// Reserves memory once for the entries of all kinds, because an array is in memory twice while it grows.
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

    /// Subtracts bytes from the number that the remaining entries may have.
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
