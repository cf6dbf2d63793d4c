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
    _ name: String, _ kind: DifferencePage.Side.Kind = .archive, argument: String? = nil, hasKeychain: Bool = true,
    omissions: [MigrationPlan.Decision] = []
  ) -> DifferencePage.Side {
    DifferencePage.Side(
      kind: kind, name: name, argument: argument ?? name, deviceName: "old-phone", itemCount: 3,
      hasKeychain: hasKeychain, omissions: omissions)
  }

  private func page(
    _ oldEntries: [KeychainEntry], _ newEntries: [KeychainEntry], from oldSide: DifferencePage.Side? = nil,
    to newSide: DifferencePage.Side? = nil
  ) throws -> DifferencePage {
    DifferencePage(
      from: oldSide ?? side("monday.backup"), to: newSide ?? side("family.backup"),
      try KeychainDifference(from: oldEntries, to: newEntries), program: "keyhaul 1.0")
  }

  private func visibleText(of page: DifferencePage) throws -> String { try PageReader(page.html()).visibleText }

  @Test("The verdict counts new, changed, missing and equal items in one sentence")
  func verdicts() throws {
    let anna = item("anna")
    let berta = item("berta")
    let carl = item("carl")
    let encryptedKey = KeychainEntry(
      index: 0, undecryptable: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .deviceBound)
    let verdicts: [(old: [KeychainEntry], new: [KeychainEntry], verdict: String)] = [
      ([], [], "There is nothing to compare."),
      (entries([anna, berta]), entries([berta, anna]), "Nothing differs: 2 items on both sides."),
      ([encryptedKey], [encryptedKey], "None of the items can be compared."),
      (entries([anna]) + [encryptedKey], entries([anna]), "All comparable items are the same: 1 item."),
      (entries([anna]), entries([berta, carl]), "2 items are new, 1 is missing; nothing is the same."),
      (
        entries([anna, berta]), entries([item("anna", secret: "another"), berta, carl]),
        "1 item is new, 1 changed; 1 is the same."
      ),
      (entries([anna, berta, carl]), entries([anna, berta]), "1 item is missing; 2 are the same."),
    ]
    for (old, new, verdict) in verdicts { #expect(try page(old, new).verdict == verdict) }
  }

  @Test("The page names changed attributes and changed secrets, but no values")
  func changes() throws {
    let old = [item("anna", secret: "first-secret"), item("berta", label: "old-label")]
    let new = [item("anna", .afterFirstUnlock, secret: "second-secret"), item("berta", label: "new-label")]
    let visibleText = try visibleText(of: page(entries(old), entries(new)))
    #expect(visibleText.contains("secret and protection changed"))
    #expect(visibleText.contains("label changed"))
    #expect(visibleText.contains("Changed in family.backup (2)"))
    // The table shows the account instead of the label.
    for value in ["first-secret", "second-secret", "old-label"] { #expect(!visibleText.contains(value), "\(value)") }
  }

  @Test("The page lists items that could not be compared and items in no backup, with their reasons")
  func uncompared() throws {
    let damagedKey = KeychainEntry(
      index: 4, undecryptable: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .tagMismatch)
    var wallet = ItemDescriptor(undecryptable: .genericPassword)
    wallet.service = "wallet"
    let itemInNoBackup = MigrationPlan.Decision(
      index: 0, identity: wallet, protection: nil, outcome: .staysBehind(.passcodeOnly), detail: nil)
    let device = side("old-phone", .device, omissions: [itemInNoBackup])
    let visibleText = try visibleText(of: page([damagedKey], entries([item("anna")]), to: device))
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
      protection: .whenUnlockedThisDeviceOnly, persistentReference: nil, reason: .deviceBound)
  }

  @Test("Items that may be encrypted on the other side have their own table and count")
  func possiblyEncrypted() throws {
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
  }

  @Test("A missing item that may be encrypted on the new side is listed with that side's name")
  func possiblyEncryptedOnNewSide() throws {
    let anna = item("anna")
    let page = try page(entries([anna, bound("berta")]), entries([anna]) + [encryptedItem(1)])
    #expect(try visibleText(of: page).contains(", or encrypted in family.backup"))
  }

  @Test("Encrypted items with identical bytes count as equal")
  func identicalBytes() throws {
    let copy = encryptedItem(1).withFingerprint(try ItemFingerprint(of: [1]))
    let page = try page(entries([item("anna")]) + [copy], entries([item("anna")]) + [copy])
    #expect(page.verdict == "Nothing differs: 2 items on both sides.")
    let visibleText = try visibleText(of: page)
    #expect(visibleText.contains("1 of the same items is encrypted and stored identically, byte for byte."))
    #expect(!visibleText.contains("could not be compared"))
  }

  @Test("Encrypted items that may match on both sides count once")
  func possibleMatches() throws {
    let page = try PageReader(page([encryptedItem(0), encryptedItem(1)], [encryptedItem(0)]).html())
    #expect(page.texts(of: "b").contains("2 items") && page.visibleText.contains("at least"))
    #expect(page.visibleText.contains("It is not known which of them match."))
  }

  @Test("A difference is certain only if there are more possible matches than encrypted items")
  func onlyPossiblyEncrypted() throws {
    let anna = item("anna")
    let oneForOne = try page([encryptedItem(0)], entries([bound("berta")]))
    #expect(oneForOne.verdict == "None of the items can be compared; 1 may be encrypted on the other side.")
    let steps = try visibleText(of: oneForOne)
    #expect(steps.contains("keyhaul   diff") && !steps.contains("keyhaul   plan"))

    let withEqualItem = try page(entries([anna]) + [encryptedItem(1)], entries([anna, bound("berta")]))
    #expect(
      withEqualItem.verdict == "All comparable items are the same: 1 item; 1 may be encrypted on the other side.")

    let twoForOne = try page([encryptedItem(0)], entries([bound("berta"), bound("carl")]))
    #expect(
      twoForOne.verdict == "At least 1 item differs, but it is not known which; 2 may be encrypted on the other side.")
    #expect(try visibleText(of: twoForOne).contains("keyhaul   plan   family.backup   --to   DEVICE"))
  }

  @Test("Rows that would look the same state their difference")
  func disambiguators() throws {
    var synced = item("anna")
    synced[.synchronizable] = .integer(1)
    let visibleText = try visibleText(of: page([], entries([item("anna"), synced, item("berta")])))
    #expect(visibleText.contains("new: not synced") && visibleText.contains("new: synced"))
    // The row of berta looks different, so it states no difference.
    #expect(visibleText.ranges(of: "synced").count == 2)
  }

  @Test("The page states that a side has no keychain")
  func noKeychain() throws {
    let visibleText = try visibleText(
      of: page([], entries([item("anna")]), from: side("empty.backup", hasKeychain: false)))
    #expect(visibleText.contains(": it has no keychain."))
    #expect(visibleText.contains("family.backup") && visibleText.contains(": 3 items."))
  }

  @Test("Commands contain the typed argument of a device, and no name that cannot be typed")
  func commands() throws {
    let device = side("old-phone", .device, argument: "./phones/old-phone")
    let withDevice = try visibleText(of: page([], entries([item("anna")]), to: device))
    #expect(withDevice.contains("keyhaul   backup   ./phones/old-phone   -o   new.backup"))
    let withControlCharacter = try visibleText(of: page([], entries([item("anna")]), to: side("a\u{1B}b")))
    #expect(withControlCharacter.contains("keyhaul   plan   ARCHIVE   --to   DEVICE"))
    // The backslash of the escape is not escaped again.
    #expect(withControlCharacter.contains(#"a\u{1B}b"#) && !withControlCharacter.contains(#"\u{5C}"#))
  }

  @Test("The difference page is well-formed and inert with any names", arguments: MaliciousNameTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader.Structure {
      let old = item(name, service: name, secret: "old", group: name)
      let new = item(name, service: name, secret: "new", group: name)
      let page = try page(entries([old, item("missing")]), entries([new, item(name + "2")]), from: side(name))
      return try PageReader(page.html()).structure
    }
    let structureWithName = try structure(name)
    #expect(try structureWithName == structure("name"))
    #expect(!structureWithName.elements.contains("script"))
  }

  @Test("A long list is collapsed, and a short list is expanded")
  func folding() throws {
    // The long list has more rows than `PageTable.rowsPerBody`.
    let longList = entries((0..<60).map { item("account-\($0)") })
    let shortList = Array(longList.prefix(3))
    #expect(try page([], longList).html().contains(#"<details class="items"><summary>"#))
    #expect(try page([], shortList).html().contains(#"<details class="items" open="open"><summary>"#))
  }
}
