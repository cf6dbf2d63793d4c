import KeyhaulKit
import Testing

@testable import Reports

@Suite("URLs of items")
struct ItemURLTests {
  private func url(
    _ server: String, code: String? = nil, port: Int64 = 0, path: String = ""
  ) -> String {
    var attributes: AttributeMap<PropertyValue> = [
      .server: .string(server), .port: .integer(port), .path: .string(path),
    ]
    attributes[.protocolType] = code.map { .string($0) }
    return ItemURL.text(of: .internet(attributes))
  }

  /// Codes of Apple's SecItemConstants.c, schemes as IANA lists them.
  @Test(
    "The URL begins with the scheme for Apple's protocol code",
    arguments: [
      ("htps", "https://h"), ("http", "http://h"), ("ftp ", "ftp://h"), ("ftps", "ftps://h"), ("imap", "imap://h"),
      ("imps", "imaps://h"), ("pop3", "pop://h"), ("smtp", "smtp://h"), ("ldps", "ldaps://h"), ("ssh ", "ssh://h"),
      ("smb ", "smb://h"), ("teln", "telnet://h"), ("afp ", "afp://h"), ("xyz ", "h"), ("0", "h"),
    ])
  func schemes(code: String, expected: String) { #expect(url("h", code: code) == expected) }

  @Test("The URL has a port only if it is not the default port")
  func ports() {
    #expect(url("h", code: "htps", port: 443) == "https://h")
    #expect(url("h", code: "htps", port: 8443) == "https://h:8443")
    #expect(url("h", code: "http", port: 443) == "http://h:443")
    #expect(url("h", port: 22) == "h:22")
    #expect(url("h", port: 65_535) == "h:65535")
    for impossible: Int64 in [0, -1, 65_536] { #expect(url("h", port: impossible) == "h") }
  }

  @Test("The path is percent-encoded")
  func paths() {
    #expect(url("h", code: "htps", path: "/login") == "https://h/login")
    #expect(url("h", code: "htps", path: "login?a=b&c=%20#x") == "https://h/login?a=b&c=%20#x")
    #expect(url("h", code: "htps", path: "/") == "https://h")
    #expect(url("h", code: "htps", path: "/a b\"<ä\n") == "https://h/a%20b%22%3C%C3%A4%0A")
  }

  @Test("An IPv6 address is in brackets")
  func addresses() {
    #expect(url("2001:db8::1", code: "htps", port: 8443) == "https://[2001:db8::1]:8443")
    #expect(url("[::1]", code: "http") == "http://[::1]")
    #expect(url("::", code: "http") == "http://[::]")
    #expect(url("fe80::1%en0", code: "ssh ") == "ssh://[fe80::1%en0]")
    #expect(url("1:2:3:4:5:6:7:8") == "[1:2:3:4:5:6:7:8]")
    #expect(url("::ffff:192.0.2.1") == "[::ffff:192.0.2.1]")
  }

  @Test("Other servers with a colon are not in brackets, and a port is not repeated")
  func colons() {
    #expect(url("h:8443", code: "htps") == "https://h:8443")
    #expect(url("h:8443", code: "htps", port: 8443) == "https://h:8443")
    for text in ["1:2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "a::b::c", "1:::2", "12345::", "::g", "::1.2.3", ":1"] {
      #expect(url(text, code: "htps") == "https://\(text)")
    }
  }

  @Test("A server that is already a URL is not changed")
  func urlAsServer() {
    #expect(url("https://e.example/login", code: "htps") == "https://e.example/login")
    #expect(url("HTTP://e.example:8080/a b", code: "htps", port: 443, path: "/x") == "HTTP://e.example:8080/a b")
    #expect(url("app+web.2://e", code: "http") == "app+web.2://e")
    #expect(url("://e", code: "http") == "http://://e")
  }

  @Test("The URL of a generic password is its service, if that is a URL")
  func generic() {
    func url(_ service: String) -> String { ItemURL.text(of: .generic([.service: .string(service)])) }
    #expect(url("https://example.org/x") == "https://example.org/x")
    #expect(url("HTTP://example.org") == "HTTP://example.org")
    #expect(url("com.example.app") == "")
    #expect(ItemURL.text(of: .internet([:])) == "")
  }
}
