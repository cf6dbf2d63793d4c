import Basics

/// Reads the objects of a binary property list one at a time, by index. The bytes must outlive the reader.
///
/// References are not followed: containers give references, and data and texts give their ranges.
struct BinaryPlistReader {
  /// Consecutive references in the file.
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
    guard bytes.begins(with: BinaryPlist.magic) else {
      throw FormatError(.binaryPlist, .malformed, "it does not begin with bplist", offset: 0)
    }
    guard bytes.count >= Self.headerByteCount + BinaryPlist.trailerByteCount else {
      throw FormatError(.binaryPlist, .truncated, "\(bytes.count) bytes have no trailer", offset: bytes.count)
    }
    guard bytes.begins(with: BinaryPlist.version, at: BinaryPlist.magic.count) else {
      throw FormatError(
        .binaryPlist, .unsupportedVersion, "its version is not 00", offset: BinaryPlist.magic.count)
    }
    let trailer = bytes.count - BinaryPlist.trailerByteCount
    let widths = (offset: Int(bytes[trailer + 6]), reference: Int(bytes[trailer + 7]))
    guard (1...8).contains(widths.offset), (1...8).contains(widths.reference) else {
      let faulty = (1...8).contains(widths.offset) ? trailer + 7 : trailer + 6
      throw FormatError(.binaryPlist, .malformed, "a width that is not 1 to 8 bytes", offset: faulty)
    }
    self.bytes = bytes
    offsetWidth = widths.offset
    referenceWidth = widths.reference
    let tableValue = bytes.number(at: trailer + 24, width: 8)
    guard let tableOffset = Int(exactly: tableValue), tableOffset > Self.headerByteCount, tableOffset < trailer else {
      throw FormatError(.binaryPlist, .malformed, "its offset table is out of bounds", offset: trailer + 24)
    }
    self.tableOffset = tableOffset
    let countValue = bytes.number(at: trailer + 8, width: 8)
    guard let count = Int(exactly: countValue), count > 0, count <= (trailer - tableOffset) / widths.offset else {
      throw FormatError(.binaryPlist, .malformed, "its offset table does not fit its object count", offset: trailer + 8)
    }
    guard count <= limits.maximumValueCount else {
      throw FormatError(
        .binaryPlist, .overLimit, "\(count) objects; at most \(limits.maximumValueCount) are accepted",
        offset: trailer + 8)
    }
    objectCount = count
    let rootValue = bytes.number(at: trailer + 16, width: 8)
    guard let root = Int(exactly: rootValue), root < count else {
      throw FormatError(.binaryPlist, .malformed, "its root is not among its objects", offset: trailer + 16)
    }
    rootIndex = root
  }

  /// Returns the index in a reference. `position` must be less than the number of references.
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
    let entry = tableOffset + index * offsetWidth
    guard let offset = Int(exactly: bytes.number(at: entry, width: offsetWidth)),
      offset >= Self.headerByteCount, offset < tableOffset
    else {
      throw FormatError(.binaryPlist, .malformed, "an object's offset is out of bounds", offset: entry)
    }
    return offset
  }

  func object(at index: Int) throws(FormatError) -> Object {
    let start = try offset(ofObject: index)
    let marker = bytes[start]
    let size = marker & 0x0F
    switch marker >> 4 {
    case 0x0: return try simple(marker, at: start)
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
      let range = try contents(size, width: 2 * referenceWidth, at: start)
      let count = range.count / (2 * referenceWidth)
      return .dictionary(
        keys: References(offset: range.lowerBound, count: count),
        values: References(offset: range.lowerBound + count * referenceWidth, count: count))
    default: throw malformed("the marker 0x\(String(marker, radix: 16))", start)
    }
  }

  /// Returns the text of a string object, or `nil` if the object is not a string.
  ///
  /// - Throws: `.malformed` for a byte above 7F in ASCII text, or an unpaired surrogate.
  package func text(_ object: Object) throws(FormatError) -> String? {
    switch object {
    case .asciiString(let range):
      return try bytes.withBytes(range) { (contents) throws(FormatError) in
        guard contents.allSatisfy({ $0 < 0x80 }) else {
          throw malformed("an ASCII string with non-ASCII bytes", range.lowerBound)
        }
        return String(decoding: contents, as: UTF8.self)
      }
    case .utf16String(let range):
      let units = stride(from: range.lowerBound, to: range.upperBound, by: 2).map { offset in
        UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
      }
      guard let text = String(validating: units, as: UTF16.self) else {
        throw malformed("a string with half a surrogate pair", range.lowerBound)
      }
      return text
    default:
      return nil
    }
  }

  func malformed(_ reason: String, _ offset: Int) -> FormatError {
    FormatError(.binaryPlist, .malformed, reason, offset: offset)
  }

  private func simple(_ marker: UInt8, at start: Int) throws(FormatError) -> Object {
    switch marker {
    case 0x00: return .null
    case 0x08: return .boolean(false)
    case 0x09: return .boolean(true)
    default: throw malformed("the marker 0x\(String(marker, radix: 16))", start)
    }
  }

  private func integer(_ size: UInt8, at start: Int) throws(FormatError) -> Object {
    switch size {
    case 0...2: return .integer(Int64(try number(at: start + 1, width: 1 << Int(size), of: start)))
    case 3: return .integer(Int64(bitPattern: try number(at: start + 1, width: 8, of: start)))
    case 4:
      let high = try number(at: start + 1, width: 8, of: start)
      let low = try number(at: start + 9, width: 8, of: start)
      if high == 0 { return Int64(exactly: low).map(Object.integer) ?? .unsignedInteger(low) }
      guard high == .max, Int64(bitPattern: low) < 0 else { throw malformed("an integer of more than 64 bits", start) }
      return .integer(Int64(bitPattern: low))
    default: throw malformed("an integer of more than 16 bytes", start)
    }
  }

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

  /// Returns the range of `size` units. A size of 15 means that an integer object with the number follows.
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

  private func number(at offset: Int, width: Int, of start: Int) throws(FormatError) -> UInt64 {
    guard width <= tableOffset - offset else {
      throw FormatError(.binaryPlist, .truncated, "an object that runs past the end of the objects", offset: start)
    }
    return bytes.number(at: offset, width: width)
  }
}

