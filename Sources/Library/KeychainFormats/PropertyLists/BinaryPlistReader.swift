import Basics

/// Reads the objects of a binary property list one at a time, by index. The bytes must outlive the reader.
///
/// References are not followed: the object of a container has references, and the object of data or a string has a range.
/// All numbers are big-endian.
///
/// ```
/// file      "bplist00", objects, offset table (the offset of each object), trailer
/// object    marker (1 byte: the type in the upper half, the size in the lower one), contents
/// type      0 null and booleans, 1 integer, 2 real, 3 date, 4 data, 5 ASCII string, 6 UTF-16 string,
///           8 UID (in keyed archives), A array, C set, D dictionary
/// trailer   6 unused bytes, width of an offset (1 byte), width of a reference (1),
///           number of objects (8), index of the root object (8), offset of the offset table (8)
/// ```
struct BinaryPlistReader {
  /// Consecutive references in the file. A reference is the index of an object.
  struct References {
    fileprivate let offset: Int
    let count: Int
  }

  enum Object {
    case null
    case boolean(Bool)
    case integer(Int64)
    case unsignedInteger(UInt64)
    case real(Double)
    case date(Double)
    case data(Range<Int>)
    case asciiString(Range<Int>)
    case utf16String(Range<Int>)
    case uid(UInt64)
    case array(References)
    case set(References)
    case dictionary(keys: References, values: References)
  }

  let bytes: PropertyListBytes
  let objectCount: Int
  let rootIndex: Int
  private let offsetWidth: Int
  private let referenceWidth: Int
  /// The offset at which objects end and the offset table starts.
  private let tableOffset: Int

  private static let headerByteCount = BinaryPlist.magic.count + BinaryPlist.version.count

  init(_ bytes: UnsafeRawBufferPointer, limits: BinaryPlist.Limits) throws(FormatError) {
    try self.init(PropertyListBytes(bytes), limits: limits)
  }

