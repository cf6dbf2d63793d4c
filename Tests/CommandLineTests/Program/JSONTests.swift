import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("JSON output")
struct JSONTests {
  @Test("Fields keep their order, on lines of their own")
  func order() {
    let document: JSONValue = ["z": 1, "a": ["x", nil, true], "empty": [], "none": [:]]
    #expect(
      document.text() == """
        {
          "z": 1,
          "a": [
            "x",
            null,
            true
          ],
          "empty": [],
          "none": {}
        }
        """)
    #expect(document.compactText() == #"{"z":1,"a":["x",null,true],"empty":[],"none":{}}"#)
  }

  @Test("JSON keeps every character of a name, and escapes control characters")
  func names() throws {
    let name = "a\"b\\c\u{1B}[2J\u{202E}\u{0}\n\u{E0041}日本❤️/"
    let text = JSONValue.string(name).compactText()
    #expect(text == #""a\"b\\c\u001b[2J\u202e\u0000\n\udb40\udc41日本❤️/""#)
    let decoded = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    #expect(decoded as? String == name)
  }
}
