import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Backups
@testable import Reports

/// A page shows each word of a command in an element of its own. `PageReader.visibleText` joins these words and the
/// spaces between them with spaces, so each space of a command becomes three.
@Suite("Inspection page")
struct InspectionPageTests {
  private static func keybag(hasPassword: Bool = true) throws -> Keybag {
    let key = Keybag.ClassKey(
      uuid: [UInt8](repeating: 1, count: 16), keyClass: .whenUnlocked,
      wrap: hasPassword ? .password : [.device, .password], keyType: .symmetric,
      wrappedKey: [UInt8](repeating: 2, count: 40))
    return try Keybag(
      type: .backup, uuid: [UInt8](repeating: 3, count: 16), salt: [UInt8](repeating: 4, count: 20),
      iterations: 10_000, secondStep: .init(iterations: 10_000_000, salt: [UInt8](repeating: 5, count: 20)),
      classKeys: [key])
  }

  static func backup(
    _ items: [KeychainEntry]?, isEncrypted: Bool = true, name: String = "family.backup",
    argument: String? = "family.backup", device: String? = "old-phone"
  ) throws -> InspectionPage.BackupInfo {
    var backup = InspectionPage.BackupInfo(
      name: name, argument: argument,
      device: BackupDevice(name: device, productType: "iPhone15,2", productVersion: "18.1"),
      made: KeychainDate(secondsSinceReferenceDate: 0), layout: .manifestDB,
      digest: "sha256:" + String(repeating: "4f", count: 32), isEncrypted: isEncrypted, hasKeychain: true,
      keybag: try keybag(hasPassword: isEncrypted), storedFiles: (1, 41_208))
    backup.items = items
    return backup
  }

  private func page(_ backup: InspectionPage.BackupInfo) -> InspectionPage {
    InspectionPage(backup, program: "keyhaul 1.0")
  }

  private func item(
    _ index: Int, _ protection: ProtectionClass?, _ reason: Reason? = nil, service: String? = "chat.example"
  ) -> KeychainEntry {
    var identity = ItemDescriptor(undecryptable: .genericPassword)
    identity.service = service
    return KeychainEntry(
      index: index, undecryptable: identity, protection: protection, persistentReference: nil, reason: reason)
  }

  @Test("The page lists the findings, counts encrypted items, and states how long the unlock took")
  func findings() throws {
    var backup = try Self.backup([item(0, .whenUnlocked)])
    let htmlWithoutFindings = try page(backup).html()
    #expect(!htmlWithoutFindings.contains("Changed since the source device wrote it"))
    #expect(!htmlWithoutFindings.contains("Encrypted items"))
    backup.findings = [
      .listTrailingBytes(count: 8192, isWholePages: true), .listUnreadable(name: "Manifest.db", reason: "a\u{1B}b"),
    ]
    var group = UndecryptedItems.Group(kind: .key, protection: .whenUnlockedThisDeviceOnly, reason: .deviceBound)
    group.count = 3
    backup.undecryptedItems = [group]
    backup.measuredUnlock = .seconds(2)
    let html = try page(backup).html()
    #expect(html.contains("8,192 bytes follow its last page. Nothing is lost."))
    #expect(html.contains(#"a\u{1B}b. Part of it is lost in this copy; such a backup cannot be restored."#))
    #expect(html.contains("Encrypted items") && html.contains("<td>3</td>"))
    #expect(html.contains("2.0 s on the machine that made this page"))
  }

