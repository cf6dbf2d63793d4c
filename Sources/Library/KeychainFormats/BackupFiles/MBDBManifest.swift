import Basics

/// The manifest of a backup of iOS 4 to 9 (`Manifest.mbdb`).
///
/// The file consists of the six bytes `mbdb 05 00` and records. All numbers are big-endian. A length of 16 bits precedes
/// each text and each data; 0xFFFF means that there is none.
///
/// ```
/// record     domain, path, link target, digest, encryption key, mode (2 bytes), inode (8), user (4), group (4),
///            three times (4 each), size (8), protection class (1), number of attributes (1), attributes
/// attribute  name, value
/// ```
///
/// Source: iphone-dataprotection, `backups/backup4.py`; backups of iOS 9, whose manifests it describes completely.
package struct MBDBManifest: Sendable {
  static let header = Array("mbdb".utf8) + [5, 0]

  private let bytes: [UInt8]

  /// A file, directory or link.
  package struct Entry: Sendable, Hashable {
    /// The domain, or `nil` if the record has none. Bytes that are not UTF-8 are written as `%F5`.
    package var domain: String?
    /// The domain's bytes if they are not UTF-8.
    package var undecodedDomain: [UInt8]?
    /// The record, without extended attributes.
    package var record: FileRecord
    /// The extended attributes at the record's end, at most 255.
    package var extendedAttributes: [ExtendedAttribute]

    /// Creates an entry whose names are UTF-8.
    package init(domain: String?, record: FileRecord, extendedAttributes: [ExtendedAttribute]) {
      self.domain = domain
      self.record = record
      self.extendedAttributes = extendedAttributes
    }

    /// Whether the domain, the path, the link's target or an attribute's name is not UTF-8.
    package var hasUndecodedNames: Bool {
      undecodedDomain != nil || record.hasUndecodedNames
        || extendedAttributes.contains { $0.undecodedName != nil }
    }

    /// An extended attribute of a file, such as `com.apple.…`.
    package struct ExtendedAttribute: Sendable, Hashable {
      /// The attribute's name, empty if the record has none. Bytes that are not UTF-8 are written as `%F5`.
      package var name: String
      /// The name's bytes if they are not UTF-8.
      package var undecodedName: [UInt8]?
      /// The attribute's bytes as stored.
      package var value: [UInt8]

      /// Creates an attribute with a name and its bytes.
      package init(name: String, value: [UInt8]) {
        self.name = name
        self.value = value
      }
    }
  }

  /// Creates a manifest from its bytes. Records are decoded on demand.
  ///
  /// - Throws: `.malformed` if the bytes do not start with the header, `.truncated` if the header is incomplete,
  ///   `.unsupportedVersion` for another version. Records are checked when they are read.
  package init(_ bytes: [UInt8]) throws(FormatError) {
    guard bytes.starts(with: Self.header.prefix(4)) else {
      throw FormatError(.oldManifest, .malformed, "it does not begin with \"mbdb\"", offset: 0)
    }
    guard bytes.count >= Self.header.count else {
      throw FormatError(.oldManifest, .truncated, "the header of 6 bytes does not fit", offset: 0)
    }
    guard bytes.starts(with: Self.header) else {
      throw FormatError(.oldManifest, .unsupportedVersion, "version \(bytes[4]).\(bytes[5]), not 5.0", offset: 4)
    }
    self.bytes = bytes
  }

  /// Returns the records in order.
  package func entries() -> Entries { entries(from: Self.header.count) }

  /// Returns the records from an offset that an earlier iteration reported.
  package func entries(from offset: Int) -> Entries { Entries(bytes: bytes, offset: max(offset, Self.header.count)) }

  /// Iterates over the records and decodes each on demand, because a manifest may have a million files.
  package struct Entries: Sendable {
    fileprivate let bytes: [UInt8]
    /// The offset of the next record, in bytes from the start of the manifest.
    package fileprivate(set) var offset: Int

    /// Returns the next record, or `nil` at the end.
    ///
    /// - Throws: `.truncated` if a record is incomplete, `.malformed` with the name of the field, both with the offset.
    package mutating func next() throws(FormatError) -> Entry? {
      guard offset < bytes.count else { return nil }
      let start = offset
      let (entry, end) = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) in
        var reader = EntryReader(cursor: ByteCursor(buffer, format: .oldManifest))
        return try reader.entry(at: start)
      }
      offset = end
      return entry
    }
  }
}

