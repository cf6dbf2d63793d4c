import Basics
import Foundation
import Testing

@testable import KeychainFormats

@Suite("Base64 decoding")
struct Base64ReadingTests {
  @Test("Base64 that Foundation encodes from 0 to 50 bytes is decoded")
  func roundTrip() {
    for count in 0...50 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + 5) }
      #expect(Base64Digits.bytes(of: Data(bytes).base64EncodedString().utf8) == bytes)
    }
  }

  @Test("Base64 may contain spaces and line ends between its digits")
  func spaces() {
    #expect(Base64Digits.bytes(of: "TWls\r\nay E\n=".utf8) == Array("Milk!".utf8))
  }

  @Test(
    "Base64 is rejected if it is truncated, continues after its padding or has an invalid digit",
    arguments: ["T", "TW", "TWl", "TWlsa", "TW=s", "====", "T===", "=TWl", "TWl*", "bplist00\u{0}"])
  func refused(text: String) {
    #expect(Base64Digits.bytes(of: text.utf8) == nil)
  }
}
