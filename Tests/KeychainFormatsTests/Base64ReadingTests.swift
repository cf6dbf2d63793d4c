import Basics
import Foundation
import Testing

@testable import KeychainFormats

@Suite("Reading base64")
struct Base64ReadingTests {
  @Test("gives back every length, as Foundation writes it")
  func roundTrip() {
    for count in 0...50 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + 5) }
      #expect(Base64Digits.bytes(of: Data(bytes).base64EncodedString().utf8) == bytes)
    }
  }

  @Test("may have ends of lines between its digits")
  func lines() {
    #expect(Base64Digits.bytes(of: "TWls\r\nay E\n=".utf8) == Array("Milk!".utf8))
  }

  @Test(
    "is refused where it is cut, where something follows its padding, and where a digit is none",
    arguments: ["T", "TW", "TWl", "TWlsa", "TW=s", "====", "T===", "=TWl", "TWl*", "bplist00\u{0}"])
  func refused(text: String) {
    #expect(Base64Digits.bytes(of: text.utf8) == nil)
  }
}