/// Bytes that are read from a file on demand, page by page, with a cache of recent pages. For one thread.
///
/// Bytes that cannot be read appear as zeros. The caller must check `hasFailed` before it uses any result.
package final class PagedBytes {
  /// The number of bytes.
  package let count: Int
  /// Whether reading a page failed.
  package private(set) var hasFailed = false
  private let read: (Int, UnsafeMutableRawBufferPointer) -> Bool
  private let memory: UnsafeMutableRawBufferPointer
  /// The page in each slot of the cache; a page has only one possible slot.
  private var pages: [Int]

  /// The size of a page, in bytes.
  package static let pageByteCount = 16 << 10
  private static let maximumSlotCount = 256

  /// Creates the bytes of a file.
  ///
  /// - Parameters:
  ///   - count: The number of bytes.
  ///   - read: Fills the buffer with the bytes from an offset, which all exist, and returns whether it succeeded.
  package init(count: Int, _ read: @escaping (Int, UnsafeMutableRawBufferPointer) -> Bool) {
    self.count = count
    self.read = read
    let slotCount = min(Self.maximumSlotCount, count / Self.pageByteCount + 1)
    memory = .allocate(byteCount: slotCount * Self.pageByteCount, alignment: 16)
    pages = Array(repeating: -1, count: slotCount)
  }

  deinit { memory.deallocate() }

  /// The byte at an offset, which must be less than the count.
  package subscript(offset: Int) -> UInt8 {
    let page = offset / Self.pageByteCount
    let slot = page % pages.count
    if pages[slot] != page { fill(slot, with: page) }
    return memory[slot * Self.pageByteCount + offset % Self.pageByteCount]
  }

  private func fill(_ slot: Int, with page: Int) {
    let start = page * Self.pageByteCount
    let target = UnsafeMutableRawBufferPointer(
      rebasing: memory[(slot * Self.pageByteCount)...].prefix(min(Self.pageByteCount, count - start)))
    pages[slot] = page
    guard hasFailed || !read(start, target) else { return }
    hasFailed = true
    target.initializeMemory(as: UInt8.self, repeating: 0)
  }
}

