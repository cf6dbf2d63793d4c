import Backups
import Basics
import KeychainFormats
import Testing

@Suite("Glob patterns")
struct GlobPatternTests {
  @Test(
    "Only the star is special in a glob pattern",
    arguments: [
      ("chat", "chat", true), ("chat", "chatter", false), ("chat", "Chat", false), ("", "", true), ("", "x", false),
      ("*", "", true), ("*", "anything", true), ("chat*", "chat", true), ("chat*", "chatter", true),
      ("*.example", "chat.example", true), ("*.example", ".example", true), ("*.example", "example", false),
      ("a*a", "a", false), ("a*a", "aa", true), ("a*a", "abca", true), ("a*b*c", "aXbYc", true),
      ("a*b*c", "abc", true), ("a*b*c", "acb", false), ("a*bc*bc", "abcbc", true), ("a*bc*bc", "abc", false),
      ("**", "", true), ("a**b", "ab", true), ("?", "?", true), ("?", "x", false), ("[ab]", "a", false),
      (#"\*"#, "*", true), (#"\*"#, "x", false), (#"a\**"#, "a*b", true), (#"a\**"#, "ab", false),
      (#"DOMAIN\user"#, #"DOMAIN\user"#, true), (#"*\*"#, "x*", true), ("é*", "é!", true),
      ("é*", "e\u{301}!", false),
    ] as [(String, String, Bool)])
  func matching(pattern: String, text: String, expected: Bool) {
    #expect(GlobPattern(pattern).matches(.string(text)) == expected)
    #expect(GlobPattern(pattern).matches(.data(Array(text.utf8))) == expected)
  }

  @Test("A glob pattern without a star matches one string")
  func single() {
    #expect(GlobPattern("chat").text == "chat")
    #expect(GlobPattern(#"five \* six"#).text == "five * six")
    #expect(GlobPattern("chat*").text == nil)
  }

  @Test("A glob pattern matches decimal numbers, and no absent attribute")
  func numbersAndAbsence() {
    #expect(GlobPattern("4*").matches(.integer(443)))
    #expect(!GlobPattern("*").matches(nil))
    #expect(!GlobPattern("*").matches(.date(.reference)))
  }

  @Test("Matching many stars in a long text is fast")
  func manyStars() {
    let text = String(repeating: "a", count: 100_000)
    #expect(!GlobPattern(String(repeating: "a*", count: 1000) + "b").matches(.string(text)))
    #expect(GlobPattern(String(repeating: "a*", count: 1000)).matches(.string(text)))
  }
}
