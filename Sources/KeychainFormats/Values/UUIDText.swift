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
}
