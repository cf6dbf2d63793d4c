extension JSONValue {
  /// The document on lines of its own, two spaces a level.
  ///
  /// - Parameter indent: By how many spaces the lines after the first are moved in.
  package func text(indentedBy indent: Int = 0) -> String {
    var buffer = SensitiveBuffer()
    write(to: &buffer, indent: indent)
    return buffer.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// The document on one line.
  package func compactText() -> String {
    var buffer = SensitiveBuffer()
    write(to: &buffer, indent: nil)
    return buffer.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// The document on lines of its own with a newline at its end.
  package func bytes() -> [UInt8] {
    var buffer = SensitiveBuffer()
    write(to: &buffer)
    return buffer.withBytes { Array($0) }
  }

  /// Adds the same to a buffer that is wiped; what a secret of the document says is in no other memory.
  package func write(to buffer: inout SensitiveBuffer) {
    write(to: &buffer, indent: 0)
    buffer.append(UInt8(ascii: "\n"))
  }

  func write(to buffer: inout SensitiveBuffer, indent: Int?) {
    switch self {
    case .null: buffer.append("null")
    case .boolean(let value): buffer.append(value ? "true" : "false")
    case .integer(let value): buffer.append(String(value))
    // JSON has no form for infinities; none of our documents has a number that could be one.
    case .number(let value): buffer.append(value.isFinite ? String(value) : "null")
    case .string(let value): Self.write(value, to: &buffer)
    case .sensitive(let bytes, let form): Self.write(bytes, form, to: &buffer)
    case .array(let elements):
      Self.write(elements, brackets: ("[", "]"), to: &buffer, indent: indent) { element, buffer, indent in
        element.write(to: &buffer, indent: indent)
      }
    case .object(let fields):
      Self.write(fields, brackets: ("{", "}"), to: &buffer, indent: indent) { field, buffer, indent in
        Self.write(field.0, to: &buffer)
        buffer.append(indent == nil ? ":" : ": ")
        field.1.write(to: &buffer, indent: indent)
      }
    }
  }

  private static func write<Element>(
    _ elements: [Element], brackets: (String, String), to buffer: inout SensitiveBuffer, indent: Int?,
    each: (Element, inout SensitiveBuffer, Int?) -> Void
  ) {
    buffer.append(brackets.0)
    let inner = indent.map { $0 + 2 }
    for (index, element) in elements.enumerated() {
      if index > 0 { buffer.append(",") }
      if let inner { startLine(indentedBy: inner, in: &buffer) }
      each(element, &buffer, inner)
    }
    if let indent, !elements.isEmpty { startLine(indentedBy: indent, in: &buffer) }
    buffer.append(brackets.1)
  }

  static func startLine(indentedBy indent: Int, in buffer: inout SensitiveBuffer) {
    buffer.append(UInt8(ascii: "\n"))
    buffer.append(UInt8(ascii: " "), count: indent)
  }

  static func write(_ text: String, to buffer: inout SensitiveBuffer) {
    var text = text
    buffer.append(UInt8(ascii: "\""))
    text.withUTF8 { writeEscaped(UnsafeRawBufferPointer($0), to: &buffer) }
    buffer.append(UInt8(ascii: "\""))
  }

  private static func write(_ bytes: SensitiveBytes, _ form: SensitiveForm, to buffer: inout SensitiveBuffer) {
    buffer.append(UInt8(ascii: "\""))
    bytes.withBytes { bytes in
      switch form {
      case .text: writeEscaped(bytes, to: &buffer)
      case .base64: Base64Digits.append(bytes, to: &buffer)
      }
    }
    buffer.append(UInt8(ascii: "\""))
  }

  /// Everything that a terminal would act on or hide is escaped too, so that a document can be looked at.
  private static func writeEscaped(_ utf8: UnsafeRawBufferPointer, to buffer: inout SensitiveBuffer) {
    // Most of what is written needs nothing of this, and is copied as it is up to the first byte that may.
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
