/// The hyphenated text of sixteen bytes: keybag and item identifiers, without Foundation.
package enum UUIDText {
  /// Upper case, as the keychain writes item identifiers; `nil` unless there are sixteen bytes.
  package static func uppercase(_ bytes: [UInt8]) -> String? { bytes.count == 16 ? uppercase(SIMD16(bytes)) : nil }

  /// Upper case.
  package static func uppercase(_ bytes: SIMD16<UInt8>) -> String { hyphenated(bytes, digits: "0123456789ABCDEF") }

  /// Lower case, as a backup writes `keybag-uuid`; `nil` unless there are sixteen bytes.
  package static func lowercase(_ bytes: [UInt8]) -> String? {
    bytes.count == 16 ? hyphenated(SIMD16(bytes), digits: "0123456789abcdef") : nil
  }

  private static func hyphenated(_ bytes: SIMD16<UInt8>, digits: String) -> String {
    let digits = Array(digits)
    return bytes.indices.reduce(into: "") { text, index in
      if [4, 6, 8, 10].contains(index) { text.append("-") }
      text.append(digits[Int(bytes[index] >> 4)])
      text.append(digits[Int(bytes[index] & 0xF)])
    }
  }
}
