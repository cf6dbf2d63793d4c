import KeychainFormats

/// Bytes as `-[NSData description]` prints them: `{length = 3, bytes = 0x616263}`, or `<616263>` up to iOS 12.
enum DataDescription {
  /// The result of reading a text.
  enum Reading: Equatable {
    /// The text describes all of the bytes.
    case bytes([UInt8])
    /// The text describes bytes, but not all of them.
    case incomplete
    /// The text is not a description.
    case other
  }

  /// Reads a text. Only a text that follows one of the two formats exactly counts as a description.
  static func read(_ text: String) -> Reading {
    if text.hasPrefix("<"), text.hasSuffix(">") { return readGroups(Array(text.utf8.dropFirst().dropLast())) }
    let start = "{length = "
    guard text.hasPrefix(start), text.hasSuffix("}") else { return .other }
    let members = text.dropFirst(start.utf8.count).dropLast()
    let number = members.prefix { $0.isASCII && $0.isNumber }
    guard let length = Int(number) else { return .other }
    let remainder = members.dropFirst(number.count)
    if remainder.isEmpty { return length == 0 ? .bytes([]) : .other }
    let separator = ", bytes = 0x"
    guard remainder.hasPrefix(separator) else { return .other }
    // The description omits the middle of long data: "0x00010203 04050607 ... 1c1d1e1f ".
    let parts = remainder.dropFirst(separator.utf8.count).split(separator: " ... ", maxSplits: 1)
    guard let bytes = HexadecimalDigits.bytes(of: parts.joined().utf8.lazy.filter { $0 != space }),
      bytes.count <= length
    else { return .other }
    return parts.count < 2 && bytes.count == length ? .bytes(bytes) : .incomplete
  }

  private static let space = UInt8(ascii: " ")

  /// Reads groups of eight digits with a space between them. The last group may be shorter.
  private static func readGroups(_ groups: [UInt8]) -> Reading {
    let digitCount = 8
    guard let last = groups.last, last != space,
      groups.indices.allSatisfy({ (groups[$0] == space) == ($0 % (digitCount + 1) == digitCount) })
    else { return .other }
    return HexadecimalDigits.bytes(of: groups.lazy.filter { $0 != space }).map(Reading.bytes) ?? .other
  }
}