/// Converts objects of a binary property list to values, within limits and without following cycles.
///
/// Texts and data are created once for each object, no matter how many references there are.
struct BinaryPlistDecoder {
  let document: BinaryPlistReader
  private let maximumDepth: Int
  private var remainingValues: Int
  /// The number of bytes of texts and data that may still be copied. It starts with the size of the file, because
  /// objects of a regular file do not overlap.
  private var remainingBytes: Int
  /// The number of bytes of texts and data that may still be reused. Reuse is free here, but every reader of the values
  /// spends time on each use. A long text that is reused in every item would turn a small file into much work.
  private var remainingSharedBytes: Int
  /// The texts and data that were created, in chunks of consecutive objects. A chunk is empty until it has a value,
  /// because most objects may never be accessed.
  private var leaves: [[PropertyValue?]]
  /// The containers around the current value.
  private var path: [Int] = []
  /// The malformed texts so far, or `nil` to reject them.
  private(set) var malformedTexts: MalformedTexts?

  private static let leavesPerChunk = 256
  /// The number of reused bytes allowed per byte of the file. Dumps with short texts need less than three.
  private static let sharedBytesPerByte = 16
  /// The number of reused bytes allowed in any file.
  private static let sharedByteAllowance = 16 << 20

  /// Creates a decoder.
  ///
  /// - Parameters:
  ///   - document: The property list.
  ///   - limits: The limits for its values.
  ///   - malformedTexts: A collection for malformed texts, or `nil` to reject a list that contains one.
  init(_ document: BinaryPlistReader, limits: BinaryPlist.Limits, keeping malformedTexts: MalformedTexts? = nil) {
    self.document = document
    self.malformedTexts = malformedTexts
    maximumDepth = limits.maximumDepth
    let (product, overflows) = document.bytes.count.multipliedReportingOverflow(by: limits.valuesPerByte)
    remainingValues = min(overflows ? .max : product, limits.maximumValueCount)
    remainingBytes = document.bytes.count
    let (shared, sharedOverflows) = document.bytes.count.multipliedReportingOverflow(by: Self.sharedBytesPerByte)
    remainingSharedBytes = sharedOverflows ? .max : max(shared, Self.sharedByteAllowance)
    leaves = Array(repeating: [], count: document.objectCount / Self.leavesPerChunk + 1)
  }

  /// Returns the value of an object with everything in it. `index` must be less than the number of objects.
  mutating func value(at index: Int) throws(FormatError) -> PropertyValue {
    try charge(values: 1, at: index)
    return try chargedValue(at: index)
  }

  /// Returns the value of an object that has been charged. The contents of a container are charged before they are
  /// created.
  private mutating func chargedValue(at index: Int) throws(FormatError) -> PropertyValue {
    if let leaf = leaf(at: index) {
      try charge(sharedBytes: leaf, at: index)
      return leaf
    }
    let object = try document.object(at: index)
    switch object {
    case .null: return .null
    case .boolean(let value): return .boolean(value)
    case .integer(let value): return .integer(value)
    case .unsignedInteger(let value): return .unsignedInteger(value)
    case .real(let value): return .real(value)
    case .date(let seconds): return .date(KeychainDate(secondsSinceReferenceDate: seconds))
    case .uid(let value): return .uid(value)
    case .data(let range):
      try charge(bytes: range.count, at: index)
      return cache(.data(document.bytes.withBytes(range) { Array($0) }), for: index)
    case .asciiString(let range), .utf16String(let range):
      try charge(bytes: range.count, at: index)
      return cache(.string(try text(object)), for: index)
    case .array(let references):
      try charge(values: references.count, at: index)
      return .array(try inside(index) { decoder throws(FormatError) in try decoder.values(references) })
    case .set(let references):
      try charge(values: references.count, at: index)
      return .set(try inside(index) { decoder throws(FormatError) in try decoder.values(references) })
    case .dictionary(let keys, let values):
      try charge(values: 2 * keys.count, at: index)
      return .dictionary(try inside(index) { decoder throws(FormatError) in try decoder.dictionary(keys, values) })
    }
  }

  /// Returns the text of a string object, or a placeholder if the text is malformed and such texts are preserved.
  private mutating func text(_ object: BinaryPlistReader.Object) throws(FormatError) -> String {
    do throws(FormatError) {
      return try document.text(object) ?? ""
    } catch {
      guard let placeholder = malformedTexts?.add(object, of: document) else { throw error }
      return placeholder
    }
  }

