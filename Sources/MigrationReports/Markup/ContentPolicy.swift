import DataProtection

/// What a browser may do for a page: use its one style sheet, and nothing else. No script runs, nothing is fetched, no
/// form is sent, whatever slipped into the page.
///
/// Source: W3C, Content Security Policy Level 3.
enum ContentPolicy {
  /// The policy that admits this style sheet by its digest, and no other style.
  static func admitting(style sheet: String) throws(DataProtectionError) -> String {
    let digest = base64(try Digest.sha256(Array(sheet.utf8)))
    return "default-src 'none'; style-src 'sha256-\(digest)'; base-uri 'none'; form-action 'none'"
  }

  /// RFC 4648, section 4.
  static func base64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var result: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let word = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for position in 0..<4 {
        let isPadding = position > group.count
        result.append(isPadding ? UInt8(ascii: "=") : alphabet[word >> (18 - 6 * position) & 0x3F])
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}
