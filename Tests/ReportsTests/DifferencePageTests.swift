import Backups
import Basics
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Reports

@Suite("Difference page")
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

  private func entries(_ items: [KeychainItem]) -> [KeychainEntry] {
    items.enumerated().map { KeychainEntry(index: $0, item: $1) }
  }

  private func side(
    _ name: String, _ kind: DifferencePage.Side.Kind = .archive, typed: String? = nil, hasKeychain: Bool = true,
    leftOut: [MigrationPlan.Decision] = []
  ) -> DifferencePage.Side {
    DifferencePage.Side(
      kind: kind, name: name, argument: typed ?? name, deviceName: "old-phone", itemCount: 3, hasKeychain: hasKeychain,
      leftOut: leftOut)
  }

  private func page(
    _ first: [KeychainEntry], _ second: [KeychainEntry], from firstSide: DifferencePage.Side? = nil,
    to secondSide: DifferencePage.Side? = nil
  ) throws -> DifferencePage {
    DifferencePage(
      from: firstSide ?? side("monday.backup"), to: secondSide ?? side("family.backup"),
      try KeychainDifference(from: first, to: second), program: "keyhaul 1.0")
  }

  @Test("The verdict counts new, changed, missing and equal items in one sentence")
  func verdicts() throws {
    let (anna, berta, carl) = (item("anna"), item("berta"), item("carl"))
    let sealed = KeychainEntry(
      index: 0, undecryptable: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .deviceBound)
    let verdicts: [([KeychainEntry], [KeychainEntry], String)] = [
      ([], [], "There is nothing to compare."),
      (entries([anna, berta]), entries([berta, anna]), "Nothing differs: 2 items on both sides."),
      ([sealed], [sealed], "None of the items can be compared."),
      (entries([anna]) + [sealed], entries([anna]), "All comparable items are the same: 1 item."),
      (entries([anna]), entries([berta, carl]), "2 items are new, 1 is missing; nothing is the same."),
      (
        entries([anna, berta]), entries([item("anna", secret: "another"), berta, carl]),
        "1 item is new, 1 changed; 1 is the same."
      ),
      (entries([anna, berta, carl]), entries([anna, berta]), "1 item is missing; 2 are the same."),
    ]
    for (first, second, verdict) in verdicts { #expect(try page(first, second).verdict == verdict) }
  }

  @Test("The page names changed attributes and changed secrets, but no values")
  func changes() throws {
    let visibleText = try PageReader(
      page(
        entries([item("anna", secret: "first-secret"), item("berta", label: "old-label")]),
        entries([
          item("anna", .afterFirstUnlock, secret: "second-secret"), item("berta", label: "new-label"),
        ])
      ).html()
    ).visibleText
    #expect(visibleText.contains("secret and protection changed"))
    #expect(visibleText.contains("label changed"))
    #expect(visibleText.contains("Changed in family.backup (2)"))
    // The table shows the account instead of the label.
    for value in ["first-secret", "second-secret", "old-label"] { #expect(!visibleText.contains(value), "\(value)") }
  }

  @Test("The page lists items that could not be compared and items in no backup, with their reasons")
  func uncompared() throws {
    let sealed = KeychainEntry(
      index: 4, undecryptable: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .tagMismatch)
    var wallet = ItemDescriptor(undecryptable: .genericPassword)
    wallet.service = "wallet"
    let visibleText = try PageReader(
      page(
        [sealed], entries([item("anna")]),
        to: side(
          "old-phone", .device,
          leftOut: [
            .init(index: 0, identity: wallet, protection: nil, outcome: .staysBehind(.passcodeOnly), detail: nil)
          ])
      ).html()
    ).visibleText
    #expect(visibleText.contains("1 only in monday.backup"))
    #expect(visibleText.contains("1 of them cannot be read because of damage"))
    #expect(visibleText.contains("wallet") && visibleText.contains("passcode-only"))
    #expect(visibleText.contains("keyhaul   verify   monday.backup"))
    #expect(visibleText.contains("keyhaul   backup   old-phone   -o   new.backup"))
    // No key decrypts damaged items.
    #expect(!visibleText.contains("--device-key-file"))
  }

  /// Returns an item that only its own device can decrypt.
  private func bound(_ account: String) -> KeychainItem { item(account, .whenUnlockedThisDeviceOnly) }

  private func encryptedItem(_ index: Int) -> KeychainEntry {
    KeychainEntry(
      index: index, undecryptable: ItemDescriptor(undecryptable: .genericPassword),
      protection: .whenUnlockedThisDeviceOnly,
      persistentReference: nil, reason: .deviceBound)
  }

  @Test("Items that may be encrypted on the other side are listed separately, and the counts add up")
  func doubtful() throws {
    let anna = item("anna")
    let page = try PageReader(
      page(entries([anna]) + [encryptedItem(1)], entries([anna, bound("berta"), item("carl")])).html())
    // The counts of new, changed, missing, equal and possibly encrypted items.
    #expect(page.texts(of: "b").prefix(5) == ["1", "0", "0", "1", "1"])
    for text in [
      "1 item is new; 1 is the same; 1 may be encrypted on the other side.", "New in family.backup (1)",
      "May be encrypted on the other side (1)", "berta", "new, or encrypted in monday.backup",
      "keyhaul   diff   monday.backup   family.backup   --device-key-file   PATH",
    ] {
      #expect(page.visibleText.contains(text), "\(text)")
    }
    let other = try PageReader(self.page(entries([anna, bound("berta")]), entries([anna]) + [encryptedItem(1)]).html())
      .visibleText
    #expect(other.contains(", or encrypted in family.backup"))
  }

  @Test("Encrypted items with identical bytes count as equal")
  func identicalBytes() throws {
    let copy = encryptedItem(1).stored(as: try ItemFingerprint(of: [1]))
    let page = try page(entries([item("anna")]) + [copy], entries([item("anna")]) + [copy])
    #expect(page.verdict == "Nothing differs: 2 items on both sides.")
    let visibleText = try PageReader(page.html()).visibleText
    #expect(visibleText.contains("1 of the same items is encrypted and stored identically, byte for byte."))
    #expect(!visibleText.contains("could not be compared"))
  }

  @Test("Encrypted items that may match on both sides count once")
  func possibleMatches() throws {
    let page = try PageReader(page([encryptedItem(0), encryptedItem(1)], [encryptedItem(0)]).html())
    #expect(page.texts(of: "b").contains("2 items") && page.visibleText.contains("at least"))
    #expect(page.visibleText.contains("It is not known which of them match."))
  }

  @Test("Backups differ only if there are more possible matches than encrypted items")
  func onlyDoubtful() throws {
    let anna = item("anna")
    let same = try page([encryptedItem(0)], entries([bound("berta")]))
    #expect(same.verdict == "None of the items can be compared; 1 may be encrypted on the other side.")
    let steps = try PageReader(same.html()).visibleText
    #expect(steps.contains("keyhaul   diff") && !steps.contains("keyhaul   plan"))
    let known = try page(entries([anna]) + [encryptedItem(1)], entries([anna, bound("berta")]))
    #expect(known.verdict == "All comparable items are the same: 1 item; 1 may be encrypted on the other side.")
    let more = try page([encryptedItem(0)], entries([bound("berta"), bound("carl")]))
    #expect(
      more.verdict == "At least 1 item differs, but it is not known which; 2 may be encrypted on the other side.")
    #expect(try PageReader(more.html()).visibleText.contains("keyhaul   plan   family.backup   --to   DEVICE"))
  }

  @Test("Rows that would look the same state their difference")
  func disambiguators() throws {
    var synced = item("anna")
    synced[.synchronizable] = .integer(1)
    let visibleText = try PageReader(page([], entries([item("anna"), synced, item("berta")])).html()).visibleText
    #expect(visibleText.contains("new: not synced") && visibleText.contains("new: synced"))
    #expect(visibleText.ranges(of: "synced").count == 2)
  }

  @Test("The page states that a side has no keychain")
  func noKeychain() throws {
    let visibleText = try PageReader(
      page([], entries([item("anna")]), from: side("empty.backup", hasKeychain: false)).html()
    ).visibleText
    #expect(visibleText.contains(": it has no keychain."))
    #expect(visibleText.contains("family.backup") && visibleText.contains(": 3 items."))
  }

  @Test("Commands contain the typed argument of a device, and no name that cannot be typed")
  func typed() throws {
    let visibleText = try PageReader(
      page([], entries([item("anna")]), to: side("old-phone", .device, typed: "./phones/old-phone")).html()
    ).visibleText
    #expect(visibleText.contains("keyhaul   backup   ./phones/old-phone   -o   new.backup"))
    let hostile = try PageReader(page([], entries([item("anna")]), to: side("a\u{1B}b")).html()).visibleText
    #expect(hostile.contains("keyhaul   plan   ARCHIVE   --to   DEVICE"))
    #expect(hostile.contains(#"a\u{1B}b"#) && !hostile.contains(#"\u{5C}"#))
  }

  @Test("The difference page is well-formed and inert with any names", arguments: MaliciousNameTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader {
      let one = item(name, service: name, secret: "one", group: name)
      let two = item(name, service: name, secret: "two", group: name)
      return try PageReader(
        page(entries([one, item("gone")]), entries([two, item(name + "2")]), from: side(name)).html())
    }
    let read = try structure(name)
    let harmless = try structure("name")
    #expect(read.elements.filter { $0 != "span" } == harmless.elements.filter { $0 != "span" })
    #expect(read.attributes == harmless.attributes)
    #expect(!read.elements.contains("script"))
  }

  @Test("A long list is collapsed, and a short list is expanded")
  func folding() throws {
    let many = (0..<60).map { item("account-\($0)") }
    #expect(try page([], entries(many)).html().contains(#"<details class="items"><summary>"#))
    #expect(
      try page([], entries(Array(many.prefix(3)))).html().contains(#"<details class="items" open="open"><summary>"#))
  }
}
