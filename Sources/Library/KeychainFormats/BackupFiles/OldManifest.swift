import Basics

/// The list of files of a backup of iOS 4 to 9 (`Manifest.mbdb`).
///
/// Six bytes `mbdb 05 00`, then records to the end. Integers are big-endian; texts and data have a length of 16 bits in
/// front, of which 0xFFFF stands for none. A record: domain, path, link target, digest, encryption key, then forty bytes
/// of numbers, then pairs of a name and data.
///
/// Source: iphone-dataprotection, `backups/backup4.py`; backups of iOS 9, whose lists it describes to their end.
public struct OldManifest: Sendable {
  /// The list of a full device of 256 GB with a million files has some 200 MB.
  public static let maximumByteCount = 256 << 20
  static let header = Array("mbdb".utf8) + [5, 0]

  private let bytes: [UInt8]

  /// One file, directory or link.
  public struct Entry: Sendable, Hashable {
    /// `nil` if the record has none. Bytes that are not UTF-8 are spelled `%F5`.
    public var domain: String?
    /// The domain's bytes if they are not UTF-8.
    package var undecodedDomain: [UInt8]?
    /// Without extended attributes, which stand beside it.
    public var record: FileRecord
    /// The pairs of a name and data at the record's end, at most 255.
    public var extendedAttributes: [ExtendedAttribute]

    /// Creates an entry with names that are UTF-8.
    public init(domain: String?, record: FileRecord, extendedAttributes: [ExtendedAttribute]) {
      self.domain = domain
      self.record = record
      self.extendedAttributes = extendedAttributes
    }

    /// Whether any of its names is not UTF-8: the domain, the path, the link's target, an attribute's name.
    package var hasUndecodedNames: Bool {
      undecodedDomain != nil || record.hasUndecodedNames
        || extendedAttributes.contains { $0.undecodedName != nil }
    }

    /// One extended attribute of a file, `com.apple.…` for example.
    public struct ExtendedAttribute: Sendable, Hashable {
      /// The attribute's name; empty where the record has none. Bytes that are not UTF-8 are spelled `%F5`.
      public var name: String
      /// The name's bytes if they are not UTF-8.
      package var undecodedName: [UInt8]?
      /// The attribute's bytes as they are stored.
      public var value: [UInt8]

      /// Creates an attribute of a name and its bytes.
      public init(name: String, value: [UInt8]) {
        self.name = name
        self.value = value
      }
    }
  }

  /// Takes the bytes of a list; records are decoded when they are asked for.
  ///
  /// - Throws: `.malformed` for bytes that do not begin with the header, `.unsupportedVersion` for another version of it,
  ///   `.overLimit`. The records are read, and may fail, one by one.
  public init(_ bytes: [UInt8]) throws(FormatError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw FormatError(
        .oldManifest, .overLimit, "it has \(bytes.count) bytes; the limit is \(Self.maximumByteCount)")
    }
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

  /// Reads the records in order.
  public func entries() -> Entries { entries(from: Self.header.count) }

  /// The same from a place on that an earlier reading gave as its offset.
  public func entries(from offset: Int) -> Entries { Entries(bytes: bytes, offset: max(offset, Self.header.count)) }

  /// The records one after the other, each decoded when it is asked for: a list of a million files is never in memory
  /// whole.
  public struct Entries: Sendable {
    fileprivate let bytes: [UInt8]
    /// Where the next record begins, in bytes from the start of the list.
    public fileprivate(set) var offset: Int

    /// The next record; `nil` at the end.
    ///
    /// - Throws: `.truncated` where a record runs past the end, `.malformed` that names the field, with the offset.
    public mutating func next() throws(FormatError) -> Entry? {
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

  mutating func entry(at start: Int) throws(FormatError) -> (OldManifest.Entry, end: Int) {
    _ = try cursor.take(start, "what comes before")
    let domain = try name("the domain")
    let pathOffset = cursor.offset
    guard let path = try name("the path") else { throw malformed("a record has no path", at: pathOffset) }
    let target = try name("the link's target")
    let digestOffset = cursor.offset
    let digest = try data("the digest")
    // Some tools write an empty digest or key where there is none.
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
    var attributes: [OldManifest.Entry.ExtendedAttribute] = []
    for _ in 0..<attributeCount {
      let name = try name("an attribute's name")
      var attribute = OldManifest.Entry.ExtendedAttribute(
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
    var entry = OldManifest.Entry(domain: domain?.text, record: record, extendedAttributes: attributes)
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

  /// A name's length stands in front of it, so that nothing behind one that is not UTF-8 is in doubt.
  private mutating func name(_ what: String) throws(FormatError) -> DecodedName? {
    try data(what).map { DecodedName($0) }
  }

  private mutating func number(_ what: String, _ count: Int) throws(FormatError) -> UInt64 {
    cursor.lend(try cursor.take(count, what)).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func signedWord(_ what: String) throws(FormatError) -> Int64 {
    Int64(Int32(truncatingIfNeeded: try number(what, 4)))
  }

  private func malformed(_ reason: String, at offset: Int) -> FormatError {
    FormatError(.oldManifest, .malformed, reason, offset: offset)
  }
}
