import Basics

/// Converts objects of a binary property list to values, within limits and without following cycles.
///
/// Strings and data are created once for each object, no matter how many references there are.
struct BinaryPlistDecoder {
  let document: BinaryPlistReader
  private let maximumDepth: Int
  private var remainingValues: Int
  /// The number of bytes of strings and data that may still be copied. It starts with the size of the file, because
  /// objects of a regular file do not overlap.
  private var remainingBytes: Int
  /// The number of bytes of strings and data that may still be reused. Reuse is free here, but every reader of the
  /// values spends time on each use. A long string that is reused in every item would turn a small file into much work.
  private var remainingSharedBytes: Int
  /// The strings and data that were created, in chunks of consecutive objects. A chunk is empty until it has a value,
  /// because most objects may never be accessed.
  private var leaves: [[PropertyValue?]]
  /// The containers around the current value.
  private var path: [Int] = []
  /// The malformed strings that were read, or `nil` if they are rejected.
  private(set) var malformedStrings: MalformedStrings?

  private static let leavesPerChunk = 256
  /// The number of reused bytes allowed per byte of the file. Dumps with short strings need less than three.
  private static let sharedBytesPerByte = 16
  /// The number of reused bytes allowed in any file.
  private static let sharedByteAllowance = 16 << 20

  /// Creates a decoder.
  ///
  /// - Parameters:
  ///   - document: The property list.
  ///   - limits: The limits for its values.
  ///   - malformedStrings: A collection for malformed strings, or `nil` to reject a list that contains one.
  init(_ document: BinaryPlistReader, limits: BinaryPlist.Limits, keeping malformedStrings: MalformedStrings? = nil) {
    self.document = document
    self.malformedStrings = malformedStrings
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
      return cache(.string(try string(object)), for: index)
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

  /// Returns the string of an object, or a placeholder if the string is malformed and such strings are preserved.
  private mutating func string(_ object: BinaryPlistReader.Object) throws(FormatError) -> String {
    do throws(FormatError) {
      return try document.string(object) ?? ""
    } catch {
      guard let placeholder = malformedStrings?.add(object, of: document) else { throw error }
      return placeholder
    }
  }

  /// Subtracts values and copied bytes from the remaining numbers.
  ///
  /// - Throws: `.overLimit` if fewer remain.
  private mutating func charge(
    values: Int = 0, bytes: Int = 0, at index: Int
  ) throws(FormatError) {
    guard values <= remainingValues, bytes <= remainingBytes else { throw try overLimit(at: index) }
    remainingValues -= values
    remainingBytes -= bytes
  }

  /// Subtracts the bytes of a string or data that is used again.
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
