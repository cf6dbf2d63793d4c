import Backups
import KeychainFormats
import KeychainRules
import Testing

@testable import KeyhaulKit
@testable import Reports

@Suite("Comparison page")
struct ComparisonPageTests {
  /// Returns an item with the outcomes of its protection class, or with this reason in every restore.
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

  private static let bankGroup = "ABCDE12345.com.example.bank"

  /// Returns items of a chat app, of a banking app and of an app with a hardware key.
  private func itemsOfThreeApps() -> [MigrationComparison.Item] {
    [
      item(0, .whenUnlocked), item(1, .whenUnlockedThisDeviceOnly), item(2, .whenUnlocked, account: "berta"),
      item(3, .whenUnlockedThisDeviceOnly, .needsAuthentication, account: "tan", group: Self.bankGroup),
      item(4, .whenPasscodeSetThisDeviceOnly, .passcodeOnly, account: "pin", group: Self.bankGroup),
      item(5, .whenUnlocked, .hardwareKey, account: "key", group: "ABCDE12345.com.example.pass"),
    ]
  }

  @Test("The table counts all four restores and marks the planned one")
  func table() throws {
    let page = try PageReader(page(itemsOfThreeApps()).html())
    // With a password, to the same device and to another device. Then both without a password.
    #expect(page.texts(of: "b").prefix(4) == ["3", "2", "3", "0"])
    #expect(page.visibleText.ranges(of: "planned here").count == 1)
    #expect(
      page.visibleText.contains("With the password, 2 of 6 items move, and no more can; 4 stay behind in any case;"))
    #expect(page.texts(of: "title").first == "Four ways to restore family.backup")
  }

  /// The groups of the checklist, in their order.
  private enum Group: Int {
    case backup, apps, target, last
  }

  private func group(_ group: Group, of page: ComparisonPage) -> Checklist.Group {
    page.checklist.groups[group.rawValue]
  }

  /// Returns the entries of a group, each with its name, text and commands.
  private func entries(_ page: ComparisonPage, _ group: Group) -> [String] {
    self.group(group, of: page).entries.map {
      ([$0.name, $0.text] + $0.commands).filter { !$0.isEmpty }.joined(separator: " | ")
    }
  }

  @Test("The checklist lists by app what to move from the old phone and where to sign in again")
  func checklist() {
    let page = page(itemsOfThreeApps(), apps: AppDirectory(installed: ["com.example.bank": "Example Bank"]))
    #expect(page.checklist.title == "Before you erase" && page.checklist.name == "old-phone")
    #expect(entries(page, .backup) == ["Check that the backup is intact. | keyhaul verify family.backup"])
    #expect(
      entries(page, .apps).dropLast() == [
        "Example Bank | Export or move the protected data in the app.",
        "org.example.chat (team ABCDE12345) | Sign in or set it up again.",
        "com.example.pass (team ABCDE12345) | Make sure that you can register a new key; the old one works only on "
          + "this device or its smart card.",
      ])
    #expect(group(.apps, of: page).entries[0].items.map(\.account) == ["tan", "pin"])
    #expect(
      entries(page, .target) == [
        "iCloud Keychain and Quick Start also move items: keyhaul explain new-phone",
        "Add your cards to Wallet again: they are in no backup.",
      ])
    #expect(entries(page, .last) == ["Erase old-phone only when every app that you need works on new-phone."])
  }

  @Test("The checklist of a backup, but not of a device, states that there may be more items")
  func blindSpots() throws {
    let backupPage = page([item(0, .whenUnlocked)])
    #expect(group(.apps, of: backupPage).note == BackupBlindSpots.line && entries(backupPage, .apps).count == 1)
    let devicePage = page([item(0, .whenUnlocked)], kind: .device, name: "old-phone")
    #expect(group(.apps, of: devicePage).note == nil && entries(devicePage, .apps).isEmpty)
    let visibleText = try PageReader(devicePage.html()).visibleText
    #expect(!visibleText.contains(BackupBlindSpots.line) && !visibleText.contains("Apps, while old-phone still works"))
  }

  @Test("The checklist asks for a new backup only if there is none or if a password would move more items")
  func newBackup() {
    let portable = item(0, .whenUnlocked)
    let bound = item(1, .whenUnlockedThisDeviceOnly)
    let backUpVirtualDevice = "Make a backup with a password, and keep the password. | keyhaul backup old-phone -o "
    // Keyhaul makes backups of virtual devices only, so there is no command.
    let backUpRealDevice = "Make a new backup with a password. 1 of these items would then move."
    let check = "Check that the backup is intact. | keyhaul verify family.backup"
    #expect(entries(page([portable], isEncrypted: false), .backup) == [backUpRealDevice])
    #expect(
      entries(page([portable], kind: .device, name: "old-phone"), .backup) == [backUpVirtualDevice + "old-phone.backup"]
    )
    #expect(entries(page([bound], isEncrypted: false), .backup) == [check])
    #expect(entries(page([portable], isEncrypted: false, isSameDevice: true), .backup) == [check])
  }

  @Test("The checklist for the same device mentions no new device")
  func sameDevice() {
    let page = page(itemsOfThreeApps(), isSameDevice: true)
    #expect(page.checklist.groups.map(\.title).last == "Last of all")
    #expect(group(.target, of: page).title == "After the restore")
    // This-device-only items return to their own device.
    #expect(entries(page, .target).isEmpty)
    #expect(entries(page, .last) == ["Keep a copy of the backup, and its password."])
  }

  @Test("The checklist counts damaged items, and groups items that do not name an app")
  func damaged() {
    let page = page([
      item(0, nil, .malformed), item(1, .whenUnlockedThisDeviceOnly, group: nil),
      item(2, .whenUnlockedThisDeviceOnly, group: nil),
    ])
    #expect(
      entries(page, .backup).last
        == "Find another copy of the backup, or make a new one: 1 item cannot be read in this one.")
    let expectedText = "2 passwords stay: their names and apps are encrypted. Sign in again where an app asks for it."
    #expect(entries(page, .apps).first == expectedText)
    #expect(group(.apps, of: page).entries[0].unnamedCount == 2)
  }

  @Test("The checklist has a checkbox for each entry and no script")
  func boxes() throws {
    let page = page(itemsOfThreeApps())
    let html = try page.html()
    let reader = try PageReader(html)
    let entryCount = page.checklist.groups.reduce(0) { $0 + $1.entries.count }
    #expect(html.ranges(of: "type=\"checkbox\"").count == entryCount)
    #expect(!reader.elements.contains("script") && !reader.attributes.contains("style"))
    #expect(try html == self.page(itemsOfThreeApps()).html())
  }

  @Test("The table states for every item the devices that it moves to")
  func items() throws {
    let visibleText = try PageReader(page(itemsOfThreeApps()).html()).visibleText
    for text in ["any device, with a password", "old-phone only", "no device"] { #expect(visibleText.contains(text)) }
    #expect(try PageReader(page([item(0, nil, .tagMismatch)]).html()).visibleText.contains("cannot be read"))
  }

  @Test("The comparison page is well-formed and inert with any names", arguments: MaliciousNameTests.names)
  func hostile(name: String) throws {
    func structure(_ name: String) throws -> PageReader.Structure {
      let items = [
        item(0, .whenUnlocked, account: name, group: name),
        item(1, .whenUnlockedThisDeviceOnly, account: name, group: name),
        item(2, .whenUnlocked, .needsAuthentication, account: name, group: name),
      ]
      return try PageReader(page(items, apps: AppDirectory([]), name: name).html()).structure
    }
    #expect(try structure(name) == structure("name"))
  }
}
