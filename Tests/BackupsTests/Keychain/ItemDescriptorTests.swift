import Backups
import KeychainFormats
import Testing

@Suite("Item descriptors")
struct ItemDescriptorTests {
  private let item = KeychainItem(
    kind: .genericPassword,
    attributes: [
      "acct": .string("anna"), "svce": .string("mail.example.org"), "icmt": .string("a private comment"),
    ])

  @Test("A descriptor that shares its names with the item equals one with copied names")
  func sharedNames() {
    #expect(ItemDescriptor.sharing(item) == ItemDescriptor(item))
    #expect(ItemDescriptor.sharing(item).account == "anna" && ItemDescriptor.sharing(item).label == nil)
  }

  @Test("A dump of a descriptor contains only the names, even if it shares them with the item")
  func dumped() {
    for descriptor in [ItemDescriptor.sharing(item), ItemDescriptor(item)] {
      var text = ""
      dump(descriptor, to: &text)
      text += String(reflecting: descriptor)
      #expect(text.contains("anna") && text.contains("mail.example.org"))
      #expect(!text.contains("private comment"), "\(text)")
    }
  }
}
