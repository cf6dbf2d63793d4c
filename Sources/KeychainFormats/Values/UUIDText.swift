/// The hyphenated text of sixteen bytes: keybag and item identifiers, without Foundation.
package enum UUIDText {
  /// Upper case, as the keychain writes item identifiers; `nil` unless there are sixteen bytes.
  package static func uppercase(_ bytes: [UInt8]) -> String? { hyphenated(bytes, digits: "0123456789ABCDEF") }

  /// Lower case, as a backup writes `keybag-uuid`; `nil` unless there are sixteen bytes.
  package static func lowercase(_ bytes: [UInt8]) -> String? { hyphenated(bytes, digits: "0123456789abcdef") }

  private static func hyphenated(_ bytes: [UInt8], digits: String) -> String? {
    guard bytes.count == 16 else { return nil }
    let digits = Array(digits)
    return bytes.enumerated().reduce(into: "") { text, element in
      if [4, 6, 8, 10].contains(element.offset) { text.append("-") }
      text.append(digits[Int(element.element >> 4)])
      text.append(digits[Int(element.element & 0xF)])
    }
  }

  /// The sixteen bytes of a hyphenated text in either case; `nil` for anything else.
  package static func bytes(of text: String) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count == 36, [8, 13, 18, 23].allSatisfy({ characters[$0] == UInt8(ascii: "-") }) else {
      return nil
    }
    var nibbles: [UInt8] = []
    for (index, character) in characters.enumerated() where ![8, 13, 18, 23].contains(index) {
      switch character {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): nibbles.append(character - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): nibbles.append(character - UInt8(ascii: "a") + 10)
      case UInt8(ascii: "A")...UInt8(ascii: "F"): nibbles.append(character - UInt8(ascii: "A") + 10)
      default: return nil
      }
    }
    return stride(from: 0, to: 32, by: 2).map { nibbles[$0] << 4 | nibbles[$0 + 1] }
  }
}
