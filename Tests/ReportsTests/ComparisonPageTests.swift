import Backups
import KeychainFormats
import KeychainRules
import Testing

@testable import KeyhaulKit
@testable import Reports

@Suite("Comparison page")
struct ComparisonPageTests {
  /// Returns an item with the outcomes of its class, or excluded from every backup for a reason.
  private func item(
    _ index: Int, _ protection: ProtectionClass?, _ reason: Reason? = nil, account: String = "anna",
    group: String? = "ABCDE12345.org.example.chat"
  ) -> MigrationComparison.Item {
    var identity = ItemDescriptor(undecryptable: .genericPassword, accessGroup: group)
    if group != nil {
      identity.service = "chat.example"
      identity.account = account
    }
    var restoreOutcomes: RestoreOutcomes = [:]
    for scenario in RestoreScenario.allCases {
      restoreOutcomes[scenario] =
        reason.map { $0.isDamage ? .unreadable($0) : .staysBehind($0) } ?? protection?.restoreOutcome(in: scenario)
    }
    return .init(index: index, identity: identity, protection: protection, allOutcomes: restoreOutcomes)
  }

  private func page(
    _ items: [MigrationComparison.Item], isEncrypted: Bool = true, isSameDevice: Bool = false,
    kind: PlanDocument.Source.Kind = .archive, apps: AppDirectory = AppDirectory([]), name: String = "family.backup"
  ) -> ComparisonPage {
    let plan = PlanPage.make([], from: name, isEncrypted: isEncrypted, isSameDevice: isSameDevice, kind: kind)
    return ComparisonPage(
      MigrationComparison(items, current: RestoreScenario(hasPassword: isEncrypted, onSameDevice: isSameDevice)),
      of: plan.document, apps: apps, sourceArgument: name, targetArgument: "new-phone", program: "keyhaul 1.0")
  }

  private static let bank = "ABCDE12345.com.example.bank"
  private func bank() -> [MigrationComparison.Item] {
    [
      item(0, .whenUnlocked), item(1, .whenUnlockedThisDeviceOnly), item(2, .whenUnlocked, account: "berta"),
      item(3, .whenUnlockedThisDeviceOnly, .needsAuthentication, account: "tan", group: Self.bank),
      item(4, .whenPasscodeSetThisDeviceOnly, .passcodeOnly, account: "pin", group: Self.bank),
      item(5, .whenUnlocked, .hardwareKey, account: "key", group: "ABCDE12345.com.example.pass"),
    ]
  }

