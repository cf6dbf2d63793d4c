import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Backups
@testable import Reports

@Suite("The page of an archive")
struct InspectionPageTests {
  private static func keybag(hasPassword: Bool = true) throws -> Keybag {
    let key = Keybag.ClassKey(
      uuid: [UInt8](repeating: 1, count: 16), keyClass: .whenUnlocked,
      wrap: hasPassword ? .password : [.device, .password], keyType: .symmetric,
      wrappedKey: [UInt8](repeating: 2, count: 40))
    return try Keybag(
      type: .backup, uuid: [UInt8](repeating: 3, count: 16), salt: [UInt8](repeating: 4, count: 20),
      iterations: 10_000, secondRound: .init(rounds: 10_000_000, salt: [UInt8](repeating: 5, count: 20)),
      classKeys: [key])
  }

  static func facts(
    _ items: [KeychainEntry]?, encrypted: Bool = true, name: String = "family.backup",
    argument: String? = "family.backup", device: String? = "old-phone"
  ) throws -> InspectionPage.Facts {
    var facts = InspectionPage.Facts(
      name: name, argument: argument,
      device: BackupDevice(name: device, productType: "iPhone15,2", productVersion: "18.1"),
      made: KeychainDate(secondsSinceReferenceDate: 0), layout: .manifestDB,
      digest: "sha256:" + String(repeating: "4f", count: 32), isEncrypted: encrypted, hasKeychain: true,
      keybag: try keybag(hasPassword: encrypted), storedFiles: (1, 41_208))
    facts.items = items
    return facts
  }

  private func facts(
    _ items: [KeychainEntry]?, encrypted: Bool = true, name: String = "family.backup",
    argument: String? = "family.backup", device: String? = "old-phone"
  ) throws -> InspectionPage.Facts {
    try Self.facts(items, encrypted: encrypted, name: name, argument: argument, device: device)
  }

  private func page(_ facts: InspectionPage.Facts) -> InspectionPage { InspectionPage(facts, program: "keyhaul 1.0") }

  private func item(
    _ index: Int, _ protection: ProtectionClass?, _ reason: Reason? = nil, service: String? = "chat.example",
    isSecretOnly: Bool = false
  ) -> KeychainEntry {
    var identity = ItemDescriptor(undecryptable: .genericPassword)
    identity.service = service
    guard !isSecretOnly else { return .secretOnly(index, protection) }
    return KeychainEntry(
      index: index, sealed: identity, protection: protection, persistentReference: nil, reason: reason)
  }

  @Test("names what was gone around, counts what is sealed, and says how long the unlock took")
  func findings() throws {
    var facts = try facts([item(0, .whenUnlocked)])
    let plain = try page(facts).html()
    #expect(!plain.contains("Changed since the source device wrote it") && !plain.contains("Encrypted items"))
    facts.findings = [
      .listTrailingBytes(count: 8192, isWholePages: true), .listUnreadable(name: "Manifest.db", reason: "a\u{1B}b"),
    ]
    var group = UndecryptedItems.Group(kind: .key, protection: .whenUnlockedThisDeviceOnly, reason: .deviceBound)
    group.count = 3
    facts.sealed = [group]
    facts.measuredUnlock = .seconds(2)
    let html = try page(facts).html()
    #expect(html.contains("8,192 bytes follow its last page. Nothing is lost."))
    #expect(html.contains(#"a\u{1B}b. Part of it is lost in this copy; such a backup cannot be restored."#))
    #expect(html.contains("Encrypted items") && html.contains("<td>3</td>"))
    #expect(html.contains("2.0 s on the machine that made this page"))
  }

  @Test("says first where this keychain can go")
  func verdicts() throws {
    let free = item(0, .whenUnlocked)
    let bound = item(1, .whenUnlockedThisDeviceOnly, .deviceBound)
    let lost = item(2, .whenUnlocked, .tagMismatch)
    var none = try facts(nil)
    none.hasKeychain = false
    var keyless = try facts([lost], encrypted: false)
    keyless.findings = [.keybagUnusable(reason: "its keybag has no class key")]
    let html = try page(keyless).html()
    #expect(html.contains("Look for another copy"))
    #expect(!html.contains("what a restore to a device would do"))
    #expect(!html.contains("make a new backup with a password"))
    let verdicts: [(InspectionPage.Facts, String)] = [
      (
        keyless,
        "The keybag of this backup is unusable: no keychain item can be decrypted, on any device; 1 cannot be read in "
          + "this copy."
      ),
      (none, "This backup contains no keychain."),
      (
        try facts(nil),
        "With the password, this keychain can move to any device; its this-device-only items can be restored only to "
          + "old-phone."
      ),
      (try facts([]), "The keychain in this backup is empty."),
      (try facts([free]), "With the password, this keychain can move to any device."),
      (
        try facts([free, bound]),
        "With the password, this keychain can move to any device; 1 of 2 items can be restored only to old-phone."
      ),
      (
        try facts([bound]),
        "This keychain can be restored only to old-phone: all items that can be decrypted are this-device-only."
      ),
      (
        try facts([free, lost]),
        "With the password, this keychain can move to any device; 1 cannot be read in this copy."
      ),
      // Its device's key may be at hand; that opens the items here and takes them nowhere else.
      (
        try facts([free], encrypted: false),
        "This keychain can be restored only to old-phone, because the backup has no password."
      ),
      (
        try facts([free], encrypted: false, device: nil),
        "This keychain can be restored only to the source device, because the backup has no password."
      ),
    ]
    for (facts, verdict) in verdicts { #expect(page(facts).verdict == verdict) }
  }

  @Test("promises no device the secrets of iOS 4 that nothing names, and says how to save them")
  func secretsWithoutNames() throws {
    let nameless = item(0, .whenUnlocked, service: nil, isSecretOnly: true)
    let only = page(try facts([nameless]))
    #expect(
      only.verdict
        == "This keychain contains secrets without names, as iOS 4 stored them, and cannot be restored to any device.")
    let html = try only.html()
    #expect(html.contains("without a name, for no device") && html.contains(">--reveal<"))

    let mixed = page(try facts([nameless, item(1, .whenUnlocked)]))
    #expect(mixed.verdict == "With the password, this keychain can move to any device.")
    #expect(mixed.counts.anyDevice == 1 && mixed.counts.nowhere == 1)
    #expect(!(try page(facts([item(1, .whenUnlocked)])).html().contains("for no device")))
  }

