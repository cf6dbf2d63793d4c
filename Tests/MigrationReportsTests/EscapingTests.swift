import Testing

@testable import MigrationReports

@Suite("Words on a page")
struct EscapingTests {
  @Test("base64 follows RFC 4648, section 10", arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
  ])
  func base64(text: String, encoded: String) {
    #expect(ContentPolicy.base64(Array(text.utf8)) == encoded)
  }
}
