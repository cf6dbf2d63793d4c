import Basics

/// The manifest of a backup of iOS 4 to 9 (`Manifest.mbdb`).
///
/// The file consists of the six bytes `mbdb 05 00`, followed by records. All numbers are big-endian. The domain, path,
/// link target, digest, encryption key, name and value have a variable length. Each of them starts with its length in
/// 2 bytes; the length 0xFFFF means that the field is missing.
///
/// ```
/// record     domain, path, link target, digest, encryption key, mode (2 bytes), inode (8), user ID (4), group ID (4),
///            modification time (4), status change time (4), creation time (4), size (8), protection class (1),
///            number of attributes (1), attributes
/// attribute  name, value
/// ```
///
/// Source: iphone-dataprotection, `backups/backup4.py`; manifests of iOS 9 backups, which have exactly this layout.
package struct MBDBManifest: Sendable {
  /// The signature `mbdb` and the version 5.0.
  static let header = Array("mbdb".utf8) + [5, 0]

  private let bytes: [UInt8]

  /// The record of a file, directory or symbolic link.
  package struct Entry: Sendable, Hashable {
    /// The domain, or `nil` if the record has none. If the domain is not UTF-8, `DecodedName` escapes its invalid bytes.
    package var domain: String?
    /// The domain's bytes if they are not UTF-8, otherwise `nil`.
    package var undecodedDomain: [UInt8]?
    /// The other fields. The record's own `extendedAttributes` is `nil`; the attributes are in the property below.
    package var record: FileRecord
    /// The extended attributes at the record's end. Their number is stored in one byte, so there are at most 255.
    package var extendedAttributes: [ExtendedAttribute]

    /// Creates an entry whose domain is UTF-8.
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

    /// An extended attribute of a file: a name, such as `com.apple.…`, and a value.
    package struct ExtendedAttribute: Sendable, Hashable {
      /// The attribute's name, or an empty text if it has none. If the name is not UTF-8, `DecodedName` escapes its
      /// invalid bytes.
      package var name: String
      /// The name's bytes if they are not UTF-8, otherwise `nil`.
      package var undecodedName: [UInt8]?
      /// The attribute's value as stored.
      package var value: [UInt8]

      /// Creates an attribute whose name is UTF-8.
      package init(name: String, value: [UInt8]) {
        self.name = name
        self.value = value
      }
    }
  }

  /// Creates a manifest from its bytes. Records are decoded and checked only when they are read.
  ///
  /// - Throws: `.malformed` if the bytes do not start with `mbdb`; `.truncated` if the header is incomplete;
  ///   `.unsupportedVersion` if the version is not 5.0.
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

  /// Returns an iterator over all records, in the order of the file.
  package func entries() -> Entries { entries(from: Self.header.count) }

  /// Returns an iterator that starts at a later record.
  ///
  /// - Parameter offset: The record's offset, from the `offset` of an earlier iterator.
  package func entries(from offset: Int) -> Entries { Entries(bytes: bytes, offset: max(offset, Self.header.count)) }

  /// An iterator over the records. It decodes one record at a time, because a manifest may have a million of them.
  package struct Entries: Sendable {
    fileprivate let bytes: [UInt8]
    /// The offset of the next record, in bytes from the start of the manifest.
    package fileprivate(set) var offset: Int

    /// Decodes the next record.
    ///
    /// - Returns: The record, or `nil` at the end of the manifest.
    /// - Throws: `.truncated` if the record is incomplete; `.malformed` if a field is invalid. The error names the
    ///   field and its offset.
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

/// Decodes the fields of one record.
private struct EntryReader {
  var cursor: ByteCursor

  /// The size of a SHA-1 digest.
  private static let digestByteCount = 20
  /// The length that marks a field of variable length as missing.
  private static let missingFieldLength = 0xFFFF

  /// Returns the record at an offset, and the offset of the next record.
  mutating func entry(at start: Int) throws(FormatError) -> (MBDBManifest.Entry, end: Int) {
    // Skips the earlier records, because the cursor is at the start of the manifest.
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
    (record.undecodedPath, record.undecodedTarget) = (path.undecodedBytes, target?.undecodedBytes)
    var entry = MBDBManifest.Entry(domain: domain?.text, record: record, extendedAttributes: try attributes())
    entry.undecodedDomain = domain?.undecodedBytes
    return (entry, cursor.offset)
  }

  // MARK: Fields

  /// Reads the digest. An empty digest counts as missing, because some tools write it for files without a digest.
  private mutating func digest() throws(FormatError) -> [UInt8]? {
    let offset = cursor.offset
    guard let digest = try data("the digest"), !digest.isEmpty else { return nil }
    guard digest.count == Self.digestByteCount else {
      throw malformed("a digest has \(digest.count) bytes", at: offset)
    }
    return digest
  }

  /// Reads the file's wrapped key. An empty key counts as missing, because some tools write it for unencrypted files.
  private mutating func encryptionKey() throws(FormatError) -> ClassWrappedKey? {
    let offset = cursor.offset
    guard let bytes = try data("the encryption key"), !bytes.isEmpty else { return nil }
    do throws(FormatError) {
      return try ClassWrappedKey(parsing: bytes)
    } catch {
      throw malformed("an encryption key has \(bytes.count) bytes", at: offset)
    }
  }

  /// Reads a time: a signed number of seconds since 1970.
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
      attribute.undecodedName = name?.undecodedBytes
      attributes.append(attribute)
    }
    return attributes
  }

  // MARK: Types of fields

  /// Reads a field of variable length, or returns `nil` if it is missing. An error contains the field's name.
  private mutating func data(_ fieldName: String) throws(FormatError) -> [UInt8]? {
    let count = Int(try number(fieldName, byteCount: 2))
    return count == Self.missingFieldLength ? nil : try cursor.takeBytes(count, fieldName)
  }

  /// Reads a name or path, which may be invalid UTF-8.
  private mutating func name(_ fieldName: String) throws(FormatError) -> DecodedName? {
    try data(fieldName).map { DecodedName($0) }
  }

  private mutating func number(_ fieldName: String, byteCount: Int) throws(FormatError) -> UInt64 {
    bigEndianInteger(cursor.bytes(in: try cursor.take(byteCount, fieldName)))
  }

  private func malformed(_ reason: String, at offset: Int) -> FormatError {
    FormatError(.oldManifest, .malformed, reason, offset: offset)
  }
}
