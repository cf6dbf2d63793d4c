import Basics

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
