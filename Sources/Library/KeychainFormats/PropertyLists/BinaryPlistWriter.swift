import Basics

/// A string that is compared by its bytes; `String` also treats composed and decomposed letters as equal.
private struct BytewiseString: Hashable {
  let string: String

  static func == (left: Self, right: Self) -> Bool { left.string.hasSameBytes(as: right.string) }
  func hash(into hasher: inout Hasher) { string.hashBytes(into: &hasher) }
}

/// Writes a binary property list (see `BinaryPlistReader` for the format) in two passes.
///
/// The first pass counts objects and the bytes of data. The number of objects determines the size of references, and
/// data makes up most of a large list. The second pass writes each container after its contents. Written bytes never
/// change, so they can be output before the list is complete.
struct BinaryPlistWriter {
  /// The bytes that were written but not output yet.
  private var bytes: [UInt8] = BinaryPlist.magic + BinaryPlist.version
  private var flushedByteCount = 0
  private var offsets: [Int] = []
  /// The index of each string's object; negative until the string is written.
  private var stringIndexes: [BytewiseString: Int] = [:]
  private var referenceWidth = 1
  private var dataByteCount = 0
  /// The malformed strings to write, by their placeholders.
  private let malformedStrings: [String: MalformedStrings.StoredString]

  init(_ malformedStrings: MalformedStrings? = nil) { self.malformedStrings = malformedStrings?.stored ?? [:] }

