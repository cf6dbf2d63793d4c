/// A JSON value (RFC 8259). Objects keep the order of their members, so equal reports have equal bytes. Integers stay
/// exact.
package enum JSONValue: Sendable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  /// A secret, written as a string. Its memory is wiped. Parsing never creates this case.
  case sensitive(SensitiveBytes, SensitiveEncoding)
  case array([JSONValue])
  /// An array whose elements are created one by one, on each access.
  case elements(count: Int, @Sendable (Int) -> JSONValue)
  case object([(String, JSONValue)])

  /// The encoding of secret bytes in a JSON string.
  package enum SensitiveEncoding: Sendable {
    /// The bytes as UTF-8; invalid bytes are replaced.
    case text
    case base64
  }
}

/// The members of an object, without their order.
package typealias JSONObject = [String: JSONValue]

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements) }
  package init(nilLiteral: ()) { self = .null }
}

extension JSONValue {
  package static func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
  package static func count(_ value: Int) -> JSONValue { .integer(Int64(value)) }

  /// Returns an array whose elements are created each time it is written, because it may be very long.
  package static func each<Element: Sendable>(
    _ elements: [Element], _ make: @escaping @Sendable (Element) -> JSONValue
  ) -> JSONValue {
    .elements(count: elements.count) { make(elements[$0]) }
  }

  /// Returns an object with additional members at its end. A value that is not an object is returned unchanged.
  package func adding(_ members: [(String, JSONValue)]) -> JSONValue {
    guard case .object(let existing) = self else { return self }
    return .object(existing + members)
  }

  /// Returns an object whose members are sorted by name.
  package static func sorted(_ members: JSONObject) -> JSONValue {
    .object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  package var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  package var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  package var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  package var arrayValue: [JSONValue]? {
    switch self {
    case .array(let value): value
    case .elements(let count, let make): (0..<count).map(make)
    case .null, .boolean, .integer, .number, .string, .sensitive, .object: nil
    }
  }
  package var fields: [(String, JSONValue)]? { if case .object(let value) = self { value } else { nil } }
  package var objectValue: JSONObject? { fields.map { JSONObject($0) { first, _ in first } } }

  /// The value of a member, or `nil` if there is none or the value is not an object.
  package subscript(name: String) -> JSONValue? {
    fields?.first { fieldName, _ in fieldName == name }.map { _, value in value }
  }

  /// The type for messages: "a string".
  package var typeName: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .integer: "a whole number"
    case .number: "a fraction"
    case .string, .sensitive: "a string"
    case .array, .elements: "an array"
    case .object: "an object"
    }
  }
}

extension JSONValue: Equatable {
  /// Returns whether two values are equal; the order of an object's members does not matter.
  package static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.sensitive(let left, let leftEncoding), .sensitive(let right, let rightEncoding)):
      leftEncoding == rightEncoding && left.constantTimeEquals(right)
    case (.array, .array), (.array, .elements), (.elements, .array), (.elements, .elements):
      left.arrayValue == right.arrayValue
    case (.object(let left), .object(let right)):
      left.count == right.count
        && zip(left.sorted { $0.0 < $1.0 }, right.sorted { $0.0 < $1.0 }).allSatisfy { $0.0 == $1.0 && $0.1 == $1.1 }
    case (.null, _), (.boolean, _), (.integer, _), (.number, _), (.string, _), (.sensitive, _), (.array, _),
      (.elements, _), (.object, _):
      false
    }
  }
}

