/// A reason why bytes cannot be read as JSON.
package struct JSONParseError: Error, Equatable {
  package let reason: String
  /// The number of bytes before the error, or `nil` if it is not known.
  package var offset: Int?
  /// Whether the bytes may be JSON but exceed a limit.
  package var isOverLimit = false

  /// Returns the location as "line 3, column 7", or `nil` if it is unknown. Both numbers start at 1. Columns are
  /// counted in Unicode scalars.
  ///
  /// - Parameter bytes: The document.
  package func location(in bytes: [UInt8]) -> String? {
    guard let offset else { return nil }
    let lineBytes = bytes.prefix(offset).reversed().prefix { $0 != UInt8(ascii: "\n") }
    // Counts scalars: in UTF-8, the bytes of a scalar after its first one begin with the bits 10.
    let column = lineBytes.count { $0 & 0b1100_0000 != 0b1000_0000 }
    let line = JSONValue.line(of: offset, in: bytes)
    // Editors do not count a byte order mark as a character of the first line.
    let isAfterMark = line == 1 && offset > 0 && UTF8Scalars.byteOrderMarkCount(of: bytes) > 0
    return "line \(line), column \(isAfterMark ? column : column + 1)"
  }
}

/// A step from an array or object to one of its values.
package enum JSONPathComponent: Equatable, Sendable {
  case member(String)
  case element(Int)
}

extension JSONValue {
  /// The deepest nesting of arrays and objects.
  package static let maximumDepth = 100
  /// The maximum number of values in a document: more than three times the number in a plan for 100,000 items.
  package static let maximumValueCount = 5_000_000

  /// Parses a document (RFC 8259): UTF-8, one value, no duplicate names in an object, no number out of range. A byte
  /// order mark at its start is skipped.
  ///
  /// - Parameters:
  ///   - bytes: The document.
  ///   - limit: The maximum number of values to accept.
  ///   - member: A member of the root object whose elements are parsed again on each access, so that only their bytes
  ///     stay in memory. For very long arrays.
  /// - Throws: The reason, with its offset, if the bytes are not JSON or exceed a limit.
  package init(
    parsing bytes: [UInt8], acceptingAtMost limit: Int = Self.maximumValueCount, decodingLazily member: String? = nil
  ) throws(JSONParseError) {
    guard bytes.withUnsafeBytes({ UTF8Scalars.isValid($0) }) else { throw JSONParseError(reason: "it is not JSON") }
    var parser = JSONParser(bytes: bytes, remainingValueCount: limit, lazyMember: member)
    do throws(JSONParseError) {
      self = try parser.document()
    } catch {
      throw JSONParseError(reason: error.reason, offset: parser.position, isOverLimit: error.isOverLimit)
    }
  }

  /// Returns the line, counted from 1, on which a value begins. An object's member begins with its name.
  ///
  /// - Parameter path: The path from the document's root value to the value.
  /// - Returns: The line, or `nil` if there is no value at `path` or the bytes are not a JSON document.
  package static func line(of path: [JSONPathComponent], in bytes: [UInt8]) -> Int? {
    var parser = JSONParser(bytes: bytes, remainingValueCount: maximumValueCount, target: path)
    do throws(JSONParseError) { _ = try parser.document() } catch { return nil }
    return parser.targetOffset.map { line(of: $0, in: bytes) }
  }

  fileprivate static func line(of offset: Int, in bytes: [UInt8]) -> Int {
    bytes.prefix(offset).count { $0 == UInt8(ascii: "\n") } + 1
  }
}

private struct JSONParser {
  let bytes: [UInt8]
  /// The number of values that are still accepted.
  var remainingValueCount: Int
  var position = 0
  /// The path of the value whose offset is requested.
  var target: [JSONPathComponent] = []
  /// The number of components of `target` that lead to the current value.
  var matchedCount = 0
  /// The offset of the value at `target`, or of its name if it is a member.
  var targetOffset: Int?
  /// The member of the root object whose elements are parsed on each access.
  var lazyMember: String?

  private static let malformed = JSONParseError(reason: "it is not JSON")

  mutating func document() throws(JSONParseError) -> JSONValue {
    position = UTF8Scalars.byteOrderMarkCount(of: bytes)
    skipBlanks()
    let value = try value(depth: 0)
    skipBlanks()
    guard position == bytes.count else { throw Self.malformed }
    return value
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func consume(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ byte: UInt8) throws(JSONParseError) {
    guard consume(byte) else { throw Self.malformed }
  }

  /// Skips spaces, line feeds, carriage returns and tabs.
  private mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  private mutating func value(depth: Int, isLazy: Bool = false) throws(JSONParseError) -> JSONValue {
    remainingValueCount -= 1
    guard remainingValueCount >= 0 else {
      throw JSONParseError(reason: "it has more values than Keyhaul reads", isOverLimit: true)
    }
    switch next {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "{"): return try object(depth: depth + 1)
    case UInt8(ascii: "["): return isLazy ? try lazyArray(depth: depth + 1) : try array(depth: depth + 1)
    case UInt8(ascii: "t"): return try literal("true", .boolean(true))
    case UInt8(ascii: "f"): return try literal("false", .boolean(false))
    case UInt8(ascii: "n"): return try literal("null", .null)
    default: return try number()
    }
  }

  /// Records the start of a value in an array or object, to find the value at `target`.
  ///
  /// - Parameters:
  ///   - component: The value's path component in the array or object.
  ///   - start: The offset of the value.
  ///   - depth: The depth of the array or object, at least 1.
  private mutating func beginValue(_ component: @autoclosure () -> JSONPathComponent, at start: Int, depth: Int) {
    guard targetOffset == nil, matchedCount == depth - 1, matchedCount < target.count,
      target[matchedCount] == component()
    else {
      return
    }
    matchedCount = depth
    if matchedCount == target.count { targetOffset = start }
  }