  init(_ bytes: PropertyListBytes, limits: BinaryPlist.Limits) throws(FormatError) {
    guard bytes.count <= limits.maximumByteCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(bytes.count) bytes; at most \(limits.maximumByteCount) are accepted")
    }
    try Self.checkHeader(of: bytes)
    let trailer = try Trailer(bytes)
    guard trailer.objectCount <= limits.maximumValueCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(trailer.objectCount) objects; at most \(limits.maximumValueCount) are accepted",
        offset: trailer.start + Trailer.objectCountOffset)
    }
    guard let rootIndex = Int(exactly: trailer.rootIndex), rootIndex < trailer.objectCount else {
      throw FormatError(
        .binaryPlist, .malformed, "its root is not among its objects",
        offset: trailer.start + Trailer.rootIndexOffset)
    }
    self.bytes = bytes
    self.rootIndex = rootIndex
    objectCount = trailer.objectCount
    offsetWidth = trailer.offsetWidth
    referenceWidth = trailer.referenceWidth
    tableOffset = trailer.tableOffset
  }

  private static func checkHeader(of bytes: PropertyListBytes) throws(FormatError) {
    guard bytes.begins(with: BinaryPlist.magic) else {
      throw FormatError(.binaryPlist, .malformed, "it does not begin with bplist", offset: 0)
    }
    guard bytes.count >= headerByteCount + BinaryPlist.trailerByteCount else {
      throw FormatError(.binaryPlist, .truncated, "\(bytes.count) bytes have no trailer", offset: bytes.count)
    }
    guard bytes.begins(with: BinaryPlist.version, at: BinaryPlist.magic.count) else {
      throw FormatError(
        .binaryPlist, .unsupportedVersion, "its version is not 00", offset: BinaryPlist.magic.count)
    }
  }

  /// The end of the file, whose fields have fixed positions.
  private struct Trailer {
    /// The offset of the trailer in the file.
    let start: Int
    let offsetWidth: Int
    let referenceWidth: Int
    let objectCount: Int
    /// The index of the root object, not checked.
    let rootIndex: UInt64
    let tableOffset: Int

    // The offsets of the fields in the trailer.
    static let offsetWidthOffset = 6
    static let referenceWidthOffset = 7
    static let objectCountOffset = 8
    static let rootIndexOffset = 16
    static let tableOffsetOffset = 24

    init(_ bytes: PropertyListBytes) throws(FormatError) {
      let start = bytes.count - BinaryPlist.trailerByteCount
      func malformed(_ reason: String, at offset: Int) -> FormatError {
        FormatError(.binaryPlist, .malformed, reason, offset: start + offset)
      }
      func width(at offset: Int) throws(FormatError) -> Int {
        let width = Int(bytes[start + offset])
        guard (1...8).contains(width) else { throw malformed("a width that is not 1 to 8 bytes", at: offset) }
        return width
      }
      let offsetWidth = try width(at: Self.offsetWidthOffset)
      let referenceWidth = try width(at: Self.referenceWidthOffset)
      guard let tableOffset = Int(exactly: bytes.number(at: start + Self.tableOffsetOffset, width: 8)),
        tableOffset > headerByteCount, tableOffset < start
      else { throw malformed("its offset table is out of bounds", at: Self.tableOffsetOffset) }
      guard let objectCount = Int(exactly: bytes.number(at: start + Self.objectCountOffset, width: 8)),
        objectCount > 0, objectCount <= (start - tableOffset) / offsetWidth
      else { throw malformed("its offset table does not fit its object count", at: Self.objectCountOffset) }
      self.start = start
      self.offsetWidth = offsetWidth
      self.referenceWidth = referenceWidth
      self.objectCount = objectCount
      self.tableOffset = tableOffset
      rootIndex = bytes.number(at: start + Self.rootIndexOffset, width: 8)
    }
  }

  /// Returns the index of the object that the reference at `position` refers to. `position` must be less than the number
  /// of references.
  func index(_ position: Int, of references: References) throws(FormatError) -> Int {
    let offset = references.offset + position * referenceWidth
    guard let index = Int(exactly: bytes.number(at: offset, width: referenceWidth)), index < objectCount
    else {
      throw FormatError(.binaryPlist, .malformed, "a reference to an object that does not exist", offset: offset)
    }
    return index
  }

  /// Returns the offset of an object. `index` must be less than `objectCount`.
  func offset(ofObject index: Int) throws(FormatError) -> Int {
    let entryOffset = tableOffset + index * offsetWidth
    guard let offset = Int(exactly: bytes.number(at: entryOffset, width: offsetWidth)),
      offset >= Self.headerByteCount, offset < tableOffset
    else {
      throw FormatError(.binaryPlist, .malformed, "an object's offset is out of bounds", offset: entryOffset)
    }
    return offset
  }

  /// Returns an object. `index` must be less than `objectCount`.
  func object(at index: Int) throws(FormatError) -> Object {
    let start = try offset(ofObject: index)
    let marker = bytes[start]
    let size = marker & 0x0F
    switch marker >> 4 {
    case 0x0: return try nullOrBoolean(marker, at: start)
    case 0x1: return try integer(size, at: start)
    case 0x2: return .real(try real(size, at: start))
    case 0x3:
      guard size == 3 else { throw malformed("a date that is not 8 bytes", start) }
      return .date(Double(bitPattern: try number(at: start + 1, width: 8, of: start)))
    case 0x4: return .data(try contents(size, width: 1, at: start))
    case 0x5: return .asciiString(try contents(size, width: 1, at: start))
    case 0x6: return .utf16String(try contents(size, width: 2, at: start))
    case 0x8:
      guard size < 8 else { throw malformed("a reference of \(size + 1) bytes", start) }
      return .uid(try number(at: start + 1, width: Int(size) + 1, of: start))
    case 0xA: return .array(try references(size, at: start))
    case 0xC: return .set(try references(size, at: start))
    case 0xD:
      // The references to all keys come before the references to the values.
      let range = try contents(size, width: 2 * referenceWidth, at: start)
      let count = range.count / (2 * referenceWidth)
      return .dictionary(
        keys: References(offset: range.lowerBound, count: count),
        values: References(offset: range.lowerBound + count * referenceWidth, count: count))
    default: throw malformed("the marker 0x\(String(marker, radix: 16))", start)
    }
  }

  /// Returns the string of an object, or `nil` if the object is not a string.
  ///
  /// - Throws: `.malformed` for a byte above 7F in an ASCII string, or an unpaired surrogate.
  package func string(_ object: Object) throws(FormatError) -> String? {
    switch object {
    case .asciiString(let range):
      return try bytes.withBytes(range) { (contents) throws(FormatError) in
        guard contents.allSatisfy({ $0 < 0x80 }) else {
          throw malformed("an ASCII string with non-ASCII bytes", range.lowerBound)
        }
        return String(decoding: contents, as: UTF8.self)
      }
    case .utf16String(let range):
      guard let string = String(validating: utf16Units(in: range), as: UTF16.self) else {
        throw malformed("a string with half a surrogate pair", range.lowerBound)
      }
      return string
    default:
      return nil
    }
  }

  /// Returns the code units of a UTF-16 string.
  func utf16Units(in range: Range<Int>) -> [UInt16] {
    stride(from: range.lowerBound, to: range.upperBound, by: 2).map { offset in
      UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
    }
  }

  func malformed(_ reason: String, _ offset: Int) -> FormatError {
    FormatError(.binaryPlist, .malformed, reason, offset: offset)
  }

  private func nullOrBoolean(_ marker: UInt8, at start: Int) throws(FormatError) -> Object {
    switch marker {
    case 0x00: return .null
    case 0x08: return .boolean(false)
    case 0x09: return .boolean(true)
    default: throw malformed("the marker 0x\(String(marker, radix: 16))", start)
    }
  }

  /// Returns an integer. Its number of bytes is 2 to the power of `size`. Integers of up to 4 bytes are unsigned.
  private func integer(_ size: UInt8, at start: Int) throws(FormatError) -> Object {
    switch size {
    case 0...2: return .integer(Int64(try number(at: start + 1, width: 1 << Int(size), of: start)))
    case 3: return .integer(Int64(bitPattern: try number(at: start + 1, width: 8, of: start)))
    case 4:
      let high = try number(at: start + 1, width: 8, of: start)
      let low = try number(at: start + 9, width: 8, of: start)
      // The high half may only extend the low one: with zeros, or with the sign of a negative number.
      if high == 0 { return Int64(exactly: low).map(Object.integer) ?? .unsignedInteger(low) }
      guard high == .max, Int64(bitPattern: low) < 0 else { throw malformed("an integer of more than 64 bits", start) }
      return .integer(Int64(bitPattern: low))
    default: throw malformed("an integer of more than 16 bytes", start)
    }
  }

  /// Returns a floating-point number. Its number of bytes is 2 to the power of `size`.
  private func real(_ size: UInt8, at start: Int) throws(FormatError) -> Double {
    switch size {
    case 2:
      let pattern = UInt32(truncatingIfNeeded: try number(at: start + 1, width: 4, of: start))
      return Double(Float(bitPattern: pattern))
    case 3: return Double(bitPattern: try number(at: start + 1, width: 8, of: start))
    default: throw malformed("a real number that is not 4 or 8 bytes", start)
    }
  }

  private func references(_ size: UInt8, at start: Int) throws(FormatError) -> References {
    let range = try contents(size, width: referenceWidth, at: start)
    return References(offset: range.lowerBound, count: range.count / referenceWidth)
  }

  /// Returns the range of the contents: `size` units of `width` bytes each. If `size` is 15, an integer object with the
  /// number of units follows the marker.
  private func contents(_ size: UInt8, width: Int, at start: Int) throws(FormatError) -> Range<Int> {
    var offset = start + 1
    var count = Int(size)
    if size == 0xF {
      guard offset < tableOffset, bytes[offset] >> 4 == 1, bytes[offset] & 0xF <= 3 else {
        throw malformed("a count that is not an integer", start)
      }
      let countWidth = 1 << Int(bytes[offset] & 0xF)
      guard let value = Int(exactly: try number(at: offset + 1, width: countWidth, of: start)) else {
        throw malformed("a count that is too large", start)
      }
      count = value
      offset += 1 + countWidth
    }
    guard count <= (tableOffset - offset) / width else {
      throw FormatError(.binaryPlist, .truncated, "an object that runs past the end of the objects", offset: start)
    }
    return offset..<(offset + count * width)
  }

  /// Returns a number in the object that begins at `start`.
  private func number(at offset: Int, width: Int, of start: Int) throws(FormatError) -> UInt64 {
    guard width <= tableOffset - offset else {
      throw FormatError(.binaryPlist, .truncated, "an object that runs past the end of the objects", offset: start)
    }
    return bytes.number(at: offset, width: width)
  }
}

/// Malformed strings of a binary property list, preserved for writing it again. A placeholder represents each of them.
struct MalformedStrings {
  /// A string object as stored in the list.
  struct StoredString {
    let isUTF16: Bool
    let bytes: [UInt8]
  }

  private(set) var stored: [String: StoredString] = [:]
  /// The start of each placeholder. It is random, so that no list can contain a string that equals a placeholder.
  private let prefix = "malformed text \(UInt64.random(in: .min ... .max)) \(UInt64.random(in: .min ... .max)) "

  /// Adds a string object.
  ///
  /// - Returns: The string's placeholder, or `nil` if the object is not a string.
  mutating func add(_ object: BinaryPlistReader.Object, of document: BinaryPlistReader) -> String? {
    let string: StoredString
    switch object {
    case .asciiString(let range):
      string = StoredString(isUTF16: false, bytes: document.bytes.withBytes(range) { Array($0) })
    case .utf16String(let range):
      string = StoredString(isUTF16: true, bytes: document.bytes.withBytes(range) { Array($0) })
    default: return nil
    }
    let placeholder = prefix + String(stored.count)
    stored[placeholder] = string
    return placeholder
  }
}