  @Test("The table counts all four restores and marks the planned one")
  func table() throws {
    let page = try PageReader(page(bank()).html())
    // With a password, to the same device and to another; without a password, to the same two.
    #expect(page.texts(of: "b").prefix(4) == ["3", "2", "3", "0"])
    #expect(page.visibleText.ranges(of: "planned here").count == 1)
    #expect(
      page.visibleText.contains("With the password, 2 of 6 items move, and no more can; 4 stay behind in any case;"))
    #expect(page.texts(of: "title").first == "Four ways to restore family.backup")
  }

  /// Returns the entries of a group, each with its name, text and commands.
  private func entries(_ page: ComparisonPage, _ group: Int) -> [String] {
    page.checklist.groups[group].entries.map {
      ([$0.name, $0.text] + $0.commands).filter { !$0.isEmpty }.joined(separator: " | ")
    }
  }

  @Test("The checklist lists by app what to move from the old phone and where to sign in again")
  func checklist() {
    let page = page(bank(), apps: AppDirectory(installed: ["com.example.bank": "Example Bank"]))
    #expect(page.checklist.title == "Before you erase" && page.checklist.name == "old-phone")
    #expect(entries(page, 0) == ["Check that the backup is intact. | keyhaul verify family.backup"])
    #expect(
      entries(page, 1).dropLast() == [
        "Example Bank | Export or move the protected data in the app.",
        "org.example.chat (team ABCDE12345) | Sign in or set it up again.",
        "com.example.pass (team ABCDE12345) | Make sure that you can register a new key; the old one works only on "
          + "this device or its smart card.",
      ])
    #expect(page.checklist.groups[1].entries[0].items.map(\.account) == ["tan", "pin"])
    #expect(
      entries(page, 2) == [
        "iCloud Keychain and Quick Start also move items: keyhaul explain new-phone",
        "Add your cards to Wallet again: they are in no backup.",
      ])
    #expect(entries(page, 3) == ["Erase old-phone only when every app that you need works on new-phone."])
  }

  @Test("The checklist of a backup, but not of a device, states that there may be more items")
  func blindSpots() throws {
    let ofBackup = page([item(0, .whenUnlocked)])
    let note = BackupBlindSpots.line
    #expect(ofBackup.checklist.groups[1].note == note && entries(ofBackup, 1).count == 1)
    let ofDevice = page([item(0, .whenUnlocked)], kind: .device, name: "old-phone")
    #expect(ofDevice.checklist.groups[1].note == nil && entries(ofDevice, 1).isEmpty)
    let visibleText = try PageReader(ofDevice.html()).visibleText
    #expect(!visibleText.contains(BackupBlindSpots.line) && !visibleText.contains("Apps, while old-phone still works"))
  }

  @Test("The checklist asks for a new backup only if there is none or if a password would move more items")
  func newBackup() {
    let (portable, bound) = (item(0, .whenUnlocked), item(1, .whenUnlockedThisDeviceOnly))
    let old = "Make a backup with a password, and keep the password. | keyhaul backup old-phone -o "
    // Keyhaul makes backups of virtual devices only, and this one is not available.
    let real = "Make a new backup with a password. 1 of these items would then move."
    let check = "Check that the backup is intact. | keyhaul verify family.backup"
    #expect(entries(page([portable], isEncrypted: false), 0) == [real])
    #expect(entries(page([portable], kind: .device, name: "old-phone"), 0) == [old + "old-phone.backup"])
    #expect(entries(page([bound], isEncrypted: false), 0) == [check])
    #expect(entries(page([portable], isEncrypted: false, isSameDevice: true), 0) == [check])
  }

  @Test("The checklist for the same device mentions no new device")
  func sameDevice() {
    let page = page(bank(), isSameDevice: true)
    #expect(page.checklist.groups.map(\.title).last == "Last of all")
    #expect(page.checklist.groups[2].title == "After the restore")
    // This-device-only items return to their own device.
    #expect(entries(page, 2).isEmpty)
    #expect(entries(page, 3) == ["Keep a copy of the backup, and its password."])
  }

  @Test("The checklist counts damaged items, and groups items that do not name an app")
  func damaged() {
    let page = page([
      item(0, nil, .malformed), item(1, .whenUnlockedThisDeviceOnly, group: nil),
      item(2, .whenUnlockedThisDeviceOnly, group: nil),
    ])
    #expect(
      entries(page, 0).last
        == "Find another copy of the backup, or make a new one: 1 item cannot be read in this one.")
    let unnamed = "2 passwords stay: their names and apps are encrypted. Sign in again where an app asks for it."
    #expect(entries(page, 1).first == unnamed)
    #expect(page.checklist.groups[1].entries[0].unnamedCount == 2)
  }

  @Test("The checklist has a checkbox for each entry and no script")
  func boxes() throws {
    let page = page(bank())
    let read = try PageReader(page.html())
    let entries = page.checklist.groups.reduce(0) { $0 + $1.entries.count }
    #expect(try page.html().ranges(of: "type=\"checkbox\"").count == entries)
    #expect(!read.elements.contains("script") && !read.attributes.contains("style"))
    #expect(try page.html() == self.page(bank()).html())
  }

  @Test("The table states for every item the devices that it moves to")
  func items() throws {
    let visibleText = try PageReader(page(bank()).html()).visibleText
    for text in ["any device, with a password", "old-phone only", "no device"] { #expect(visibleText.contains(text)) }
    #expect(try PageReader(page([item(0, nil, .tagMismatch)]).html()).visibleText.contains("cannot be read"))
  }

  @Test("The comparison page is well-formed and inert with any names", arguments: MaliciousNameTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader {
      let items = [
        item(0, .whenUnlocked, account: name, group: name),
        item(1, .whenUnlockedThisDeviceOnly, account: name, group: name),
        item(2, .whenUnlocked, .needsAuthentication, account: name, group: name),
      ]
      return try PageReader(page(items, apps: AppDirectory([]), name: name).html())
    }
    let (hostile, harmless) = (try structure(name), try structure("name"))
    #expect(hostile.elements.filter { $0 != "span" } == harmless.elements.filter { $0 != "span" })
    #expect(hostile.attributes == harmless.attributes)
  }
}