  mutating func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    let objectCount = try count(value, depth: 0)
    prepare(for: objectCount)
    // An object has a few bytes itself, a reference and an offset in the table. Reserving too little would make the
    // array grow, and an array is in memory twice while it grows.
    let referenceAndOffsetByteCount = referenceWidth + Self.width(of: UInt64(dataByteCount))
    bytes.reserveCapacity(dataByteCount + objectCount * (8 + referenceAndOffsetByteCount))
    finish(root: try write(value), atLeast: .max) { _ in }
    return bytes
  }

  /// Prepares for writing objects one by one.
  ///
  /// - Parameter count: The number of objects; a string that is written several times counts once.
  mutating func prepare(for count: Int) {
    referenceWidth = Self.width(of: UInt64(count - 1))
    offsets.reserveCapacity(count)
  }

  /// Writes the offset table and the trailer after the objects, and outputs bytes like `flush(atLeast:to:)`.
  mutating func finish<Failure: Error>(
    root: Int, atLeast count: Int, to sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let tableOffset = flushedByteCount + bytes.count
    let offsetWidth = Self.width(of: UInt64(tableOffset))
    for offset in offsets {
      append(UInt64(offset), width: offsetWidth)
      try flush(atLeast: count, to: sink)
    }
    // The trailer begins with six unused bytes.
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), UInt8(referenceWidth)]
    for number in [offsets.count, root, tableOffset] { append(UInt64(number), width: 8) }
  }

  /// Outputs the bytes that were written since the last call, if there are at least `count`.
  mutating func flush<Failure: Error>(
    atLeast count: Int = 0, to sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard bytes.count >= count else { return }
    try bytes.withRawBytes(sink)
    flushedByteCount += bytes.count
    bytes.removeAll(keepingCapacity: true)
  }

  /// Counts the objects of a string.
  ///
  /// - Returns: 1, or 0 for a string that was counted before, because equal strings are one object.
  mutating func count(_ string: String) -> Int {
    stringIndexes.updateValue(-1, forKey: BytewiseString(string: string)) == nil ? 1 : 0
  }

  private mutating func count(_ value: PropertyValue, depth: Int) throws(FormatError) -> Int {
    func checkDepth() throws(FormatError) {
      let limit = BinaryPlist.Limits.standard.maximumDepth
      guard depth < limit else { throw FormatError(.binaryPlist, .overLimit, "more than \(limit) levels") }
    }
    var total = 1
    switch value {
    case .string(let string): return count(string)
    case .array(let values), .set(let values):
      try checkDepth()
      for value in values { total += try count(value, depth: depth + 1) }
    case .dictionary(let dictionary):
      try checkDepth()
      for entry in dictionary.entries {
        total += try count(entry.key, depth: depth + 1)
        total += try count(entry.value, depth: depth + 1)
      }
    case .data(let data): dataByteCount += data.count
    case .null, .boolean, .integer, .unsignedInteger, .real, .date, .uid: break
    }
    return total
  }

  /// Writes a value with its contents, and returns the index of its object.
  private mutating func write(_ value: PropertyValue) throws(FormatError) -> Int {
    switch value {
    case .null:
      throw FormatError(.binaryPlist, .unencodable, "a null")
    case .boolean(let value):
      return appendObject(marker: value ? 0x09 : 0x08)
    case .integer(let value):
      return appendObject { $0.appendInteger(value) }
    case .unsignedInteger(let value):
      guard let small = Int64(exactly: value) else {
        return appendObject { writer in
          writer.bytes.append(0x14)
          writer.append(0, width: 8)
          writer.append(value, width: 8)
        }
      }
      return appendObject { $0.appendInteger(small) }
    case .real(let value):
      return appendObject(marker: 0x23, bitPattern: value.bitPattern)
    case .date(let date):
      return appendObject(marker: 0x33, bitPattern: date.secondsSinceReferenceDate.bitPattern)
    case .data(let data):
      return write(data)
    case .string(let string):
      return write(string)
    case .uid(let value):
      let width = Self.width(of: value)
      return appendObject { writer in
        writer.bytes.append(0x80 | UInt8(width - 1))
        writer.append(value, width: width)
      }
    case .array(let values):
      return try write(values, marker: 0xA0)
    case .set(let values):
      return try write(values, marker: 0xC0)
    case .dictionary(let dictionary):
      return try write(dictionary)
    }
  }

  mutating func write(_ data: [UInt8]) -> Int {
    appendObject { writer in
      writer.appendMarker(0x40, count: data.count)
      writer.bytes.append(contentsOf: data)
    }
  }

  mutating func write(_ string: String) -> Int {
    if let index = stringIndexes[BytewiseString(string: string)], index >= 0 { return index }
    let stored = malformedStrings.isEmpty ? nil : malformedStrings[string]
    let index = appendObject { writer in
      if let stored {
        writer.appendMarker(stored.isUTF16 ? 0x60 : 0x50, count: stored.bytes.count / (stored.isUTF16 ? 2 : 1))
        writer.bytes.append(contentsOf: stored.bytes)
      } else if string.utf8.allSatisfy({ $0 < 0x80 }) {
        writer.appendMarker(0x50, count: string.utf8.count)
        writer.bytes.append(contentsOf: string.utf8)
      } else {
        writer.appendMarker(0x60, count: string.utf16.count)
        for unit in string.utf16 { writer.append(UInt64(unit), width: 2) }
      }
    }
    stringIndexes[BytewiseString(string: string)] = index
    return index
  }

  private mutating func write(_ values: [PropertyValue], marker: UInt8) throws(FormatError) -> Int {
    var indices: [Int] = []
    indices.reserveCapacity(values.count)
    for value in values { indices.append(try write(value)) }
    return writeArray(of: indices, marker: marker)
  }

  /// Writes an array of objects that were written already.
  mutating func writeArray(of indices: [Int], marker: UInt8 = 0xA0) -> Int {
    appendObject { writer in
      writer.appendMarker(marker, count: indices.count)
      writer.appendReferences(indices)
    }
  }

  private mutating func write(_ dictionary: PropertyDictionary) throws(FormatError) -> Int {
    var keyIndices: [Int] = []
    var valueIndices: [Int] = []
    for entry in dictionary.entries {
      keyIndices.append(try write(entry.key))
      valueIndices.append(try write(entry.value))
    }
    return writeDictionary(keys: keyIndices, values: valueIndices)
  }

  /// Writes a dictionary whose keys and values were written already.
  ///
  /// - Parameters:
  ///   - keyIndices: The indices of the keys' objects.
  ///   - valueIndices: The indices of the values' objects, in the order of the keys.
  /// - Returns: The index of the dictionary's object.
  mutating func writeDictionary(keys keyIndices: [Int], values valueIndices: [Int]) -> Int {
    appendObject { writer in
      writer.appendMarker(0xD0, count: keyIndices.count)
      writer.appendReferences(keyIndices)
      writer.appendReferences(valueIndices)
    }
  }

  /// Records the offset of a new object, and writes the object.
  ///
  /// - Returns: The object's index.
  private mutating func appendObject(_ body: (inout BinaryPlistWriter) -> Void) -> Int {
    offsets.append(flushedByteCount + bytes.count)
    body(&self)
    return offsets.count - 1
  }

  /// Writes a new object that consists of a marker and optionally 8 bytes.
  ///
  /// - Returns: The object's index.
  private mutating func appendObject(marker: UInt8, bitPattern: UInt64? = nil) -> Int {
    appendObject { writer in
      writer.bytes.append(marker)
      if let bitPattern { writer.append(bitPattern, width: 8) }
    }
  }

  private mutating func appendMarker(_ marker: UInt8, count: Int) {
    if count < 15 {
      bytes.append(marker | UInt8(count))
    } else {
      bytes.append(marker | 0xF)
      appendInteger(Int64(count))
    }
  }

  /// Appends an integer. Non-negative numbers take 1 to 8 bytes, negative ones 8.
  private mutating func appendInteger(_ value: Int64) {
    let width = value < 0 ? 8 : Self.width(of: UInt64(value))
    bytes.append(0x10 | UInt8(width.trailingZeroBitCount))
    append(UInt64(bitPattern: value), width: width)
  }

  private mutating func appendReferences(_ indices: [Int]) {
    for index in indices { append(UInt64(index), width: referenceWidth) }
  }

  private mutating func append(_ value: UInt64, width: Int) {
    for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
    }
  }

  /// Returns the number of bytes for a number: 1, 2, 4 or 8.
  private static func width(of value: UInt64) -> Int {
    switch value {
    case ...0xFF: 1
    case ...0xFFFF: 2
    case ...0xFFFF_FFFF: 4
    default: 8
    }
  }
}
