/// A name in a certificate, normalized as a keychain compares and stores it.
///
/// The stored bytes are the contents of the Name, without the tag and length of its outer SEQUENCE. Each
/// PrintableString is in upper case, without outer blanks and with single inner blanks. Other strings are unchanged.
/// Source: Apple `SecCertificate.c` (`createNormalizedX501Name`); RFC 5280, 4.1.2.4.
struct DistinguishedName {
  let normalizedContents: [UInt8]
  /// The common name, or else the unit, the organization or the first text; `nil` if there is none.
  let summary: String?
  /// The last common name, or `nil` if there is none.
  let commonName: String?

  /// Reads a name.
  ///
  /// - Parameter name: The DER of a Name.
  init(_ name: UnsafeRawBufferPointer) throws(CertificateError) {
    var parts = try ASN1Cursor(membersOfOnlySequence: name, "a name")
    var contents: [UInt8] = []
    var texts: [(attribute: Attribute, text: String)] = []
    while !parts.isAtEnd {
      var set = try parts.next(.set, "a part of a name").cursor
      guard !set.isAtEnd else { throw CertificateError(.malformed, "a part of a name is empty") }
      var members: [UInt8] = []
      while !set.isAtEnd {
        var pair = try set.next(.sequence, "an attribute of a name").cursor
        let type = try pair.next(.objectIdentifier, "the type of an attribute")
        let value = try pair.next("the value of an attribute")
        try pair.checkEnd("an attribute of a name")
        members += ASN1Encoding.element(.sequence, Array(type.encoding) + Self.normalized(value))
        if let text = Self.text(of: value) { texts.append((Attribute(type.contents), text)) }
      }
      contents += ASN1Encoding.element(.set, members)
    }
    normalizedContents = contents
    commonName = texts.last { $0.attribute == .commonName }?.text
    summary =
      Self.summaryOrder.lazy.compactMap { attribute in texts.last { $0.attribute == attribute }?.text }.first
      ?? texts.first?.text
  }

  private enum Attribute {
    case commonName, organizationalUnit, organization, other

    init(_ identifier: UnsafeRawBufferPointer) {
      // Attributes of X.520 have the arc 2.5.4.
      guard identifier.count == 3, identifier[0] == 0x55, identifier[1] == 0x04 else {
        self = .other
        return
      }
      self =
        switch identifier[2] {
        case 3: .commonName
        case 11: .organizationalUnit
        case 10: .organization
        default: .other
        }
    }
  }

  /// The attributes for `summary`, the best first.
  private static let summaryOrder: [Attribute] = [.commonName, .organizationalUnit, .organization]

  private static func normalized(_ value: ASN1Cursor.Element) -> [UInt8] {
    guard value.tag == .printableString else { return Array(value.encoding) }
    let words = value.contents.split { $0 == 0x20 || $0 == 0x09 }
    let lowercase = UInt8(ascii: "a")...UInt8(ascii: "z")
    let text = words.joined(separator: [0x20]).map { lowercase.contains($0) ? $0 - 0x20 : $0 }
    return ASN1Encoding.element(.printableString, text)
  }

  /// UTF8String, NumericString, PrintableString, TeletexString, IA5String and VisibleString (ITU-T X.680, 8.4).
  private static let asciiOrUTF8Tags: Set<UInt8> = [0x0C, 0x12, 0x13, 0x14, 0x16, 0x1A]
  private static let bmpStringTag: UInt8 = 0x1E

  /// Returns the text of a string, or `nil` if the value has another type or invalid bytes. Teletex strings are treated
  /// as ASCII.
  private static func text(of value: ASN1Cursor.Element) -> String? {
    if value.tag.rawValue == bmpStringTag { return bigEndianText(of: value.contents) }
    guard asciiOrUTF8Tags.contains(value.tag.rawValue), !value.contents.isEmpty else { return nil }
    return String(validating: value.contents, as: UTF8.self)
  }

  /// Returns the text of a BMPString, with two bytes for each character.
  private static func bigEndianText(of bytes: UnsafeRawBufferPointer) -> String? {
    guard !bytes.isEmpty, bytes.count.isMultiple(of: 2) else { return nil }
    let units = stride(from: 0, to: bytes.count, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
    return String(validating: units, as: UTF16.self)
  }
}
