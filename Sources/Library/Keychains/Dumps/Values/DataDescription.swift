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

  /// Reads a text. Only a text of exactly the described form counts as a description.
  static func read(_ text: String) -> Reading {
    if text.hasPrefix("<"), text.hasSuffix(">") {
      let groups = text.dropFirst().dropLast().split(separator: " ", omittingEmptySubsequences: false)
      guard groups.dropLast().allSatisfy({ $0.utf8.count == 8 }), groups.allSatisfy({ !$0.isEmpty }) else {
        return .other
      }
      return HexadecimalDigits.bytes(of: groups.joined()).map(Reading.bytes) ?? .other
    }
    let start = "{length = "
    guard text.hasPrefix(start), text.hasSuffix("}") else { return .other }
    let parts = text.dropFirst(start.utf8.count).dropLast().split(separator: ", bytes = 0x", maxSplits: 1)
    guard let length = parts.first.flatMap({ Int($0) }), length >= 0 else { return .other }
    if length == 0 { return .bytes([]) }
    guard parts.count == 2 else { return .other }
    // The description omits the middle of long data: "0x00010203 04050607 ... 1c1d1e1f ".
    let digits = parts[1].split(separator: " ")
    if digits.contains("...") { return .incomplete }
    guard let bytes = HexadecimalDigits.bytes(of: digits.joined()) else { return .other }
    return bytes.count == length ? .bytes(bytes) : .incomplete
  }
}
