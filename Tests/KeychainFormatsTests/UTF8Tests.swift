import Basics
import Testing

@testable import KeychainFormats

@Suite("Text from bytes")
struct UTF8Tests {
  /// Source: RFC 3629. Overlong forms, surrogates, values above U+10FFFF and truncated sequences are invalid.
  @Test(
    "UTF-8 bytes become text, and other bytes are rejected",
    arguments: [
      ([], ""), (Array("acct".utf8), "acct"), ([0x41, 0], "A\0"), ([0xC3, 0xA4], "ä"), ([0xF0, 0x9F, 0x94, 0x91], "🔑"),
      ([0xC0, 0x80], nil), ([0xED, 0xA0, 0x80], nil), ([0xF4, 0x90, 0x80, 0x80], nil), ([0x41, 0xC3], nil),
      ([0x80], nil),
    ] as [([UInt8], String?)])
  func decoding(bytes: [UInt8], text: String?) {
    let decoded = bytes.withUnsafeBytes { String(utf8: $0) }
    #expect(decoded.map { Array($0.utf8) } == text.map { Array($0.utf8) })
  }

  @Test("Hexadecimal text has two lower-case digits for each byte")
  func hexadecimal() {
    #expect(String(hexadecimal: [0x00, 0x0F, 0xA0, 0xFF]) == "000fa0ff")
    #expect(String(hexadecimal: [UInt8]()) == "")
  }
}
