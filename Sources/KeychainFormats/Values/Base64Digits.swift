/// Bytes as base64 (RFC 4648, section 4), a digit at a time: where they go is the caller's, for they may be a secret.
package enum Base64Digits {
  /// The digits in one text, for what is no secret.
  package static func text(of bytes: some RandomAccessCollection<UInt8>) -> String {
    var digits: [UInt8] = []
    forEach(of: bytes) { digits.append($0) }
    return String(decoding: digits, as: UTF8.self)
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Calls `body` with each digit in order, the padding included.
  package static func forEach(of bytes: some RandomAccessCollection<UInt8>, _ body: (UInt8) -> Void) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let group = rest.prefix(3)
      rest = rest.dropFirst(3)
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
      for place in 0..<4 {
        body(place <= group.count ? alphabet[Int(bits >> (18 - 6 * UInt32(place)) & 63)] : UInt8(ascii: "="))
      }
    }
  }
}
