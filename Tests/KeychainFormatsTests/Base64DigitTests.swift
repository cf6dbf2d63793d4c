import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Base64 digits and internet protocols")
struct Base64DigitTests {
  /// Source: RFC 4648, section 10.
  @Test(
    "Base64 digits match the examples of RFC 4648",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func digits(text: String, expected: String) {
    #expect(Base64Digits.text(of: Array(text.utf8)) == expected)
  }

  @Test("Base64 digits of any bytes match Foundation's")
  func random() {
    var source = SeededRandom(seed: 64)
    for count in 0..<200 {
      let bytes = source.bytes(count)
      #expect(Base64Digits.text(of: bytes) == Data(bytes).base64EncodedString())
    }
  }

  @Test("Protocols are found by name in any case, with the code, scheme and port of Apple and IANA")
  func protocols() {
    #expect(InternetProtocol(name: "HTTPS")?.rawValue == "htps")
    #expect(InternetProtocol(name: "telnet")?.rawValue == "teln")
    #expect(InternetProtocol(name: "gopher") == nil)
    #expect(InternetProtocol(rawValue: "imps").scheme == "imaps")
    #expect(InternetProtocol(rawValue: "imps").standardPort == 993)
    #expect(InternetProtocol(rawValue: "none").scheme == nil)
    #expect(InternetProtocol.names.allSatisfy { InternetProtocol(name: $0)?.rawValue.utf8.count == 4 })
    #expect(InternetProtocol.names == InternetProtocol.names.sorted())
  }
}
