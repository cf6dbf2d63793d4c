import Basics

/// The binary property list, version 00: reading with limits, and writing with each text stored once.
///
/// Source: Apple CoreFoundation, `CFBinaryPList.c`.
public enum BinaryPlist {
  /// What a file may ask for before it is refused.
  public struct Limits: Sendable, Hashable {
    /// The most bytes that a list may have.
    public var maximumByteCount: Int
    /// Levels of containers, the outermost value counted.
    public var maximumDepth: Int
    /// How many values may be read for each byte of the file. Every reference takes at least one byte, so a list
    /// whose containers are not shared stays below one; a few shared ones can otherwise stand for any number.
    public var valuesPerByte: Int
    /// Objects that the file may have, and values that may be made of them. A value takes sixteen bytes of memory and a
    /// container some eighty, where the file needs a single byte for either.
    public var maximumValueCount: Int

    /// Creates limits; what a list asks for beyond them is `.overLimit`.
    public init(maximumByteCount: Int, maximumDepth: Int, valuesPerByte: Int, maximumValueCount: Int = .max) {
      self.maximumByteCount = maximumByteCount
      self.maximumDepth = maximumDepth
      self.valuesPerByte = valuesPerByte
      self.maximumValueCount = maximumValueCount
    }

    /// For a backup's manifest, its status and what the computer wrote: some ten values for each of its apps.
    public static let standard = Limits(
      maximumByteCount: 256 << 20, maximumDepth: 128, valuesPerByte: 2, maximumValueCount: 1_000_000)
    /// For a keychain's file: three objects and four values for each of `KeychainBackupFile.maximumEntryCount` items,
    /// and room for keys that are not known here.
    public static let keychainFile = Limits(
      maximumByteCount: 1 << 30, maximumDepth: 128, valuesPerByte: 2, maximumValueCount: 10_000_000)
    /// For one file's record, which has some dozens of values.
    public static let small = Limits(
      maximumByteCount: 16 << 20, maximumDepth: 32, valuesPerByte: 2, maximumValueCount: 10_000)
    /// For one item in its older form: some dozens of values, one of which is the secret.
    public static let item = Limits(
      maximumByteCount: DERPropertyList.maximumByteCount, maximumDepth: 32, valuesPerByte: 2, maximumValueCount: 10_000)
  }

  /// Reads a whole list.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion`, or `.overLimit` for one of `limits`.
  public static func decode(_ bytes: [UInt8], limits: Limits = .standard) throws(FormatError) -> PropertyValue {
    try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in
      var builder = BinaryPlistBuilder(try BinaryPlistDocument(buffer, limits: limits), limits: limits)
      return try builder.value(at: builder.document.rootIndex)
    }
  }

  /// Writes a list. Equal texts are stored once; the entries of dictionaries keep their order.
  ///
  /// - Throws: `.unencodable` for a null, `.overLimit` for more levels than `Limits.standard` accepts.
  public static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    var writer = BinaryPlistWriter()
    return try writer.encode(value)
  }

  /// Changes a list and writes it again. A text that is not well formed stays what it is, byte for byte.
  ///
  /// - Parameter change: Takes the list; a text that is not well formed is another one in it.
  /// - Throws: As `decode` does for everything else, as `encode`, and what `change` throws.
  static func editing(
    _ bytes: [UInt8], limits: Limits = .standard, _ change: (inout PropertyValue) throws(FormatError) -> Void
  ) throws(FormatError) -> [UInt8] {
    let (value, malformedTexts) = try bytes.withRawBytes {
      (buffer: UnsafeRawBufferPointer) throws(FormatError) -> (PropertyValue, MalformedTexts?) in
      let document = try BinaryPlistDocument(buffer, limits: limits)
      var builder = BinaryPlistBuilder(document, limits: limits, keeping: MalformedTexts())
      return (try builder.value(at: document.rootIndex), builder.malformedTexts)
    }
    var changed = value
    try change(&changed)
    var writer = BinaryPlistWriter(malformedTexts)
    return try writer.encode(changed)
  }

  static let magic = Array("bplist".utf8)
  static let version = Array("00".utf8)
  static let trailerByteCount = 32
}

/// A text that equals another only where their bytes do; `String` also takes composed and decomposed letters as equal.
private struct ExactText: Hashable {
  package let text: String

