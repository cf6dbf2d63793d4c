import Basics

/// Reads the fields of a protocol buffer message, one at a time and never past its end.
///
/// A field consists of a key and a value. The key is a number with variable length (varint): the field number, and the
/// wire type in the lowest three bits.
///
/// Groups are rejected, and so are numbers that are not in their shortest form, because no known writer produces them.
/// Source: Protocol Buffers, "Encoding".
struct ProtobufReader {
  /// A field's number, the offset of its key, and its value.
  struct Field {
    let number: UInt64
    let offset: Int
    let value: Value
    /// The format of the message, for errors.
    fileprivate let format: FormatError.Format
  }

  enum Value {
    case varint(UInt64)
    case bytes(ByteCursor)
    /// Four or eight bytes. No known message has such a field, so the bytes are skipped.
    case fixed
  }

  /// The maximum number of fields. No known message has so many, even with unknown fields.
  static let maximumFieldCount = 256
  private static let maximumFieldNumber: UInt64 = (1 << 29) - 1

  private var cursor: ByteCursor
  private var fieldCount = 0

  init(_ message: ByteCursor) { cursor = message }

  /// Returns the next field, or `nil` at the message's end.
  mutating func next() throws(FormatError) -> Field? {
    guard !cursor.isAtEnd else { return nil }
    let offset = cursor.offset
    fieldCount += 1
    guard fieldCount <= Self.maximumFieldCount else {
      throw FormatError(
        cursor.format, .overLimit, "a message has more than \(Self.maximumFieldCount) fields", offset: offset)
    }
    let key = try takeVarint()
    let (number, wireType) = (key >> 3, key & 7)
    guard (1...Self.maximumFieldNumber).contains(number) else { throw malformed("a field has no valid number", offset) }
    let format = cursor.format
    func field(_ value: Value) -> Field { Field(number: number, offset: offset, value: value, format: format) }
    switch wireType {
    case WireType.varint: return field(.varint(try takeVarint()))
    case WireType.fixed64:
      _ = try cursor.take(8, "a field")
      return field(.fixed)
    case WireType.bytes:
      let length = try takeVarint()
      guard let count = Int(exactly: length), count <= cursor.remaining else {
        throw FormatError(cursor.format, .truncated, "a field of \(length) bytes does not fit", offset: offset)
      }
      return field(.bytes(try cursor.takeCursor(count, "a field")))
    case WireType.fixed32:
      _ = try cursor.take(4, "a field")
      return field(.fixed)
    default: throw malformed("a field has wire type \(wireType)", offset)
    }
  }

  /// Reads a number: 7 bits in each byte, the lowest first, in at most 10 bytes.
  private mutating func takeVarint() throws(FormatError) -> UInt64 {
    let offset = cursor.offset
    var (value, shift) = (UInt64(0), UInt64(0))
    while true {
      let byte = try cursor.takeByte("a number")
      guard shift < 63 || byte <= 1 else { throw malformed("a number has more than 64 bits", offset) }
      value |= UInt64(byte & 0x7F) << shift
      guard byte >= 0x80 else {
        guard byte != 0 || shift == 0 else { throw malformed("a number is not in its shortest form", offset) }
        return value
      }
      shift += 7
    }
  }

  private func malformed(_ reason: String, _ offset: Int) -> FormatError {
    FormatError(cursor.format, .malformed, reason, offset: offset)
  }
}

extension ProtobufReader.Field {
  /// Returns the contents of a field that is data, text or a message.
  func contents(_ fieldName: String) throws(FormatError) -> ByteCursor {
    guard case .bytes(let cursor) = value else {
      throw FormatError(format, .malformed, "\(fieldName) has the wrong wire type", offset: offset)
    }
    return cursor
  }

  /// Returns the value of an `int32` field; a negative number is stored with 64 bits.
  func number(_ fieldName: String) throws(FormatError) -> Int32 {
    guard case .varint(let bits) = value, let number = Int32(exactly: Int64(bitPattern: bits)) else {
      throw FormatError(format, .malformed, "\(fieldName) is not a number of 32 bits", offset: offset)
    }
    return number
  }

  /// Returns the value of a text field.
  func text(_ fieldName: String) throws(FormatError) -> String {
    guard let text = String(utf8: try contents(fieldName).remainingBytes) else {
      throw FormatError(format, .malformed, "\(fieldName) is not UTF-8", offset: offset)
    }
    return text
  }

  /// Returns a copy of a field's bytes.
  func bytes(_ fieldName: String) throws(FormatError) -> [UInt8] { Array(try contents(fieldName).remainingBytes) }
}

private enum WireType {
  static let varint: UInt64 = 0
  static let fixed64: UInt64 = 1
  static let bytes: UInt64 = 2
  static let fixed32: UInt64 = 5
}

/// Writes the fields of a protocol buffer message.
struct ProtobufWriter {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ number: UInt64, varint value: UInt64) {
    appendVarint(number << 3 | WireType.varint)
    appendVarint(value)
  }

  mutating func append(_ number: UInt64, _ contents: [UInt8]) {
    appendVarint(number << 3 | WireType.bytes)
    appendVarint(UInt64(contents.count))
    bytes += contents
  }

  private mutating func appendVarint(_ value: UInt64) {
    var remaining = value
    while remaining >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: remaining) | 0x80)
      remaining >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: remaining))
  }
}
