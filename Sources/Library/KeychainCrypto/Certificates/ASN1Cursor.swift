import Basics
import KeychainFormats

/// Reads DER elements with one-byte tags and definite lengths in their shortest form, and never past the end.
///
/// An element is a tag byte, its length and its contents. A length below 0x80 is one byte. For a longer length, the
/// first byte is 0x80 plus the number of length bytes that follow, the most significant first.
///
/// Values are returned in place, so that a private key is not copied to an array. The bytes must outlive the cursor.
/// Source: ITU-T X.690, chapters 8 and 10.
struct ASN1Cursor {
  struct Element {
    let tag: Tag
    /// The element with its tag and length.
    let encoding: UnsafeRawBufferPointer
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

    /// Returns the context-specific tag `[number]`, constructed, as in explicit tagging.
    static func explicit(_ number: UInt8) -> Tag { Tag(rawValue: 0xA0 | number) }
    /// Returns the context-specific tag `[number]`, primitive, as in the implicit tagging of a string.
    static func implicit(_ number: UInt8) -> Tag { Tag(rawValue: 0x80 | number) }
  }

  private var remaining: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { remaining = bytes }

  /// Creates a cursor for the members of a sequence. The bytes must be exactly this sequence, with nothing after it.
  ///
  /// - Parameter name: The name of the sequence in error messages.
  init(
    membersOfOnlySequence bytes: UnsafeRawBufferPointer, _ name: @autoclosure () -> String
  ) throws(CertificateError) {
    var outer = ASN1Cursor(bytes)
    self = try outer.next(.sequence, name()).cursor
    try outer.checkEnd(name())
  }

  var isAtEnd: Bool { remaining.isEmpty }

  /// The tag of the next element, which is not skipped, or `nil` at the end.
  var nextTag: Tag? { remaining.first.map(Tag.init(rawValue:)) }

  /// Reads the next element.
  ///
  /// - Parameter name: The name of the element in error messages.
  mutating func next(_ name: @autoclosure () -> String) throws(CertificateError) -> Element {
    guard remaining.count >= 2 else { throw CertificateError(.malformed, "it ends before \(name())") }
    let tag = Tag(rawValue: remaining[0])
    guard tag.rawValue & 0x1F != 0x1F else {
      throw CertificateError(.malformed, "\(name()) has a tag of several bytes")
    }
    var headerCount = 2
    var contentCount = Int(remaining[1])
    if contentCount >= 0x80 {
      let lengthByteCount = contentCount & 0x7F
      guard (1...4).contains(lengthByteCount), remaining.count >= 2 + lengthByteCount else {
        throw CertificateError(.malformed, "\(name()) has an impossible length")
      }
      headerCount += lengthByteCount
      contentCount = remaining[2..<headerCount].reduce(0) { $0 << 8 | Int($1) }
      guard contentCount >= 0x80, remaining[2] != 0 else {
        throw CertificateError(.malformed, "\(name()) has a length that is not in its shortest form")
      }
    }
    guard contentCount <= remaining.count - headerCount else {
      throw CertificateError(.malformed, "\(name()) is cut short")
    }
    let end = headerCount + contentCount
    defer { remaining = UnsafeRawBufferPointer(rebasing: remaining[end...]) }
    return Element(
      tag: tag, encoding: UnsafeRawBufferPointer(rebasing: remaining[..<end]),
      contents: UnsafeRawBufferPointer(rebasing: remaining[headerCount..<end]))
  }

  /// Reads the next element, which must have the given tag.
  mutating func next(_ tag: Tag, _ name: @autoclosure () -> String) throws(CertificateError) -> Element {
    let element = try next(name())
    guard element.tag == tag else { throw CertificateError(.malformed, "\(name()) has another type") }
    return element
  }

  /// Reads the next element if it has the given tag; otherwise returns `nil` and skips nothing.
  mutating func nextIfPresent(_ tag: Tag, _ name: @autoclosure () -> String) throws(CertificateError) -> Element? {
    nextTag == tag ? try next(name()) : nil
  }

  /// Reads a nonnegative integer and returns its bytes, the most significant first, without a leading zero. The number 0
  /// has no bytes.
  mutating func nextUnsigned(_ name: @autoclosure () -> String) throws(CertificateError) -> UnsafeRawBufferPointer {
    let contents = try next(.integer, name()).contents
    guard let first = contents.first, first < 0x80 else {
      throw CertificateError(.malformed, "\(name()) is negative or empty")
    }
    guard first == 0 else { return contents }
    guard contents.count == 1 || contents[1] >= 0x80 else {
      throw CertificateError(.malformed, "\(name()) is not in its shortest form")
    }
    return UnsafeRawBufferPointer(rebasing: contents[1...])
  }

  /// Reads a bit string of complete bytes and returns its contents.
  mutating func nextBitString(_ name: @autoclosure () -> String) throws(CertificateError) -> UnsafeRawBufferPointer {
    try Self.wholeBytes(of: next(.bitString, name()), name())
  }

  /// Returns the contents of a bit string, whose number of bits must be a multiple of 8.
  static func wholeBytes(
    of element: Element, _ name: @autoclosure () -> String
  ) throws(CertificateError) -> UnsafeRawBufferPointer {
    guard element.contents.first == 0 else {
      throw CertificateError(.malformed, "\(name()) is not made of whole bytes")
    }
    return UnsafeRawBufferPointer(rebasing: element.contents[1...])
  }

  func checkEnd(_ name: @autoclosure () -> String) throws(CertificateError) {
    guard isAtEnd else { throw CertificateError(.malformed, "\(remaining.count) bytes follow \(name())") }
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