  @Test("The verdict states the devices that the keychain can be restored to")
  func verdicts() throws {
    let portable = item(0, .whenUnlocked)
    let bound = item(1, .whenUnlockedThisDeviceOnly, .deviceBound)
    let lost = item(2, .whenUnlocked, .tagMismatch)
    var withoutKeychain = try Self.backup(nil)
    withoutKeychain.hasKeychain = false
    let verdicts: [(backup: InspectionPage.BackupInfo, verdict: String)] = [
      (withoutKeychain, "This backup contains no keychain."),
      (
        try Self.backup(nil),
        "With the password, this keychain can move to any device; its this-device-only items can be restored only to "
          + "old-phone."
      ),
      (try Self.backup([]), "The keychain in this backup is empty."),
      (try Self.backup([portable]), "With the password, this keychain can move to any device."),
      (
        try Self.backup([portable, bound]),
        "With the password, this keychain can move to any device; 1 of 2 items can be restored only to old-phone."
      ),
      (
        try Self.backup([bound]),
        "This keychain can be restored only to old-phone: all items that can be decrypted are this-device-only."
      ),
      (
        try Self.backup([portable, lost]),
        "With the password, this keychain can move to any device; 1 cannot be read in this copy."
      ),
      // The device key may be available, but it does not make the items portable.
      (
        try Self.backup([portable], isEncrypted: false),
        "This keychain can be restored only to old-phone, because the backup has no password."
      ),
      (
        try Self.backup([portable], isEncrypted: false, device: nil),
        "This keychain can be restored only to the source device, because the backup has no password."
      ),
    ]
    for (backup, verdict) in verdicts { #expect(page(backup).verdict == verdict) }
  }

  @Test("The page of a backup without class keys suggests another copy, and no restore and no new backup")
  func withoutClassKeys() throws {
    var backup = try Self.backup([item(2, .whenUnlocked, .tagMismatch)], isEncrypted: false)
    backup.findings = [.keybagUnusable(reason: "its keybag has no class key")]
    let page = page(backup)
    #expect(
      page.verdict
        == "The keybag of this backup is unusable: no keychain item can be decrypted, on any device; 1 cannot be read "
        + "in this copy.")
    let html = try page.html()
    #expect(html.contains("Look for another copy"))
    #expect(!html.contains("what a restore to a device would do"))
    #expect(!html.contains("make a new backup with a password"))
  }

  @Test("Secrets of iOS 4 without names cannot be restored, and the page states how to save them")
  func secretsWithoutNames() throws {
    let secretOnly = KeychainEntry.secretOnly(0, .whenUnlocked)
    let secretsPage = page(try Self.backup([secretOnly]))
    #expect(
      secretsPage.verdict
        == "This keychain contains secrets without names, as iOS 4 stored them, and cannot be restored to any device.")
    let html = try secretsPage.html()
    #expect(html.contains("without a name, for no device") && html.contains(">--reveal<"))