  static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
  func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

/// Writes a binary property list in two passes: one counts the objects, which settles how wide a reference is, and the
/// bytes of data, which are most of a large list; the other writes each container behind what it holds. Nothing that was
/// written is touched again, so that it can be given away before the list has its end.
struct BinaryPlistWriter {
  /// What was written and not given away yet.
  private var bytes: [UInt8] = BinaryPlist.magic + BinaryPlist.version
  private var takenByteCount = 0
  private var offsets: [Int] = []
  /// The object of each text; negative until it is written.
  private var texts: [ExactText: Int] = [:]
  private var referenceWidth = 1
  private var dataByteCount = 0
  /// Texts that are written as they were stored, by what stands for them.
  private let malformedTexts: [String: MalformedTexts.Stored]

  init(_ malformedTexts: MalformedTexts? = nil) { self.malformedTexts = malformedTexts?.stored ?? [:] }

  mutating func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    let objectCount = try count(value, depth: 0)
    prepare(for: objectCount)
    // Of an object that is a few bytes long itself, with a reference to it and its place in the table. What is too little
    // grows, and what is grown stands twice for a moment.
    let placeByteCount = referenceWidth + Self.width(of: UInt64(dataByteCount))
    bytes.reserveCapacity(dataByteCount + objectCount * (8 + placeByteCount))
    finish(root: try write(value), atLeast: .max) { _ in }
    return bytes
  }

  /// Begins to write objects one by one.
  ///
  /// - Parameter count: Of all objects, a text that is written several times counted once.
  mutating func prepare(for count: Int) {
    referenceWidth = Self.width(of: UInt64(count - 1))
    offsets.reserveCapacity(count)
  }

