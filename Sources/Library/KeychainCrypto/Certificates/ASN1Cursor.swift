import Basics
import KeychainFormats

/// Reads DER, never past its end: one-byte tags, and definite lengths in their shortest form.
///
/// Values are returned in place, so that a private key is not copied to an array. The bytes must outlive the cursor.
/// Source: ITU-T X.690, chapters 8 and 10.
struct ASN1Cursor {
  struct Element {
    let tag: Tag
    /// The element with its tag and length.
    let whole: UnsafeRawBufferPointer
    let contents: UnsafeRawBufferPointer

    var cursor: ASN1Cursor { ASN1Cursor(contents) }
  }

  struct Tag: RawRepresentable, Equatable {
    let rawValue: UInt8

    static let integer = Tag(rawValue: 0x02)
    static let bitString = Tag(rawValue: 0x03)
    static let octetString = Tag(rawValue: 0x04)
    static let null = Tag(rawValue: 0x05)
    static let objectIdentifier = Tag(rawValue: 0x06)
    static let printableString = Tag(rawValue: 0x13)
    static let utcTime = Tag(rawValue: 0x17)
    static let sequence = Tag(rawValue: 0x30)
    static let set = Tag(rawValue: 0x31)

    /// Returns `[number]`, constructed, like explicit tags.
    static func explicit(_ number: UInt8) -> Tag { Tag(rawValue: 0xA0 | number) }
    /// Returns `[number]`, primitive, like implicit tags of strings.
    static func implicit(_ number: UInt8) -> Tag { Tag(rawValue: 0x80 | number) }
  }

  private var rest: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  /// The tag of the next element, which is not skipped, or `nil` at the end.
  var nextTag: Tag? { rest.first.map(Tag.init(rawValue:)) }

  /// Reads an element.
  mutating func next(_ what: @autoclosure () -> String) throws(CertificateError) -> Element {
    guard rest.count >= 2 else { throw CertificateError(.malformed, "it ends before \(what())") }
    let tag = Tag(rawValue: rest[0])
    guard tag.rawValue & 0x1F != 0x1F else {
      throw CertificateError(.malformed, "\(what()) has a tag of several bytes")
    }
    var headerCount = 2
    var count = Int(rest[1])
    if count >= 0x80 {
      let digitCount = count & 0x7F
      guard (1...4).contains(digitCount), rest.count >= 2 + digitCount else {
        throw CertificateError(.malformed, "\(what()) has an impossible length")
      }
      headerCount += digitCount
      count = rest[2..<headerCount].reduce(0) { $0 << 8 | Int($1) }
      guard count >= 0x80, rest[2] != 0 else {
        throw CertificateError(.malformed, "\(what()) has a length that is not in its shortest form")
      }
    }
    guard count <= rest.count - headerCount else { throw CertificateError(.malformed, "\(what()) is cut short") }
    let end = headerCount + count
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[end...]) }
    return Element(
      tag: tag, whole: UnsafeRawBufferPointer(rebasing: rest[..<end]),
      contents: UnsafeRawBufferPointer(rebasing: rest[headerCount..<end]))
  }

  /// Reads an element that must have the given tag.
  mutating func next(_ tag: Tag, _ what: @autoclosure () -> String) throws(CertificateError) -> Element {
    let element = try next(what())
    guard element.tag == tag else { throw CertificateError(.malformed, "\(what()) has another type") }
    return element
  }

  /// Reads the next element if it has the given tag; otherwise returns `nil` and skips nothing.
  mutating func nextIfPresent(_ tag: Tag, _ what: @autoclosure () -> String) throws(CertificateError) -> Element? {
    nextTag == tag ? try next(what()) : nil
  }

  /// Reads a nonnegative integer and returns its bytes, the most significant first, without a leading zero; none for 0.
  mutating func nextUnsigned(_ what: @autoclosure () -> String) throws(CertificateError) -> UnsafeRawBufferPointer {
    let contents = try next(.integer, what()).contents
    guard let first = contents.first, first < 0x80 else {
      throw CertificateError(.malformed, "\(what()) is negative or empty")
    }
    guard first == 0 else { return contents }
    guard contents.count == 1 || contents[1] >= 0x80 else {
      throw CertificateError(.malformed, "\(what()) is not in its shortest form")
    }
    return UnsafeRawBufferPointer(rebasing: contents[1...])
  }

  /// Reads a bit string of whole bytes and returns its contents.
  mutating func nextBitString(_ what: @autoclosure () -> String) throws(CertificateError) -> UnsafeRawBufferPointer {
    try Self.wholeBytes(of: next(.bitString, what()), what())
  }

  static func wholeBytes(
    of element: Element, _ what: @autoclosure () -> String
  ) throws(CertificateError) -> UnsafeRawBufferPointer {
    guard element.contents.first == 0 else {
      throw CertificateError(.malformed, "\(what()) is not made of whole bytes")
    }
    return UnsafeRawBufferPointer(rebasing: element.contents[1...])
  }

  func checkEnd(_ what: @autoclosure () -> String) throws(CertificateError) {
    guard isAtEnd else { throw CertificateError(.malformed, "\(rest.count) bytes follow \(what())") }
  }
}

/// Encodes DER elements whose contents are not secret.
enum ASN1Encoding {
  static func element(_ tag: ASN1Cursor.Tag, _ contents: [UInt8]) -> [UInt8] { header(tag, contents.count) + contents }

  /// Returns the tag and length of an element.
  static func header(_ tag: ASN1Cursor.Tag, _ count: Int) -> [UInt8] {
    guard count >= 0x80 else { return [tag.rawValue, UInt8(count)] }
    let digits = bigEndianBytes(UInt64(count)).drop { $0 == 0 }
    return [tag.rawValue, 0x80 | UInt8(digits.count)] + digits
  }
}
