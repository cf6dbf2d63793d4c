import Basics
import KeychainFormats
import Testing
import VirtualDevice

@testable import Reports

@Suite("Escaping of text on pages")
struct EscapingTests {
  @Test(
    "Markup and invisible characters are escaped",
    arguments: [
      ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;"), ("a\u{202E}b", #"a\u{202E}b"#), ("a\u{0}\n", #"a\u{0}\u{A}"#),
      ("\u{FEFF}\u{FFFE}", #"\u{FEFF}\u{FFFE}"#), ("Café 日本 · …", "Café 日本 · …"), ("&amp;", "&amp;amp;"),
    ])
  func escaping(text: String, escaped: String) {
    #expect(HTMLWriter.escaped(text) == escaped)
  }

  @Test("A name of more than 160 characters is shortened and ends in an ellipsis")
  func length() {
    let longest = String(repeating: "x", count: HTMLWriter.maximumNameLength)
    #expect(HTMLWriter.shortened(longest) == longest)
    #expect(HTMLWriter.shortened(longest + "y") == longest + "…")
  }

  @Test(
    "A command has a device's name only if a virtual device can have that name",
    arguments: [
      ("old-phone", "old-phone"), ("--help", "DEVICE"), ("Anna's phone", "DEVICE"), ("../phone", "DEVICE"),
      (String(repeating: "x", count: 64), String(repeating: "x", count: 64)),
      (String(repeating: "x", count: 65), "DEVICE"), ("", "DEVICE"), (nil, "DEVICE"),
    ] as [(String?, String)])
  func device(name: String?, argument: String) {
    #expect(ShellQuoting.device(named: name) == argument)
  }

  @Test(
    "A date and time does not depend on the locale",
    arguments: [
      ("2026-11-20T18:04:10Z", "20 November 2026 at 18:04 UTC"),
      ("2026-01-02T01:30:00+02:00", "1 January 2026 at 23:30 UTC"),
      ("yesterday", "yesterday"),
    ])
  func dates(text: String, formatted: String) {
    #expect(LongDateFormat.dateAndTime(text) == formatted)
  }
}
