import Basics

/// The manifest of a backup of iOS 4 to 9 (`Manifest.mbdb`).
///
/// Six bytes `mbdb 05 00`, then records to the end. Integers are big-endian. Texts and data have a length of 16 bits
/// before them; 0xFFFF means that there is none. A record consists of domain, path, link target, digest, encryption
/// key, 40 bytes of numbers, and pairs of a name and data.
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

private struct EntryReader {
  var cursor: ByteCursor

  mutating func entry(at start: Int) throws(FormatError) -> (MBDBManifest.Entry, end: Int) {
    _ = try cursor.take(start, "what comes before")
    let domain = try name("the domain")
    let pathOffset = cursor.offset
    guard let path = try name("the path") else { throw malformed("a record has no path", at: pathOffset) }
    let target = try name("the link's target")
    let digestOffset = cursor.offset
    let digest = try data("the digest")
    // Some tools write an empty digest or key instead of none.
    if let digest, !digest.isEmpty, digest.count != 20 {
      throw malformed("a digest has \(digest.count) bytes", at: digestOffset)
    }
    let keyOffset = cursor.offset
    let key = try wrappedKey(at: keyOffset)
    let mode = UInt32(try number("the mode", 2))
    let inode = try number("the inode", 8)
    let (userID, groupID) = (try number("the user", 4), try number("the group", 4))
    let times = [try signedWord("the time"), try signedWord("the time"), try signedWord("the time")]
    let sizeOffset = cursor.offset
    guard let size = Int64(exactly: try number("the size", 8)) else {
      throw malformed("a size is negative", at: sizeOffset)
    }
    let protectionClass = try cursor.takeByte("the protection class")
    let attributeCount = try cursor.takeByte("the number of attributes")
    var attributes: [MBDBManifest.Entry.ExtendedAttribute] = []
    for _ in 0..<attributeCount {
      let name = try name("an attribute's name")
      var attribute = MBDBManifest.Entry.ExtendedAttribute(
        name: name?.text ?? "", value: try data("an attribute's value") ?? [])
      attribute.undecodedName = name?.undecoded
      attributes.append(attribute)
    }
    var record = FileRecord(
      relativePath: path.text, target: target?.text, digest: digest?.isEmpty == true ? nil : digest, encryptionKey: key,
      mode: mode, inode: inode, userID: Int64(userID), groupID: Int64(groupID), lastModified: times[0],
      lastStatusChange: times[1], birth: times[2], size: size,
      protectionClass: KeyClass(rawValue: UInt32(protectionClass)))
    (record.undecodedPath, record.undecodedTarget) = (path.undecoded, target?.undecoded)
    var entry = MBDBManifest.Entry(domain: domain?.text, record: record, extendedAttributes: attributes)
    entry.undecodedDomain = domain?.undecoded
    return (entry, cursor.offset)
  }

  private mutating func wrappedKey(at offset: Int) throws(FormatError) -> ClassWrappedKey? {
    guard let bytes = try data("the encryption key"), !bytes.isEmpty else { return nil }
    do throws(FormatError) {
      return try ClassWrappedKey(parsing: bytes)
    } catch {
      throw malformed("an encryption key has \(bytes.count) bytes", at: offset)
    }
  }

  private mutating func data(_ what: String) throws(FormatError) -> [UInt8]? {
    let count = Int(try number(what, 2))
    return count == 0xFFFF ? nil : try cursor.takeBytes(count, what)
  }

  /// Reads a name. Its length precedes it, so a name that is not UTF-8 does not affect the fields after it.
  private mutating func name(_ what: String) throws(FormatError) -> DecodedName? {
    try data(what).map { DecodedName($0) }
  }

  private mutating func number(_ what: String, _ count: Int) throws(FormatError) -> UInt64 {
    cursor.bytes(in: try cursor.take(count, what)).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func signedWord(_ what: String) throws(FormatError) -> Int64 {
    Int64(Int32(truncatingIfNeeded: try number(what, 4)))
  }

  private func malformed(_ reason: String, at offset: Int) -> FormatError {
    FormatError(.oldManifest, .malformed, reason, offset: offset)
  }
}