/// Reads a record.
private struct EntryReader {
  var cursor: ByteCursor

  private static let digestByteCount = 20
  /// The length of a text or data that does not exist.
  private static let absentLength = 0xFFFF

  mutating func entry(at start: Int) throws(FormatError) -> (MBDBManifest.Entry, end: Int) {
    _ = try cursor.take(start, "the records before it")
    let domain = try name("the domain")
    let pathOffset = cursor.offset
    guard let path = try name("the path") else { throw malformed("a record has no path", at: pathOffset) }
    let target = try name("the link's target")
    // The arguments are in the order in which the file contains the fields.
    var record = FileRecord(
      relativePath: path.text, target: target?.text, digest: try digest(), encryptionKey: try encryptionKey(),
      mode: UInt32(try number("the mode", byteCount: 2)), inode: try number("the inode", byteCount: 8),
      userID: Int64(try number("the user", byteCount: 4)), groupID: Int64(try number("the group", byteCount: 4)),
      lastModified: try time(), lastStatusChange: try time(), birth: try time(), size: try size(),
      protectionClass: KeyClass(rawValue: UInt32(try cursor.takeByte("the protection class"))))
    (record.undecodedPath, record.undecodedTarget) = (path.undecoded, target?.undecoded)
    var entry = MBDBManifest.Entry(domain: domain?.text, record: record, extendedAttributes: try attributes())
    entry.undecodedDomain = domain?.undecoded
    return (entry, cursor.offset)
  }

  // MARK: Fields

  /// Reads the digest. Some tools write an empty one instead of none.
  private mutating func digest() throws(FormatError) -> [UInt8]? {
    let offset = cursor.offset
    guard let digest = try data("the digest"), !digest.isEmpty else { return nil }
    guard digest.count == Self.digestByteCount else {
      throw malformed("a digest has \(digest.count) bytes", at: offset)
    }
    return digest
  }

  /// Reads the wrapped key. Some tools write an empty one instead of none.
  private mutating func encryptionKey() throws(FormatError) -> ClassWrappedKey? {
    let offset = cursor.offset
    guard let bytes = try data("the encryption key"), !bytes.isEmpty else { return nil }
    do throws(FormatError) {
      return try ClassWrappedKey(parsing: bytes)
    } catch {
      throw malformed("an encryption key has \(bytes.count) bytes", at: offset)
    }
  }

  /// Reads a time in seconds since 1970, which is signed.
  private mutating func time() throws(FormatError) -> Int64 {
    Int64(Int32(truncatingIfNeeded: try number("the time", byteCount: 4)))
  }

  private mutating func size() throws(FormatError) -> Int64 {
    let offset = cursor.offset
    guard let size = Int64(exactly: try number("the size", byteCount: 8)) else {
      throw malformed("a size is negative", at: offset)
    }
    return size
  }

  private mutating func attributes() throws(FormatError) -> [MBDBManifest.Entry.ExtendedAttribute] {
    let count = try cursor.takeByte("the number of attributes")
    var attributes: [MBDBManifest.Entry.ExtendedAttribute] = []
    for _ in 0..<count {
      let name = try name("an attribute's name")
      let value = try data("an attribute's value") ?? []
      var attribute = MBDBManifest.Entry.ExtendedAttribute(name: name?.text ?? "", value: value)
      attribute.undecodedName = name?.undecoded
      attributes.append(attribute)
    }
    return attributes
  }

  // MARK: Types of fields

  private mutating func data(_ what: String) throws(FormatError) -> [UInt8]? {
    let count = Int(try number(what, byteCount: 2))
    return count == Self.absentLength ? nil : try cursor.takeBytes(count, what)
  }

  /// Reads a name. Its length precedes it, so a name that is not UTF-8 does not affect the fields after it.
  private mutating func name(_ what: String) throws(FormatError) -> DecodedName? {
    try data(what).map { DecodedName($0) }
  }

  private mutating func number(_ what: String, byteCount: Int) throws(FormatError) -> UInt64 {
    cursor.bytes(in: try cursor.take(byteCount, what)).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private func malformed(_ reason: String, at offset: Int) -> FormatError {
    FormatError(.oldManifest, .malformed, reason, offset: offset)
  }
}