extension JSONValue {
  /// Returns the document on several lines, indented by two spaces a level.
  ///
  /// - Parameter indent: The number of additional spaces before every line except the first.
  package func text(indentedBy indent: Int = 0) -> String {
    var buffer = SensitiveBuffer()
    write(to: &buffer, indent: indent)
    return buffer.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns the document on one line.
  package func compactText() -> String {
    var buffer = SensitiveBuffer()
    write(to: &buffer, indent: nil)
    return buffer.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns the document on several lines, with a newline at its end.
  package func bytes() -> [UInt8] {
    var buffer = SensitiveBuffer()
    write(to: &buffer)
    return buffer.withBytes { Array($0) }
  }

  /// Appends the document, on several lines with a newline at its end, to a buffer that is wiped. A secret is copied
  /// nowhere else.
  package func write(to buffer: inout SensitiveBuffer) {
    write(to: &buffer, indent: 0)
    buffer.append(UInt8(ascii: "\n"))
  }

  /// Calls a closure with the document's bytes, in chunks of at least `JSONStream.chunkByteCount` bytes except the
  /// last. A chunk ends after an element of an array, so a document with a long array is never in memory at once.
  package func forEachChunk<Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    var buffer = SensitiveBuffer()
    try write(to: &buffer, indent: 0) { (buffer: inout SensitiveBuffer) throws(Failure) in
      guard buffer.count >= JSONStream.chunkByteCount else { return }
      try buffer.withBytes(body)
      buffer.removeAll()
    }
    buffer.append(UInt8(ascii: "\n"))
    try buffer.withBytes(body)
  }

  /// Appends the value.
  ///
  /// - Parameter indent: The number of additional spaces before every line except the first, or `nil` to write the
  ///   value on one line.
  package func write(to buffer: inout SensitiveBuffer, indent: Int?) {
    write(to: &buffer, indent: indent) { (_: inout SensitiveBuffer) in }
  }

  /// Appends the value.
  ///
  /// - Parameter afterElement: Called with the buffer after each element of an array. It may empty the buffer.
  private func write<Failure: Error>(
    to buffer: inout SensitiveBuffer, indent: Int?, afterElement: (inout SensitiveBuffer) throws(Failure) -> Void
  ) throws(Failure) {
    switch self {
    case .null: buffer.append("null")
    case .boolean(let value): buffer.append(value ? "true" : "false")
    case .integer(let value): buffer.append(String(value))
    // JSON has no infinities, and Keyhaul's documents contain no such number.
    case .number(let value): buffer.append(value.isFinite ? String(value) : "null")
    case .string(let value): Self.write(value, to: &buffer)
    case .sensitive(let bytes, let encoding): Self.write(bytes, encoding, to: &buffer)
    case .array(let elements):
      try Self.elements(count: elements.count) { elements[$0] }.write(
        to: &buffer, indent: indent, afterElement: afterElement)
    case .elements(let count, let make):
      buffer.append("[")
      for index in 0..<count {
        Self.beginLine(ofValueAt: index, in: &buffer, indent: indent)
        try make(index).write(to: &buffer, indent: indent.map { $0 + 2 }, afterElement: afterElement)
        try afterElement(&buffer)
      }
      Self.close("]", valueCount: count, in: &buffer, indent: indent)
    case .object(let fields):
      buffer.append("{")
      for (index, (name, value)) in fields.enumerated() {
        Self.beginLine(ofValueAt: index, in: &buffer, indent: indent)
        Self.write(name, to: &buffer)
        buffer.append(indent == nil ? ":" : ": ")
        try value.write(to: &buffer, indent: indent.map { $0 + 2 }, afterElement: afterElement)
      }
      Self.close("}", valueCount: fields.count, in: &buffer, indent: indent)
    }
  }

  /// Starts the line of a value in an array or object.
  private static func beginLine(ofValueAt index: Int, in buffer: inout SensitiveBuffer, indent: Int?) {
    if index > 0 { buffer.append(",") }
    if let indent { startLine(indentedBy: indent + 2, in: &buffer) }
  }

  private static func close(_ bracket: String, valueCount: Int, in buffer: inout SensitiveBuffer, indent: Int?) {
    if let indent, valueCount > 0 { startLine(indentedBy: indent, in: &buffer) }
    buffer.append(bracket)
  }

  static func startLine(indentedBy indent: Int, in buffer: inout SensitiveBuffer) {
    buffer.append(UInt8(ascii: "\n"))
    buffer.append(UInt8(ascii: " "), count: indent)
  }

  package static func write(_ text: String, to buffer: inout SensitiveBuffer) {
    var text = text
    buffer.append(UInt8(ascii: "\""))
    text.withUTF8 { writeEscaped(UnsafeRawBufferPointer($0), to: &buffer) }
    buffer.append(UInt8(ascii: "\""))
  }

  private static func write(_ bytes: SensitiveBytes, _ encoding: SensitiveEncoding, to buffer: inout SensitiveBuffer) {
    buffer.append(UInt8(ascii: "\""))
    bytes.withBytes { bytes in
      switch encoding {
      case .text: writeEscaped(bytes, to: &buffer)
      case .base64: Base64Digits.append(bytes, to: &buffer)
      }
    }
    buffer.append(UInt8(ascii: "\""))
  }

  /// Escapes every character that a terminal would act on or hide, so that a document can be displayed safely.
  private static func writeEscaped(_ utf8: UnsafeRawBufferPointer, to buffer: inout SensitiveBuffer) {
    // Most texts need no escapes. The bytes before the first byte that may need an escape are copied at once.
    let plain = utf8.prefix {
      (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
    }
    buffer.append(UnsafeRawBufferPointer(rebasing: plain))
    guard plain.count < utf8.count else { return }
    UTF8Scalars.forEach(in: UnsafeRawBufferPointer(rebasing: utf8[plain.endIndex...])) { scalar, bytes in
      switch scalar {
      case "\"": buffer.append("\\\"")
      case "\\": buffer.append("\\\\")
      case "\n": buffer.append("\\n")
      case "\r": buffer.append("\\r")
      case "\t": buffer.append("\\t")
      case " "..."~": buffer.append(bytes)
      default:
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator:
          for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter { writeEscape(unit, to: &buffer) }
        default: buffer.append(bytes)
        }
      }
    }
  }

  private static func writeEscape(_ unit: UInt16, to buffer: inout SensitiveBuffer) {
    buffer.append("\\u")
    for shift in [12, 8, 4, 0] as [UInt16] {
      let digit = UInt8(truncatingIfNeeded: unit >> shift & 15)
      buffer.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}