  @Test("counts each item once: for any device, for its own alone, or damaged")
  func tiles() throws {
    let counts = page(
      try facts([
        item(0, .whenUnlocked), item(1, .afterFirstUnlock), item(2, .alwaysThisDeviceOnly),
        item(3, .whenUnlockedThisDeviceOnly, .deviceBound), item(4, nil, .malformed),
      ])
    ).counts
    #expect((counts.anyDevice, counts.sameDevice, counts.damaged, counts.total) == (2, 2, 1, 5))
  }

  @Test("without the password tells what is known, and the command that tells more")
  func locked() throws {
    var facts = try facts(nil, name: "my backup", argument: "my backup")
    facts.unlockTime = .milliseconds(800)
    let words = try PageReader(page(facts).html()).words
    #expect(words.contains("encrypted with the password"))
    #expect(words.contains("10,000,000 + 10,000 iterations, about 0.8 s on the machine that made this page"))
    #expect(words.contains("items: after first unlock") == false && words.contains("items: when unlocked"))
    #expect(words.contains("keyhaul   inspect   'my   backup'   --format   html"))
    #expect(words.contains("This page contains no account names and no passwords."))
  }

  @Test("with the password has every class with its reach, every item, the damage and the files that are missing")
  func opened() throws {
    var facts = try facts([
      item(0, .whenUnlocked), item(1, .whenUnlockedThisDeviceOnly, .deviceBound, service: nil),
      item(2, .whenUnlocked, .tagMismatch, service: nil),
    ])
    var domain = DomainTree.Node("AppDomain")
    (domain.fileCount, domain.storedByteCount, domain.missingCount) = (3, 7_000, 2)
    domain.children = [DomainTree.Node("org.example.chat")]
    facts.files = InspectionPage.Files(listing(missing: 2), branches: [domain])
    let words = try PageReader(page(facts).html()).words
    for text in [
      "3 items: 3 generic passwords.", "any device", "old-phone only", "tag-mismatch", "encrypted item 1",
      "2 of them are listed but not stored.", "2 missing", "org.example.chat", "keyhaul   verify   family.backup",
    ] {
      #expect(words.contains(text), "\(text)")
    }
    #expect(!words.contains("new backup with a password"))
  }

  private func listing(missing: Int) -> FileList.Listing {
    var listing = FileList.Listing()
    listing.fileCount = 3
    listing.missingCount = missing
    listing.rowCountByDomain = ["AppDomain-org.example.chat": 3]
    return listing
  }

  @Test("of a stream and of a backup without a password give commands that can be typed")
  func commands() throws {
    let words = try PageReader(
      page(
        try facts(
          [item(0, .whenUnlocked)], encrypted: false, name: "standard input", argument: nil, device: "Anna's phone")
      ).html()
    ).words
    #expect(words.contains("keyhaul   verify   ARCHIVE"))
    // Keyhaul makes backups of virtual devices only.
    #expect(words.contains("keyhaul   explain   backup-password") && !words.contains("keyhaul   backup"))
    // A file may have the name that messages give a stream.
    let file = try PageReader(page(try facts([], name: "standard input", argument: "standard input")).html()).words
    #expect(file.contains("keyhaul   verify   'standard   input'"))
  }

  @Test("names every class that it has the number of: of the keybag's keys and of those that no device wraps")
  func classNumbers() throws {
    let page = try PageReader(page(facts([])).html())
    let cells = page.texts.filter { ["th", "td"].contains($0.element) }.map(\.text)
    #expect(cells.contains("items: when unlocked") && cells.contains("6"))
    var unbound = try facts([item(0, .whenUnlocked)], encrypted: false)
    unbound.keybag = try Self.keybag()
    let verdict = self.page(unbound).verdict
    #expect(verdict.contains("the key of class 6 (when unlocked) in its keybag is not wrapped"))
  }

  @Test("is well-formed and inert, whatever the names are", arguments: HostilePageTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader {
      var facts = try facts([item(0, .whenUnlocked, service: name)], name: name, device: name)
      facts.files = InspectionPage.Files(listing(missing: 0), branches: [DomainTree.Node(name)])
      facts.device.productType = name
      return try PageReader(page(facts).html())
    }
    let (hostile, harmless) = (try structure(name), try structure("name"))
    #expect(hostile.elements.filter { $0 != "span" } == harmless.elements.filter { $0 != "span" })
    #expect(hostile.attributes == harmless.attributes)
  }
}

extension KeychainEntry {
  /// An item of which nothing but a secret is stored.
  static func secretOnly(_ index: Int, _ protection: ProtectionClass?) -> KeychainEntry {
    KeychainEntry(
      opened: BackupItem(
        index: index, kind: .genericPassword, protection: protection, classKey: nil,
        opening: .opened(KeychainItem(kind: .genericPassword)), isSecretOnly: true))
  }
}
