import Backups
import Basics
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Reports

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

  private func open(_ items: [KeychainItem]) -> [KeychainEntry] {
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
    _ first: [KeychainEntry], _ second: [KeychainEntry], from one: DifferencePage.Side? = nil,
    to other: DifferencePage.Side? = nil
  ) throws -> DifferencePage {
    DifferencePage(
      from: one ?? side("monday.backup"), to: other ?? side("family.backup"),
      try KeychainDifference(from: first, to: second), program: "keyhaul 1.0")
  }

  @Test("says in one sentence what is new, changed, gone and the same")
  func verdicts() throws {
    let (anna, berta, carl) = (item("anna"), item("berta"), item("carl"))
    let sealed = KeychainEntry(
      index: 0, sealed: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .deviceBound)
    let verdicts: [([KeychainEntry], [KeychainEntry], String)] = [
      ([], [], "There is nothing to compare."),
      (open([anna, berta]), open([berta, anna]), "Nothing differs: 2 items on both sides."),
      ([sealed], [sealed], "None of the items can be compared."),
      (open([anna]) + [sealed], open([anna]), "All comparable items are the same: 1 item."),
      (open([anna]), open([berta, carl]), "2 items are new, 1 is missing; nothing is the same."),
      (
        open([anna, berta]), open([item("anna", secret: "another"), berta, carl]),
        "1 item is new, 1 changed; 1 is the same."
      ),
      (open([anna, berta, carl]), open([anna, berta]), "1 item is missing; 2 are the same."),
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
    let sealed = KeychainEntry(
      index: 4, sealed: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .tagMismatch)
    var wallet = ItemDescriptor(undecryptable: .genericPassword)
    wallet.service = "wallet"
    let words = try PageReader(
      page(
        [sealed], open([item("anna")]),
        to: side(
          "old-phone", .device,
          leftOut: [
            .init(index: 0, identity: wallet, protection: nil, outcome: .staysBehind(.passcodeOnly), detail: nil)
          ])
      ).html()
    ).words
    #expect(words.contains("1 only in monday.backup"))
    #expect(words.contains("1 of them cannot be read because of damage"))
    #expect(words.contains("wallet") && words.contains("passcode-only"))
    #expect(words.contains("keyhaul   verify   monday.backup"))
    #expect(words.contains("keyhaul   backup   old-phone   -o   new.backup"))
    // No key opens what is damaged.
    #expect(!words.contains("--device-key-file"))
  }

  /// An item that only its own device opens, and one as it is where that device's key is not available.
  private func bound(_ account: String) -> KeychainItem { item(account, .whenUnlockedThisDeviceOnly) }

  private func sealed(_ index: Int) -> KeychainEntry {
    KeychainEntry(
      index: index, sealed: ItemDescriptor(undecryptable: .genericPassword), protection: .whenUnlockedThisDeviceOnly,
      persistentReference: nil, reason: .deviceBound)
  }

  @Test("lists what may be encrypted on the other side apart from what is new or gone, and the numbers add up")
  func doubtful() throws {
    let anna = item("anna")
    let page = try PageReader(
      page(open([anna]) + [sealed(1)], open([anna, bound("berta"), item("carl")])).html())
    // New, changed, gone, the same, and what may be sealed: three items in the second backup.
    #expect(page.texts(of: "b").prefix(5) == ["1", "0", "0", "1", "1"])
    for text in [
      "1 item is new; 1 is the same; 1 may be encrypted on the other side.", "New in family.backup (1)",
      "May be encrypted on the other side (1)", "berta", "new, or encrypted in monday.backup",
      "keyhaul   diff   monday.backup   family.backup   --device-key-file   PATH",
    ] {
      #expect(page.words.contains(text), "\(text)")
    }
    let other = try PageReader(self.page(open([anna, bound("berta")]), open([anna]) + [sealed(1)]).html()).words
    #expect(other.contains(", or encrypted in family.backup"))
  }

  @Test("calls what both store byte for byte the same, and says that it is sealed")
  func alike() throws {
    let copy = sealed(1).stored(as: try ItemFingerprint(of: [1]))
    let page = try page(open([item("anna")]) + [copy], open([item("anna")]) + [copy])
    #expect(page.verdict == "Nothing differs: 2 items on both sides.")
    let words = try PageReader(page.html()).words
    #expect(words.contains("1 of the same items is encrypted and stored identically, byte for byte."))
    #expect(!words.contains("could not be compared"))
  }

  @Test("counts what is sealed on both sides once, where the two may be one")
  func once() throws {
    let page = try PageReader(page([sealed(0), sealed(1)], [sealed(0)]).html())
    #expect(page.texts(of: "b").contains("2 items") && page.words.contains("at least"))
    #expect(page.words.contains("It is not known which of them match."))
  }

  @Test("does not call two backups different for what may be encrypted, unless there is more of it than is sealed")
  func onlyDoubtful() throws {
    let anna = item("anna")
    let same = try page([sealed(0)], open([bound("berta")]))
    #expect(same.verdict == "None of the items can be compared; 1 may be encrypted on the other side.")
    let steps = try PageReader(same.html()).words
    #expect(steps.contains("keyhaul   diff") && !steps.contains("keyhaul   plan"))
    let known = try page(open([anna]) + [sealed(1)], open([anna, bound("berta")]))
    #expect(known.verdict == "All comparable items are the same: 1 item; 1 may be encrypted on the other side.")
    let more = try page([sealed(0)], open([bound("berta"), bound("carl")]))
    #expect(
      more.verdict == "At least 1 item differs, but it is not known which; 2 may be encrypted on the other side.")
    #expect(try PageReader(more.html()).words.contains("keyhaul   plan   family.backup   --to   DEVICE"))
  }

  @Test("says what tells two rows apart that would read alike")
  func disambiguators() throws {
    var synced = item("anna")
    synced[.synchronizable] = .integer(1)
    let words = try PageReader(page([], open([item("anna"), synced, item("berta")])).html()).words
    #expect(words.contains("new: not synced") && words.contains("new: synced"))
    #expect(words.ranges(of: "synced").count == 2)
  }

  @Test("says of a side without a keychain that it has none")
  func noKeychain() throws {
    let words = try PageReader(
      page([], open([item("anna")]), from: side("empty.backup", hasKeychain: false)).html()
    ).words
    #expect(words.contains(": it has no keychain."))
    #expect(words.contains("family.backup") && words.contains(": 3 items."))
  }

  @Test("calls a device in commands what was typed for it, and names nothing that cannot be typed")
  func typed() throws {
    let words = try PageReader(
      page([], open([item("anna")]), to: side("old-phone", .device, typed: "./phones/old-phone")).html()
    ).words
    #expect(words.contains("keyhaul   backup   ./phones/old-phone   -o   new.backup"))
    let hostile = try PageReader(page([], open([item("anna")]), to: side("a\u{1B}b")).html()).words
    #expect(hostile.contains("keyhaul   plan   ARCHIVE   --to   DEVICE"))
    #expect(hostile.contains(#"a\u{1B}b"#) && !hostile.contains(#"\u{5C}"#))
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
