import Basics

extension Keybag {
  /// The four bytes that say what a record holds.
  public struct Tag: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The four bytes as a big-endian number, so that any bytes can be kept.
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ text: StaticString) {
      rawValue = text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    }

    /// The version of the bag, in the header.
    public static let version = Tag("VERS")
    /// The type of the bag (`BagType`), in the header.
    public static let type = Tag("TYPE")
    /// An identifier of sixteen bytes: of the bag first, then of each class key, whose group it begins.
    public static let uuid = Tag("UUID")
    /// The wrapped key of the signature, forty bytes, in the header.
    public static let hmacKey = Tag("HMCK")
    /// What a class key is wrapped with (`WrapFlags`).
    public static let wrap = Tag("WRAP")
    /// The salt of the SHA-1 round, twenty bytes.
    public static let salt = Tag("SALT")
    /// The rounds of the SHA-1 derivation.
    public static let iterations = Tag("ITER")
    /// The mark of the second round, 1 where there is one.
    public static let dpwt = Tag("DPWT")
    /// The rounds of the SHA-256 derivation (iOS 10.2 and later).
    public static let dpic = Tag("DPIC")
    /// The salt of the SHA-256 round, twenty bytes.
    public static let dpsl = Tag("DPSL")
    /// The number of a class (`KeyClass`).
    public static let keyClass = Tag("CLAS")
    /// The kind of a class's key (`KeyType`).
    public static let keyType = Tag("KTYP")
    /// The wrapped class key, 40 or 32 bytes.
    public static let wrappedKey = Tag("WPKY")
    /// The public half of a Curve25519 class, 32 bytes.
    public static let publicKey = Tag("PBKY")
    /// The keybag inside a system bag's outer records.
    public static let data = Tag("DATA")
    /// The signature beside it.
    public static let signature = Tag("SIGN")

    /// The four letters, or the number in hexadecimal where they are not printable.
    public var description: String {
      let bytes = [UInt8](bigEndian: rawValue)
      guard bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else { return "0x" + String(rawValue, radix: 16) }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// One record: a tag, a big-endian length and as many bytes. Integers are four big-endian bytes.
  ///
  /// Printing one shows no bytes of its value, which may be a wrapped key.
  public struct Record: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// What the record holds.
    public let tag: Tag
    /// The record's bytes; big-endian where they are a number.
    public var value: [UInt8]

    /// Creates a record of any length, also one that its tag's field does not have: `Keybag.validate()` checks that.
    public init(_ tag: Tag, _ value: [UInt8]) {
      self.tag = tag
      self.value = value
    }

    init(_ tag: Tag, _ word: UInt32) { self.init(tag, [UInt8](bigEndian: word)) }

    var byteCount: Int { 8 + value.count }
    public var description: String { "\(tag) of \(value.count) bytes" }
    public var customMirror: Mirror { Mirror(self, children: ["tag": tag, "count": value.count]) }
  }

  /// Reads records to the end of the bytes.
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
            "it ends at byte \(Amounts.grouped(bytes.count)), but \(tag) should end at byte "
              + "\(Amounts.grouped(end)): its length is \(Amounts.bytes(length))", offset: cursor.offset)
        }
        records.append(Record(tag, try cursor.takeBytes(count, "\(tag)")))
      }
      return records
    }
  }

  static func serialized(_ records: some Sequence<Record>) -> [UInt8] {
    records.reduce(into: []) { bytes, record in
      bytes.append(bigEndian: record.tag.rawValue)
      bytes.append(bigEndian: UInt32(truncatingIfNeeded: record.value.count))
      bytes.append(contentsOf: record.value)
    }
  }
}

extension [Keybag.Record] {
  func value(of tag: Keybag.Tag) -> [UInt8]? { first { $0.tag == tag }?.value }

  func word(of tag: Keybag.Tag) -> UInt32? { value(of: tag)?.bigEndianWord }

  /// Replaces the first record's value in place, adds a record at the end where there is none, removes all with `nil`.
  mutating func set(_ tag: Keybag.Tag, to value: [UInt8]?) {
    guard let value else { return removeAll { $0.tag == tag } }
    if let index = firstIndex(where: { $0.tag == tag }) {
      self[index].value = value
    } else {
      append(Keybag.Record(tag, value))
    }
  }

  mutating func set(_ tag: Keybag.Tag, to word: UInt32?) { set(tag, to: word.map { [UInt8](bigEndian: $0) }) }
}