  private mutating func charge(
    values: Int = 0, bytes: Int = 0, at index: Int
  ) throws(FormatError) {
    guard values <= remainingValues, bytes <= remainingBytes else { throw try overLimit(at: index) }
    remainingValues -= values
    remainingBytes -= bytes
  }

  private mutating func charge(sharedBytes leaf: PropertyValue, at index: Int) throws(FormatError) {
    switch leaf {
    case .string(let text): remainingSharedBytes -= text.utf8.count
    case .data(let bytes): remainingSharedBytes -= bytes.count
    default: break
    }
    if remainingSharedBytes < 0 { throw try overLimit(at: index) }
  }

  private func overLimit(at index: Int) throws(FormatError) -> FormatError {
    FormatError(
      .binaryPlist, .overLimit, "it represents more values, or more shared values, than are accepted",
      offset: try document.offset(ofObject: index))
  }

  private func leaf(at index: Int) -> PropertyValue? {
    let chunk = leaves[index / Self.leavesPerChunk]
    return chunk.isEmpty ? nil : chunk[index % Self.leavesPerChunk]
  }

  private mutating func cache(_ value: PropertyValue, for index: Int) -> PropertyValue {
    let (chunk, position) = index.quotientAndRemainder(dividingBy: Self.leavesPerChunk)
    if leaves[chunk].isEmpty {
      let count = min(Self.leavesPerChunk, document.objectCount - chunk * Self.leavesPerChunk)
      leaves[chunk] = Array(repeating: nil, count: count)
    }
    leaves[chunk][position] = value
    return value
  }

  /// Calls a closure with the decoder while the container at an index is part of `path`.
  ///
  /// - Throws: The error of the closure, or an error if the container contains itself or is too deep.
  private mutating func inside<Result>(
    _ index: Int, _ body: (inout BinaryPlistDecoder) throws(FormatError) -> Result
  ) throws(FormatError) -> Result {
    if path.contains(index) {
      throw document.malformed("a container that contains itself", try document.offset(ofObject: index))
    }
    guard path.count < maximumDepth else {
      throw FormatError(
        .binaryPlist, .overLimit, "more than \(maximumDepth) levels", offset: try document.offset(ofObject: index))
    }
    path.append(index)
    let result = try body(&self)
    path.removeLast()
    return result
  }

  private mutating func values(_ references: BinaryPlistReader.References) throws(FormatError) -> [PropertyValue] {
    var values: [PropertyValue] = []
    values.reserveCapacity(references.count)
    for position in 0..<references.count {
      values.append(try chargedValue(at: document.index(position, of: references)))
    }
    return values
  }

  private mutating func dictionary(
    _ keys: BinaryPlistReader.References, _ values: BinaryPlistReader.References
  ) throws(FormatError) -> PropertyDictionary {
    var entries: [PropertyDictionary.Entry] = []
    entries.reserveCapacity(keys.count)
    for position in 0..<keys.count {
      let key = try chargedValue(at: document.index(position, of: keys))
      entries.append(.init(key: key, value: try chargedValue(at: document.index(position, of: values))))
    }
    return PropertyDictionary(entries)
  }
}

/// Malformed texts of a binary property list, preserved for writing it again. A placeholder represents each of them.
struct MalformedTexts {
  /// A text object as stored in the list.
  struct StoredText {
    let isUTF16: Bool
    let bytes: [UInt8]
  }

  private(set) var stored: [String: StoredText] = [:]
  /// The start of each placeholder. It is random, so that no list can contain a text that equals a placeholder.
  private let prefix = "malformed text \(UInt64.random(in: .min ... .max)) \(UInt64.random(in: .min ... .max)) "

  /// Adds a text object.
  ///
  /// - Returns: Its placeholder, or `nil` if the object is not a text.
  mutating func add(_ object: BinaryPlistReader.Object, of document: BinaryPlistReader) -> String? {
    let (range, isUTF16): (Range<Int>, Bool)
    switch object {
    case .asciiString(let textRange): (range, isUTF16) = (textRange, false)
    case .utf16String(let textRange): (range, isUTF16) = (textRange, true)
    default: return nil
    }
    let placeholder = prefix + String(stored.count)
    stored[placeholder] = StoredText(isUTF16: isUTF16, bytes: document.bytes.withBytes(range) { Array($0) })
    return placeholder
  }
}