  /// Writes what stands behind the objects, and gives portions of it away as `give` does.
  mutating func finish<Failure: Error>(
    root: Int, atLeast count: Int, to sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let tableOffset = takenByteCount + bytes.count
    let offsetWidth = Self.width(of: UInt64(tableOffset))
    for offset in offsets {
      append(UInt64(offset), width: offsetWidth)
      try give(atLeast: count, to: sink)
    }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetWidth), UInt8(referenceWidth)]
    for number in [offsets.count, root, tableOffset] { append(UInt64(number), width: 8) }
  }

  /// Gives away what was written since it was asked last, where that is so much.
  mutating func give<Failure: Error>(
    atLeast count: Int = 0, to sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    guard bytes.count >= count else { return }
    try bytes.withRawBytes(sink)
    takenByteCount += bytes.count
    bytes.removeAll(keepingCapacity: true)
  }

  /// - Returns: 0 for a text that was counted before: it is one object, however often it is written.
  mutating func count(_ text: String) -> Int { texts.updateValue(-1, forKey: ExactText(text: text)) == nil ? 1 : 0 }

  private mutating func count(_ value: PropertyValue, depth: Int) throws(FormatError) -> Int {
    func checkDepth() throws(FormatError) {
      let limit = BinaryPlist.Limits.standard.maximumDepth
      guard depth < limit else { throw FormatError(.binaryPlist, .overLimit, "more than \(limit) levels") }
    }
    var total = 1
    switch value {
    case .string(let text): return count(text)
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

  /// Writes a value and what it holds, and returns its object's index.
  private mutating func write(_ value: PropertyValue) throws(FormatError) -> Int {
    switch value {
    case .null:
      throw FormatError(.binaryPlist, .unencodable, "a null")
    case .boolean(let value):
      return begin(value ? 0x09 : 0x08)
    case .integer(let value):
      return begin { $0.appendInteger(value) }
    case .unsignedInteger(let value):
      guard let small = Int64(exactly: value) else {
        return begin { writer in
          writer.bytes.append(0x14)
          writer.append(0, width: 8)
          writer.append(value, width: 8)
        }
      }
      return begin { $0.appendInteger(small) }
    case .real(let value):
      return begin(0x23, value.bitPattern)
    case .date(let date):
      return begin(0x33, date.secondsSinceReferenceDate.bitPattern)
    case .data(let data):
      return write(data)
    case .string(let text):
      return write(text)
    case .uid(let value):
      let width = Self.width(of: value)
      return begin { writer in
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
    begin { writer in
      writer.appendMarker(0x40, count: data.count)
      writer.bytes.append(contentsOf: data)
    }
  }

  mutating func write(_ text: String) -> Int {
    if let index = texts[ExactText(text: text)], index >= 0 { return index }
    let stored = malformedTexts.isEmpty ? nil : malformedTexts[text]
    let index = begin { writer in
      if let stored {
        writer.appendMarker(stored.isUTF16 ? 0x60 : 0x50, count: stored.bytes.count / (stored.isUTF16 ? 2 : 1))
        writer.bytes.append(contentsOf: stored.bytes)
      } else if text.utf8.allSatisfy({ $0 < 0x80 }) {
        writer.appendMarker(0x50, count: text.utf8.count)
        writer.bytes.append(contentsOf: text.utf8)
      } else {
        writer.appendMarker(0x60, count: text.utf16.count)
        for unit in text.utf16 { writer.append(UInt64(unit), width: 2) }
      }
    }
    texts[ExactText(text: text)] = index
    return index
  }

  private mutating func write(_ values: [PropertyValue], marker: UInt8) throws(FormatError) -> Int {
    var indices: [Int] = []
    indices.reserveCapacity(values.count)
    for value in values { indices.append(try write(value)) }
    return writeArray(of: indices, marker: marker)
  }

  /// Writes an array of objects that are written.
  mutating func writeArray(of indices: [Int], marker: UInt8 = 0xA0) -> Int {
    begin { writer in
      writer.appendMarker(marker, count: indices.count)
      writer.appendReferences(indices)
    }
  }

  private mutating func write(_ dictionary: PropertyDictionary) throws(FormatError) -> Int {
    var keys: [Int] = []
    var values: [Int] = []
    for entry in dictionary.entries {
      keys.append(try write(entry.key))
      values.append(try write(entry.value))
    }
    return writeDictionary(of: keys, values)
  }

  mutating func writeDictionary(of keys: [Int], _ values: [Int]) -> Int {
    begin { writer in
      writer.appendMarker(0xD0, count: keys.count)
      writer.appendReferences(keys)
      writer.appendReferences(values)
    }
  }

  private mutating func begin(_ body: (inout BinaryPlistWriter) -> Void) -> Int {
    offsets.append(takenByteCount + bytes.count)
    body(&self)
    return offsets.count - 1
  }

  private mutating func begin(_ marker: UInt8, _ bitPattern: UInt64? = nil) -> Int {
    begin { writer in
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

  /// Non-negative numbers are unsigned up to four bytes, everything else takes eight.
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

  /// 1, 2, 4 or 8 bytes.
  private static func width(of value: UInt64) -> Int {
    switch value {
    case ...0xFF: 1
    case ...0xFFFF: 2
    case ...0xFFFF_FFFF: 4
    default: 8
    }
  }
}

/// Turns objects of a binary property list into values, within limits and without running in circles.
///
/// Texts and data are made once for each object, however often they are referred to.
struct BinaryPlistBuilder {
  let document: BinaryPlistDocument
  private let maximumDepth: Int
  private var remainingValues: Int
  /// How many bytes of texts and data may still be copied. Objects of an honest file do not overlap.
  private var remainingBytes: Int
  /// What was made, by page and place in it. A page is empty until it has one: of millions of objects few may be asked for.
  private var leaves: [[PropertyValue?]]
  /// The containers that the value being made lies in.
  private var path: [Int] = []
  /// Keeps texts that are not well formed; `nil` to refuse them.
  private(set) var malformedTexts: MalformedTexts?

  private static let leavesOfPage = 256

  /// - Parameter malformedTexts: Takes the texts that are not well formed; `nil` to refuse a list with one.
  init(_ document: BinaryPlistDocument, limits: BinaryPlist.Limits, keeping malformedTexts: MalformedTexts? = nil) {
    self.document = document
    self.malformedTexts = malformedTexts
    maximumDepth = limits.maximumDepth
    let (product, overflows) = document.bytes.count.multipliedReportingOverflow(by: limits.valuesPerByte)
    remainingValues = min(overflows ? .max : product, limits.maximumValueCount)
    remainingBytes = document.bytes.count
    leaves = Array(repeating: [], count: document.objectCount / Self.leavesOfPage + 1)
  }

  /// The value of an object and everything below it. `index` is below the document's count.
  mutating func value(at index: Int) throws(FormatError) -> PropertyValue {
    try charge(values: 1, at: index)
    return try chargedValue(at: index)
  }

  /// The value of an object that has been charged; what it holds is charged before any of it is made.
  private mutating func chargedValue(at index: Int) throws(FormatError) -> PropertyValue {
    if let leaf = leaf(at: index) { return leaf }
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
      return keep(.data(document.bytes.withBytes(range) { Array($0) }), for: index)
    case .asciiString(let range), .utf16String(let range):
      try charge(bytes: range.count, at: index)
      return keep(.string(try text(object)), for: index)
    case .array(let references):
      try charge(values: references.count, at: index)
      return .array(try inside(index) { builder throws(FormatError) in try builder.values(references) })
    case .set(let references):
      try charge(values: references.count, at: index)
      return .set(try inside(index) { builder throws(FormatError) in try builder.values(references) })
    case .dictionary(let keys, let values):
      try charge(values: 2 * keys.count, at: index)
      return .dictionary(try inside(index) { builder throws(FormatError) in try builder.dictionary(keys, values) })
    }
  }

  /// The text of a text object; of one that is not well formed what stands for it, if such texts are kept.
  private mutating func text(_ object: BinaryPlistDocument.Object) throws(FormatError) -> String {
    do throws(FormatError) {
      return try document.text(object) ?? ""
    } catch {
      guard let standIn = malformedTexts?.add(object, of: document) else { throw error }
      return standIn
    }
  }

  private mutating func charge(
    values: Int = 0, bytes: Int = 0, at index: Int
  ) throws(FormatError) {
    guard values <= remainingValues, bytes <= remainingBytes else {
      throw FormatError(
        .binaryPlist, .overLimit, "it represents more values, or more shared values, than are accepted",
        offset: try document.offset(ofObject: index))
    }
    remainingValues -= values
    remainingBytes -= bytes
  }

  private func leaf(at index: Int) -> PropertyValue? {
    let page = leaves[index / Self.leavesOfPage]
    return page.isEmpty ? nil : page[index % Self.leavesOfPage]
  }

  private mutating func keep(_ value: PropertyValue, for index: Int) -> PropertyValue {
    let (page, place) = index.quotientAndRemainder(dividingBy: Self.leavesOfPage)
    if leaves[page].isEmpty {
      let count = min(Self.leavesOfPage, document.objectCount - page * Self.leavesOfPage)
      leaves[page] = Array(repeating: nil, count: count)
    }
    leaves[page][place] = value
    return value
  }

  private mutating func inside<Result>(
    _ index: Int, _ body: (inout BinaryPlistBuilder) throws(FormatError) -> Result
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

  private mutating func values(_ references: BinaryPlistDocument.References) throws(FormatError) -> [PropertyValue] {
    var values: [PropertyValue] = []
    values.reserveCapacity(references.count)
    for position in 0..<references.count {
      values.append(try chargedValue(at: document.index(position, of: references)))
    }
    return values
  }

  private mutating func dictionary(
    _ keys: BinaryPlistDocument.References, _ values: BinaryPlistDocument.References
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

/// Texts of a binary property list that are not well formed, for whoever writes the list again: each has a text that stands
/// for it meanwhile.
struct MalformedTexts {
  /// An object as it stands in the list.
  struct Stored {
    let isUTF16: Bool
    let bytes: [UInt8]
  }

  private(set) var stored: [String: Stored] = [:]
  /// Of this process alone, so that no list can hold a text that is taken for one of these.
  private let mark = "malformed text \(UInt64.random(in: .min ... .max)) \(UInt64.random(in: .min ... .max)) "

  /// Keeps a text object.
  ///
  /// - Returns: The text that stands for it; `nil` for an object that is not a text.
  mutating func add(_ object: BinaryPlistDocument.Object, of document: BinaryPlistDocument) -> String? {
    let (range, isUTF16): (Range<Int>, Bool)
    switch object {
    case .asciiString(let place): (range, isUTF16) = (place, false)
    case .utf16String(let place): (range, isUTF16) = (place, true)
    default: return nil
    }
    let standIn = mark + String(stored.count)
    stored[standIn] = Stored(isUTF16: isUTF16, bytes: document.bytes.withBytes(range) { Array($0) })
    return standIn
  }
}
