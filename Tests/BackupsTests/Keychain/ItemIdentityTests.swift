import Backups
import KeychainFormats
import Testing

@Suite("What an item is known by")
struct ItemIdentityTests {
  private let item = KeychainItem(
    kind: .genericPassword,
    attributes: [
      "acct": .string("anna"), "svce": .string("mail.example.org"), "icmt": .string("what nobody should see"),
    ])

  @Test("is the same whether its names are copied or not")
  func shared() {
    #expect(ItemIdentity.sharing(item) == ItemIdentity(item))
    #expect(ItemIdentity.sharing(item).account == "anna" && ItemIdentity.sharing(item).label == nil)
  }

  @Test("is all that a dump of it shows, also where the item is held with it")
  func dumped() {
    for identity in [ItemIdentity.sharing(item), ItemIdentity(item)] {
      var text = ""
      dump(identity, to: &text)
      text += String(reflecting: identity)
      #expect(text.contains("anna") && text.contains("mail.example.org"))
      #expect(!text.contains("nobody should see"), "\(text)")
    }
  }
}