    let mixedPage = page(try Self.backup([secretOnly, item(1, .whenUnlocked)]))
    #expect(mixedPage.verdict == "With the password, this keychain can move to any device.")
    #expect(mixedPage.counts.anyDevice == 1 && mixedPage.counts.noDevice == 1)
    #expect(!(try page(Self.backup([item(1, .whenUnlocked)])).html().contains("for no device")))
  }

  @Test("Each item counts once: for any device, for its own device, or as damaged")
  func counts() throws {
    let counts = page(
      try Self.backup([
        item(0, .whenUnlocked), item(1, .afterFirstUnlock), item(2, .alwaysThisDeviceOnly),
        item(3, .whenUnlockedThisDeviceOnly, .deviceBound), item(4, nil, .malformed),
      ])
    ).counts
    #expect((counts.anyDevice, counts.sameDevice, counts.damaged, counts.total) == (2, 2, 1, 5))
  }

  @Test("Without the password, the page shows what is known and the command for more")
  func withoutPassword() throws {
    var backup = try Self.backup(nil, name: "my backup", argument: "my backup")
    backup.unlockTime = .milliseconds(800)
    let visibleText = try PageReader(page(backup).html()).visibleText
    #expect(visibleText.contains("encrypted with the password"))
    #expect(visibleText.contains("10,000,000 + 10,000 iterations, about 0.8 s on the machine that made this page"))
    #expect(!visibleText.contains("items: after first unlock") && visibleText.contains("items: when unlocked"))
    #expect(visibleText.contains("keyhaul   inspect   'my   backup'   --format   html"))
    #expect(visibleText.contains("This page contains no account names and no passwords."))
  }

  @Test("With the password, the page shows all classes, items, damage and missing files")
  func withPassword() throws {
    var backup = try Self.backup([
      item(0, .whenUnlocked), item(1, .whenUnlockedThisDeviceOnly, .deviceBound, service: nil),
      item(2, .whenUnlocked, .tagMismatch, service: nil),
    ])
    var domain = DomainTree.Node("AppDomain")
    (domain.fileCount, domain.storedByteCount, domain.missingCount) = (3, 7_000, 2)
    domain.children = [DomainTree.Node("org.example.chat")]
    backup.files = InspectionPage.Files(listing(missing: 2), branches: [domain])
    let visibleText = try PageReader(page(backup).html()).visibleText
    for text in [
      "3 items: 3 generic passwords.", "any device", "old-phone only", "tag-mismatch", "encrypted item 1",
      "2 of them are listed but not stored.", "2 missing", "org.example.chat", "keyhaul   verify   family.backup",
    ] {
      #expect(visibleText.contains(text), "\(text)")
    }
    #expect(!visibleText.contains("new backup with a password"))
  }

  private func listing(missing: Int) -> FileList.Listing {
    var listing = FileList.Listing()
    listing.fileCount = 3
    listing.missingCount = missing
    listing.rowCountByDomain = ["AppDomain-org.example.chat": 3]
    return listing
  }

  @Test("The commands on the page can be typed, even if the backup came from a stream")
  func commands() throws {
    let stream = try Self.backup(
      [item(0, .whenUnlocked)], isEncrypted: false, name: "standard input", argument: nil, device: "Anna's phone")
    let visibleText = try PageReader(page(stream).html()).visibleText
    #expect(visibleText.contains("keyhaul   verify   ARCHIVE"))
    // Keyhaul makes backups of virtual devices only.
    #expect(visibleText.contains("keyhaul   explain   backup-password") && !visibleText.contains("keyhaul   backup"))
    // A file may have the name that messages use for a stream.
    let file = try Self.backup([], name: "standard input", argument: "standard input")
    #expect(try PageReader(page(file).html()).visibleText.contains("keyhaul   verify   'standard   input'"))
  }

  @Test("The page shows the number and the purpose of each class key, and the verdict names unbound class keys")
  func classNumbers() throws {
    let reader = try PageReader(page(Self.backup([])).html())
    let cells = reader.texts.filter { ["th", "td"].contains($0.element) }.map(\.text)
    #expect(cells.contains("items: when unlocked") && cells.contains("6"))
    var unbound = try Self.backup([item(0, .whenUnlocked)], isEncrypted: false)
    // The class key of this keybag is wrapped only with the password.
    unbound.keybag = try Self.keybag()
    #expect(
      page(unbound).verdict.contains("the key of class 6 (when unlocked) in its keybag is not wrapped"))
  }

  @Test("The inspection page is well-formed and inert with any names", arguments: MaliciousNameTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader.Structure {
      var backup = try Self.backup([item(0, .whenUnlocked, service: name)], name: name, device: name)
      backup.files = InspectionPage.Files(listing(missing: 0), branches: [DomainTree.Node(name)])
      backup.device.productType = name
      return try PageReader(page(backup).html()).structure
    }
    #expect(try structure(name) == structure("name"))
  }
}

extension KeychainEntry {
  /// Creates an item that consists only of a secret, as in iOS 4.
  static func secretOnly(_ index: Int, _ protection: ProtectionClass?) -> KeychainEntry {
    KeychainEntry(
      decrypted: BackupItem(
        index: index, kind: .genericPassword, protection: protection, classKey: nil,
        opening: .opened(KeychainItem(kind: .genericPassword)), isSecretOnly: true))
  }
}
