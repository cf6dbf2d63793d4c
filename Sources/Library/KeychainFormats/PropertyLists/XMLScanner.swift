import Basics

/// Walks through the few forms of XML that a property list is made of.
///
/// Source: W3C, "Extensible Markup Language (XML) 1.0".
struct XMLScanner {
  /// A start or an end of an element; attributes are passed over.
  struct Tag {
    let name: String
    let isEnd: Bool
    /// Whether it is start and end in one.
    let isEmpty: Bool
  }

  private let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0

  /// The longest name that a property list has is seven letters.
  private static let maximumNameLength = 16
  /// The longest reference of a character: `&#x10FFFF;`, with room for zeros in front.
  private static let maximumReferenceLength = 16

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { offset == bytes.count }

  func malformed(_ reason: String) -> FormatError {
    isAtEnd
      ? FormatError(.xmlPlist, .truncated, "it ends inside of an element", offset: offset)
      : FormatError(.xmlPlist, .malformed, reason, offset: offset)
  }

  func forbidden(_ reason: String) -> FormatError {
    isAtEnd
      ? FormatError(.xmlPlist, .truncated, "it ends inside of an element", offset: offset)
      : FormatError(.xmlPlist, .forbidden, reason, offset: offset)
  }

  // MARK: Before and between the elements

  /// A byte-order mark, the declaration and a document type that declares nothing.
  mutating func skipProlog() throws(FormatError) {
    _ = take("\u{FEFF}")
    try skipMiscellany()
    guard take("<!DOCTYPE") else { return }
    while let byte = next() {
      switch byte {
      case UInt8(ascii: ">"): return try skipMiscellany()
      case UInt8(ascii: "["): throw forbidden("a document type with declarations of its own")
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        while let inner = next(), inner != byte {}
      default: continue
      }
    }
    throw malformed("the document type does not end")
  }

  /// White space, comments and processing instructions.
  mutating func skipMiscellany() throws(FormatError) {
    while true {
      skipSpace()
      if take("<!--") {
        try skip(to: "-->")
      } else if take("<?") {
        try skip(to: "?>")
      } else {
        return
      }
    }
  }

  private mutating func skip(to end: String) throws(FormatError) {
    while !isAtEnd {
      if take(end) { return }
      offset += 1
    }
    throw malformed("it does not end")
  }

  // MARK: Elements

  /// The tag that begins here; `nil` at the end of the bytes.
  mutating func tag() throws(FormatError) -> Tag? {
    guard !isAtEnd else { return nil }
    guard take("<") else { throw malformed("text where an element is expected") }
    let isEnd = take("/")
    let start = offset
    while let byte = peek(), Self.isNameCharacter(byte) { offset += 1 }
    guard offset > start, offset - start <= Self.maximumNameLength else {
      throw malformed("an element without a known name")
    }
    let name = String(decoding: bytes[start..<offset], as: UTF8.self)
    while let byte = next() {
      switch byte {
      case UInt8(ascii: ">"): return Tag(name: name, isEnd: isEnd, isEmpty: false)
      case UInt8(ascii: "/"):
        guard !isEnd, take(">") else { throw malformed("a tag that is not closed") }
        return Tag(name: name, isEnd: false, isEmpty: true)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        while let inner = next(), inner != byte {}
      case UInt8(ascii: "<"), UInt8(ascii: "&"): throw malformed("a tag that is not closed")
      default: continue
      }
    }
    throw malformed("a tag that is not closed")
  }

  /// The text up to the next tag, its references resolved and comments left out.
  package mutating func text() throws(FormatError) -> String {
    var text: [UInt8] = []
    let start = offset
    while let byte = peek() {
      switch byte {
      case UInt8(ascii: "<"):
        if take("<![CDATA[") {
          let inner = offset
          try skip(to: "]]>")
          text += bytes[inner..<(offset - 3)]
        } else if take("<!--") {
          try skip(to: "-->")
        } else {
          guard let string = String(validating: text, as: UTF8.self) else {
            throw FormatError(.xmlPlist, .malformed, "text that is not UTF-8", offset: start)
          }
          return string
        }
      case UInt8(ascii: "&"): text += Array(String(try reference()).utf8)
      case 13:
        // XML reads every end of line as a line feed.
        offset += 1
        if peek() != 10 { text.append(10) }
      default:
        text.append(byte)
        offset += 1
      }
    }
    throw malformed("text that does not end")
  }

  private mutating func reference() throws(FormatError) -> Unicode.Scalar {
    let start = offset + 1
    guard let end = bytes[start...].prefix(Self.maximumReferenceLength).firstIndex(of: UInt8(ascii: ";")) else {
      throw malformed("an entity that does not end")
    }
    let name = String(decoding: bytes[start..<end], as: UTF8.self)
    let scalar: Unicode.Scalar? =
      switch name {
      case "amp": "&"
      case "lt": "<"
      case "gt": ">"
      case "quot": "\""
      case "apos": "'"
      default:
        if name.hasPrefix("#x") {
          name.dropFirst(2).first == "+" ? nil : UInt32(name.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
        } else if name.hasPrefix("#") {
          name.dropFirst().first == "+" ? nil : UInt32(name.dropFirst()).flatMap(Unicode.Scalar.init)
        } else {
          nil
        }
      }
    guard let scalar, scalar != "\0" else {
      if name.hasPrefix("#") { throw malformed("a character that does not exist") }
      throw forbidden("an entity that is not XML's own")
    }
    offset = end + 1
    return scalar
  }

  // MARK: Bytes

  private func peek() -> UInt8? { isAtEnd ? nil : bytes[offset] }

  private mutating func next() -> UInt8? {
    guard let byte = peek() else { return nil }
    offset += 1
    return byte
  }

  private mutating func take(_ text: String) -> Bool {
    guard bytes[offset...].starts(with: text.utf8) else { return false }
    offset += text.utf8.count
    return true
  }

  private mutating func skipSpace() {
    while let byte = peek(), [9, 10, 13, 32].contains(byte) { offset += 1 }
  }

  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }
}