  /// Records the end of a value in an array or object.
  private mutating func endValue(depth: Int) { matchedCount = min(matchedCount, depth - 1) }

  private func check(_ depth: Int) throws(JSONParseError) {
    guard depth <= JSONValue.maximumDepth else {
      throw JSONParseError(reason: "it is nested more than \(JSONValue.maximumDepth) deep", isOverLimit: true)
    }
  }

  private mutating func array(depth: Int) throws(JSONParseError) -> JSONValue {
    var elements: [JSONValue] = []
    try forEachElement(depth: depth) { element, _ in elements.append(element) }
    return .array(elements)
  }

  private mutating func lazyArray(depth: Int) throws(JSONParseError) -> JSONValue {
    var starts: [Int] = []
    try forEachElement(depth: depth) { starts.append($1) }
    return .elements(count: starts.count) { [bytes, starts] index in
      var parser = JSONParser(bytes: bytes, remainingValueCount: .max, position: starts[index])
      // An error is impossible, because the bytes have been parsed before.
      do throws(JSONParseError) { return try parser.value(depth: depth) } catch { return .null }
    }
  }

  /// Parses an array and calls a closure with each element and its offset.
  private mutating func forEachElement(
    depth: Int, _ body: (_ element: JSONValue, _ offset: Int) -> Void
  ) throws(JSONParseError) {
    try check(depth)
    try expect(UInt8(ascii: "["))
    skipBlanks()
    if consume(UInt8(ascii: "]")) { return }
    for index in 0... {
      skipBlanks()
      let start = position
      beginValue(.element(index), at: start, depth: depth)
      body(try value(depth: depth), start)
      endValue(depth: depth)
      skipBlanks()
      if consume(UInt8(ascii: "]")) { return }
      try expect(UInt8(ascii: ","))
    }
  }

  private mutating func object(depth: Int) throws(JSONParseError) -> JSONValue {
    try check(depth)
    try expect(UInt8(ascii: "{"))
    skipBlanks()
    var fields: [(String, JSONValue)] = []
    var names: Set<String> = []
    if consume(UInt8(ascii: "}")) { return .object(fields) }
    while true {
      skipBlanks()
      let start = position
      let name = try string()
      guard names.insert(name).inserted else {
        throw JSONParseError(
          reason: "an object in it has two members with the same name")
      }
      skipBlanks()
      try expect(UInt8(ascii: ":"))
      skipBlanks()
      beginValue(.member(name), at: start, depth: depth)
      fields.append((name, try value(depth: depth, isLazy: depth == 1 && name == lazyMember)))
      endValue(depth: depth)
      skipBlanks()
      if consume(UInt8(ascii: "}")) { return .object(fields) }
      try expect(UInt8(ascii: ","))
    }
  }

  private mutating func literal(_ text: String, _ value: JSONValue) throws(JSONParseError) -> JSONValue {
    guard bytes[position...].starts(with: text.utf8) else { throw Self.malformed }
    position += text.utf8.count
    return value
  }

  // MARK: Numbers

  private mutating func digits() -> Int {
    let start = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    return position - start
  }

  private mutating func number() throws(JSONParseError) -> JSONValue {
    let start = position
    _ = consume(UInt8(ascii: "-"))
    let beginsWithZero = next == UInt8(ascii: "0")
    let wholeDigits = digits()
    guard wholeDigits > 0, !beginsWithZero || wholeDigits == 1 else { throw Self.malformed }
    var isWhole = true
    if consume(UInt8(ascii: ".")) {
      isWhole = false
      guard digits() > 0 else { throw Self.malformed }
    }
    if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
      isWhole = false
      if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
      guard digits() > 0 else { throw Self.malformed }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if isWhole, let integer = Int64(text) { return .integer(integer) }
    guard let number = Double(text), number.isFinite else {
      throw JSONParseError(reason: "a number in it is out of range")
    }
    return .number(number)
  }

  // MARK: Strings

  private mutating func string() throws(JSONParseError) -> String {
    try expect(UInt8(ascii: "\""))
    let start = position
    while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
    if consume(UInt8(ascii: "\"")) { return String(decoding: bytes[start..<position - 1], as: UTF8.self) }
    var text = Array(bytes[start..<position])
    while true {
      guard let byte = next, byte >= 0x20 else { throw Self.malformed }
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): text.append(contentsOf: Array(String(try escape()).utf8))
      default: text.append(byte)
      }
    }
  }

  private mutating func escape() throws(JSONParseError) -> Unicode.Scalar {
    guard let byte = next else { throw Self.malformed }
    position += 1
    switch byte {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try codePoint()
    default: throw Self.malformed
    }
  }

  /// Parses four digits, or the eight digits of a surrogate pair.
  private mutating func codePoint() throws(JSONParseError) -> Unicode.Scalar {
    let high = try fourDigits()
    if let scalar = Unicode.Scalar(high) { return scalar }
    guard (0xD800..<0xDC00).contains(high), consume(UInt8(ascii: "\\")), consume(UInt8(ascii: "u")) else {
      throw Self.malformed
    }
    let low = try fourDigits()
    guard (0xDC00..<0xE000).contains(low),
      let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
    else { throw Self.malformed }
    return scalar
  }

  private mutating func fourDigits() throws(JSONParseError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw Self.malformed }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }
}
