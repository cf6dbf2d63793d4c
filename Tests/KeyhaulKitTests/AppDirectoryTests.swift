import KeychainFormats
import KeychainRules
import Testing

@testable import KeyhaulKit

@Suite("App directory")
struct AppDirectoryTests {
  private func app(_ group: String?) -> AppName {
    directory.app(of: ItemDescriptor(undecryptable: .genericPassword, accessGroup: group))
  }

  private let directory = AppDirectory(
    installed: ["org.example.chat": "Example Chat", "org.example.mail": "Example Mail", "org.example.tool": "Tool"],
    groups: ["org.example.mail": ["group.org.example"], "org.example.tool": ["group.org.example"]])

  @Test("A team's group with an installed app's identifier belongs to that app")
  func ownGroup() {
    #expect(app("ABCDE12345.org.example.chat").displayName == "Example Chat")
  }

  @Test(
    "A group without an installed app is shown by its own name, with its team if it has one",
    arguments: [
      ("ABCDE12345.org.example.chat.shared", "org.example.chat.shared (team ABCDE12345)"),
      ("ABCDE12345.org.example", "org.example (team ABCDE12345)"),
      ("ABCDE12345.Org.Example.Chat", "Org.Example.Chat (team ABCDE12345)"),
      ("group.org.example.chat", "group group.org.example.chat"), ("org.example.chat", "group org.example.chat"),
      ("abcde12345.org.example.chat", "group abcde12345.org.example.chat"),
    ])
  func groupsWithoutApp(group: String, displayName: String) {
    let app = app(group)
    #expect(app.displayName == displayName && app.kind != .app)
  }

  @Test("An app group belongs to all apps whose entries list it")
  func appGroup() {
    #expect(app("group.org.example").displayName == "Example Mail, Tool")
  }

  /// The categories are Apple's genre IDs: 6000 Business, 6002 Utilities, 6005 Social Networking, 6012 Lifestyle and 6015
  /// Finance.
  @Test(
    "An app's kind comes from its category, its identifier or a word of its name",
    arguments: [
      ("com.google.Authenticator", nil, nil, "authenticator"),
      ("a.b", "Microsoft Authenticator", 6000, "authenticator"),
      ("a.b", "Duo Mobile", 6000, "authenticator"), ("com.example.authenticator", nil, nil, "authenticator"),
      ("org.whispersystems.signal", nil, nil, "messenger"), ("a.b", "Threema. The Secure Messenger", 6005, "messenger"),
      ("a.b", "Trust: Crypto & Bitcoin Wallet", 6015, "wallet"), ("a.b", "PayPal", 6015, "finance"),
      ("a.b", "Example Bank", nil, "finance"), ("a.b", "Instagram", 6005, nil), ("a.b", "Banknotes", 6012, nil),
      ("a.b", nil, nil, nil), ("org.example.chat", "Chat", 6002, nil),
    ] as [(String, String?, Int64?, String?)])
  func kinds(identifier: String, name: String?, genre: Int64?, kind: String?) {
    #expect(AppKind(identifier: identifier, name: name, genre: genre)?.rawValue == kind)
  }
}
