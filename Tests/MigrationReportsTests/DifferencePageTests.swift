import ArchivedKeychain
import KeychainFormats
import Testing

@testable import MigrationReports

@Suite("The page of a comparison")
struct DifferencePageTests {
  /// A generic password with a secret that no page may show.
  private func item(
    _ account: String, service: String = "chat.example", _ protection: ProtectionClass = .whenUnlocked,
    secret: String = "planted-secret", label: String? = nil, group: String = "ABCDE12345.org.example.chat"
  ) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string(service), .accessGroup: .string(group),
        .modificationDate: .date(KeychainDate(secondsSinceReferenceDate: 0)), .synchronizable: .integer(0),
      ])
    if let label { item[.label] = .string(label) }
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array(secret.utf8))
    return item
  }

  private func open(_ items: [KeychainItem]) -> [ComparedItem] {
    items.enumerated().map { ComparedItem(index: $0, item: $1) }
  }

  private func side(
    _ name: String, _ kind: DifferencePage.Side.Kind = .archive, leftOut: [DifferencePage.LeftOut] = []
  ) -> DifferencePage.Side {
    DifferencePage.Side(
      kind: kind, name: name, argument: name, deviceName: "old-phone", itemCount: 3, leftOut: leftOut)
  }

  private func page(
    _ first: [ComparedItem], _ second: [ComparedItem], from one: DifferencePage.Side? = nil,
    to other: DifferencePage.Side? = nil
  ) throws -> DifferencePage {
    DifferencePage(
      from: one ?? side("monday.backup"), to: other ?? side("family.backup"),
      try KeychainDifference(from: first, to: second), program: "keyhaul 1.0")
  }

  @Test("says in one sentence what is new, changed, gone and the same")
  func verdicts() throws {
    let (anna, berta, carl) = (item("anna"), item("berta"), item("carl"))
    let sealed = ComparedItem(
      index: 0, sealed: ItemIdentity(sealed: .key), protection: nil, persistentReference: nil, reason: .deviceBound)
    let verdicts: [([ComparedItem], [ComparedItem], String)] = [
      ([], [], "There is nothing to compare."),
      (open([anna, berta]), open([berta, anna]), "Nothing differs: 2 items on both sides."),
      ([sealed], [sealed], "None of the items can be compared."),
      (open([anna]) + [sealed], open([anna]), "What can be compared is the same: 1 item."),
      (open([anna]), open([berta, carl]), "2 items are new, 1 is gone; nothing is the same."),
      (
        open([anna, berta]), open([item("anna", secret: "another"), berta, carl]),
        "1 item is new, 1 changed; 1 is the same."
      ),
      (open([anna, berta, carl]), open([anna, berta]), "1 item is gone; 2 are the same."),
    ]
    for (first, second, verdict) in verdicts { #expect(try page(first, second).verdict == verdict) }
  }

  @Test("names the attributes that changed and that a secret did, and no value of either")
  func changes() throws {
    let words = try PageReader(
      page(
        open([item("anna", secret: "first-secret"), item("berta", label: "old-label")]),
        open([
          item("anna", .afterFirstUnlock, secret: "second-secret"), item("berta", label: "new-label"),
        ])
      ).html()
    ).words
    #expect(words.contains("secret and protection changed"))
    #expect(words.contains("label changed"))
    #expect(words.contains("Changed in family.backup (2)"))
    // The label is a name of the item, and its account is what the table calls it by.
    for value in ["first-secret", "second-secret", "old-label"] { #expect(!words.contains(value), "\(value)") }
  }

  @Test("tells what could not be compared, and what no backup holds, each with its reason")
  func left() throws {
    let sealed = ComparedItem(
      index: 4, sealed: ItemIdentity(sealed: .key), protection: nil, persistentReference: nil, reason: .tagMismatch)
    var wallet = ItemIdentity(sealed: .genericPassword)
    wallet.service = "wallet"
    let words = try PageReader(
      page(
        [sealed], open([item("anna")]),
        to: side("old-phone", .device, leftOut: [.init(wallet, because: .passcodeOnly)])
      ).html()
    ).words
    #expect(words.contains("1 only in monday.backup"))
    #expect(words.contains("1 of them cannot be read because of damage"))
    #expect(words.contains("wallet") && words.contains("passcode-only"))
    #expect(words.contains("keyhaul   verify   monday.backup"))
    #expect(words.contains("keyhaul   backup   old-phone   -o   new.backup"))
  }

  @Test("is well-formed and inert, whatever the names are", arguments: HostilePageTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader {
      let one = item(name, service: name, secret: "one", group: name)
      let two = item(name, service: name, secret: "two", group: name)
      return try PageReader(page(open([one, item("gone")]), open([two, item(name + "2")]), from: side(name)).html())
    }
    let read = try structure(name)
    let harmless = try structure("name")
    #expect(read.elements.filter { $0 != "span" } == harmless.elements.filter { $0 != "span" })
    #expect(read.attributes == harmless.attributes)
    #expect(!read.elements.contains("script"))
  }

  @Test("folds a long list, and shows a short one at once")
  func folding() throws {
    let many = (0..<60).map { item("account-\($0)") }
    #expect(try page([], open(many)).html().contains(#"<details class="items"><summary>"#))
    #expect(try page([], open(Array(many.prefix(3)))).html().contains(#"<details class="items" open="open"><summary>"#))
  }
}
