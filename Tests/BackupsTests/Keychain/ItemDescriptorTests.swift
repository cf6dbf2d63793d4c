import Backups
import KeychainFormats
import Testing

@Suite("Item identities")
struct ItemDescriptorTests {
  private let item = KeychainItem(
    kind: .genericPassword,
    attributes: [
      "acct": .string("anna"), "svce": .string("mail.example.org"), "icmt": .string("a private comment"),
    ])

  @Test("An identity with shared names equals one with copied names")
  func shared() {
    #expect(ItemDescriptor.sharing(item) == ItemDescriptor(item))
    #expect(ItemDescriptor.sharing(item).account == "anna" && ItemDescriptor.sharing(item).label == nil)
  }

  @Test("A dump of an identity contains only the names, even with a shared item")
  func dumped() {
    for identity in [ItemDescriptor.sharing(item), ItemDescriptor(item)] {
      var text = ""
      dump(identity, to: &text)
      text += String(reflecting: identity)
      #expect(text.contains("anna") && text.contains("mail.example.org"))
      #expect(!text.contains("private comment"), "\(text)")
    }
  }
}
