import Basics

extension Keybag {
  /// The four-byte name of a record.
  package struct Tag: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The four bytes as a big-endian number, so that any bytes can be represented.
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ text: StaticString) {
      rawValue = text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    }

    /// The version of the keybag, in the header.
    package static let version = Tag("VERS")
    /// The type of the keybag (`BagType`), in the header.
    package static let type = Tag("TYPE")
    /// A UUID of 16 bytes. The first one is the keybag's; every later one is a class key's first record.
    package static let uuid = Tag("UUID")
    /// The wrapped key of the signature, 40 bytes, in the header.
    package static let hmacKey = Tag("HMCK")
    /// The keys that wrap a class key (`WrapFlags`).
    package static let wrap = Tag("WRAP")
    /// The salt of the SHA-1 derivation, 20 bytes.
    package static let salt = Tag("SALT")
    /// The iterations of the SHA-1 derivation.
    package static let iterations = Tag("ITER")
    /// The flag for the SHA-256 derivation, 1 if it is used.
    package static let dpwt = Tag("DPWT")
    /// The iterations of the SHA-256 derivation (iOS 10.2 and later).
    package static let dpic = Tag("DPIC")
    /// The salt of the SHA-256 derivation, 20 bytes.
    package static let dpsl = Tag("DPSL")
    /// The number of a class (`KeyClass`).
    package static let keyClass = Tag("CLAS")
    /// The type of a class key (`KeyType`).
    package static let keyType = Tag("KTYP")
    /// The wrapped class key, 40 or 32 bytes.
    package static let wrappedKey = Tag("WPKY")
    /// The public key of a Curve25519 class, 32 bytes.
    package static let publicKey = Tag("PBKY")
    /// The keybag inside a device keybag's outer records.
    package static let data = Tag("DATA")
    /// The signature of a device keybag.
    package static let signature = Tag("SIGN")

    /// The four letters, or the number in hexadecimal if they are not printable.
    package var description: String {
      let bytes = bigEndianBytes(rawValue)
      guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else { return "0x" + String(rawValue, radix: 16) }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// A record: a tag, a big-endian length, and the value. Integers are four big-endian bytes.
  ///
  /// The description contains no bytes of the value, which may be a wrapped key.
  package struct Record: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The name of the record.
    package let tag: Tag
    /// The bytes of the value; a number is big-endian.
    package var value: [UInt8]

    /// Creates a record of any length, even a wrong one: `Keybag.validate()` checks lengths.
    package init(_ tag: Tag, _ value: [UInt8]) {
      self.tag = tag
      self.value = value
    }

    init(_ tag: Tag, _ word: UInt32) { self.init(tag, bigEndianBytes(word)) }

    /// The number of bytes of the tag, the length and the value.
    var byteCount: Int { 4 + 4 + value.count }
    package var description: String { "\(tag) of \(value.count) bytes" }
    package var customMirror: Mirror { Mirror(self, children: ["tag": tag, "count": value.count]) }
  }

  /// Reads all records.
  ///
  /// - Throws: `.overLimit` for too many bytes; `.truncated` if there are none or a record is incomplete.
  static func records(of bytes: [UInt8]) throws(FormatError) -> [Record] {
    guard bytes.count <= maximumByteCount else {
      throw FormatError(.keybag, .overLimit, "\(bytes.count) bytes; at most \(maximumByteCount) are accepted")
    }
    guard !bytes.isEmpty else { throw FormatError(.keybag, .truncated, "it is empty", offset: 0) }
    return try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> [Record] in
      var cursor = ByteCursor(buffer, format: .keybag)
      var records: [Record] = []
      while !cursor.isAtEnd {
        let tag = Tag(rawValue: try cursor.takeBigEndianWord("a record's tag"))
        let length = try cursor.takeBigEndianWord("the length of \(tag)")
        guard let count = Int(exactly: length), count <= cursor.remaining else {
          let end = Int64(cursor.offset) + Int64(length)
          throw FormatError(
            .keybag, .truncated,
            "it ends at byte \(HumanReadable.grouped(bytes.count)), but \(tag) should end at byte "
              + "\(HumanReadable.grouped(end)): its length is \(HumanReadable.bytes(length))", offset: cursor.offset)
        }
        records.append(Record(tag, try cursor.takeBytes(count, "\(tag)")))
      }
      return records
    }
  }

  static func serialized(_ records: some Sequence<Record>) -> [UInt8] {
    records.reduce(into: []) { bytes, record in
      bytes += bigEndianBytes(record.tag.rawValue)
      bytes += bigEndianBytes(UInt32(truncatingIfNeeded: record.value.count))
      bytes.append(contentsOf: record.value)
    }
  }
}

extension [Keybag.Record] {
  func value(of tag: Keybag.Tag) -> [UInt8]? { first { $0.tag == tag }?.value }

  func word(of tag: Keybag.Tag) -> UInt32? { value(of: tag)?.bigEndianWord }

  /// Replaces the value of the first record with the tag, or appends a record; `nil` removes all records with the tag.
  mutating func set(_ tag: Keybag.Tag, to value: [UInt8]?) {
    guard let value else { return removeAll { $0.tag == tag } }
    if let index = firstIndex(where: { $0.tag == tag }) {
      self[index].value = value
    } else {
      append(Keybag.Record(tag, value))
    }
  }

  mutating func set(_ tag: Keybag.Tag, to word: UInt32?) { set(tag, to: word.map { bigEndianBytes($0) }) }
}
