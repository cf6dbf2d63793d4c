import Basics
import Testing

@Suite("Shell quoting")
struct ShellQuotingTests {
  @Test(
    "A quoted name is one word for a shell",
    arguments: [
      ("family.backup", "family.backup"), ("my phone", "'my phone'"), ("it's", #"'it'\''s'"#), ("$(rm)", "'$(rm)'"),
      ("", "''"), ("a\nb", #"'a\u{A}b'"#), ("~/x", "'~/x'"),
      // Each apostrophe forms one `Character` with a mark after it or a letter before it.
      ("a'\u{301};b", "'a'\\''\u{301};b'"), ("\u{D4E}';b", "'\u{D4E}'\\'';b'"),
    ])
  func shell(name: String, word: String) {
    #expect(ShellQuoting.quote(name) == word)
  }

  @Test(
    "An argument is repeated if it can be copied, and otherwise replaced with a placeholder",
    arguments: [
      ("family.backup", "family.backup"), ("./old phone", "'./old phone'"), ("--help", "./--help"),
      ("-\u{301}x", "'./-\u{301}x'"),
      ("-x/y.backup", "./-x/y.backup"), ("a\u{1B}b", "WORD"), ("gpj.\u{202E}exe", "WORD"), (#"a\u{1B}b"#, "WORD"),
      ("", "WORD"), (nil, "WORD"),
    ] as [(String?, String)])
  func typed(argument: String?, word: String) {
    #expect(ShellQuoting.argument(argument, placeholder: "WORD") == word)
  }
}
