import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Backups
@testable import Reports

@Suite("Next steps on pages")
struct NextStepTests {
  /// Checks that steps begin with the expected texts and have the expected commands.
  private func check(_ list: StepList, _ expected: [(text: String, commands: [String])], _ situation: String) {
    #expect(list.steps.count == expected.count, "\(situation): \(list.steps.map(\.text))")
    for (step, expected) in zip(list.steps, expected) {
      #expect(step.text.hasPrefix(expected.text), "\(situation): \(step.text)")
      #expect(step.commands == expected.commands, "\(situation)")
    }
  }

  private typealias Steps = [(text: String, commands: [String])]

  private static let restore: Steps = [
    (
      "To restore exactly this, save the plan and then carry it out. Keyhaul refuses to restore if the backup or "
        + "new-phone has changed since this plan.",
      [
        "keyhaul plan family.backup --to new-phone -o move.plan",
        "keyhaul restore family.backup --to new-phone --plan move.plan",
      ]
    )
  ]
  private static let keep: Steps = [("Keep old-phone until", [])]
  private static let otherCopy: Steps = [("Look for another copy", ["keyhaul verify COPY"])]
  private static let merge: Steps = [
    ("To keep the items on new-phone", ["keyhaul plan family.backup --to new-phone --existing merge"])
  ]
  private static let withPassword: Steps = [
    ("Make a new backup with a password. The item that", ["keyhaul explain backup-password"]),
    (
      "Plan with that backup",
      [
        "keyhaul plan with-password.backup --to new-phone -o move.plan",
        "keyhaul restore with-password.backup --to new-phone --plan move.plan",
      ]
    ),
  ]

  @Test("The steps after a plan of a backup are useful in every situation")
  func plans() {
    let new = decision(0, .migrates(.new))
    let same = decision(1, .migrates(.identical))
    let older = decision(2, .migrates(.keepsExisting))
    let bound = decision(3, .staysBehind(.deviceBound))
    let needsPassword = decision(4, .staysBehind(.backupNotEncrypted))
    let system = decision(5, .staysBehind(.systemBound))
    let deleted = decision(6, .staysBehind(.deleted))
    let damaged = decision(7, .unreadable(.tagMismatch))
    let existing = [identity("there")]
    let table: [(situation: String, page: PlanPage, steps: Steps)] = [
      ("the backup is empty", .make([]), []),
      ("the backup is empty, and a restore would only remove items", .make([], removed: existing), []),
      ("all move", .make([new]), Self.restore),
      ("all move, and a restore removes existing items", .make([new], removed: existing), Self.merge + Self.restore),
      ("all are on the target already", .make([same, same], policy: .merge), []),
      ("all are on the target already, newer or identical", .make([same, older], policy: .merge), []),
      ("all are on the target already, with others that a restore would remove", .make([same], removed: existing), []),
      ("one of two is new", .make([same, new]), Self.restore),
      ("some stay", .make([new, bound]), Self.restore + Self.keep),
      ("all stay", .make([bound]), Self.keep),
      ("all stay, and a restore would only remove items", .make([bound], removed: existing), Self.keep),
      ("the item that stays exists on every device", .make([new, system]), Self.restore),
      ("the item that stays was deleted earlier", .make([new, deleted]), Self.restore),
      ("all return to the same device", .make([new], isSameDevice: true), Self.restore),
      ("some return to the same device", .make([new, bound], isSameDevice: true), Self.restore),
      ("some cannot be read", .make([new, damaged]), Self.otherCopy + Self.restore + Self.keep),
      ("none can be read", .make([damaged]), Self.otherCopy + Self.keep),
      ("there is no password", .make([needsPassword], isEncrypted: false), Self.withPassword),
      (
        "there is no password, and some are bound", .make([needsPassword, bound], isEncrypted: false),
        Self.withPassword + Self.keep
      ),
      (
        "there is no password, and a restore removes existing items, so the new backup is merged",
        .make([needsPassword], removed: existing, isEncrypted: false),
        [
          Self.withPassword[0],
          ("To keep the items on", ["keyhaul plan with-password.backup --to new-phone --existing merge"]),
          Self.withPassword[1],
        ]
      ),
      (
        "the target is locked", .make([new], state: "before-first-unlock"),
        [(Self.restore[0].text, ["keyhaul device unlock new-phone"] + Self.restore[0].commands)]
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), steps, situation) }
  }

  @Test("The steps after a plan of a device begin with a backup, unless nothing would be restored")
  func devices() {
    func page(
      _ decisions: [Decision], removed: [ItemDescriptor] = [], isEncrypted: Bool = true, isSameDevice: Bool = false
    ) -> PlanPage {
      .make(
        decisions, removed: removed, from: "old-phone", isEncrypted: isEncrypted, isSameDevice: isSameDevice,
        kind: .device)
    }
    let restore: Steps = [
      (
        "Plan with that backup",
        [
          "keyhaul plan old-phone.backup --to new-phone -o move.plan",
          "keyhaul restore old-phone.backup --to new-phone --plan move.plan",
        ]
      )
    ]
    let backup: Steps = [("Make a backup with a password.", ["keyhaul backup old-phone -o old-phone.backup"])]
    let new = decision(0, .migrates(.new))
    let table: [(situation: String, page: PlanPage, steps: Steps)] = [
      ("the device is empty", page([]), []),
      ("all move", page([new]), backup + restore),
      ("all are on the target already", page([decision(0, .migrates(.identical))]), []),
      ("none moves", page([decision(0, .staysBehind(.passcodeOnly))]), Self.keep),
      (
        "a restore removes existing items", page([new], removed: [identity("x")]),
        backup + [("To keep the items on", ["keyhaul plan old-phone --to new-phone --existing merge"])] + restore
      ),
      (
        "without a password nothing would move",
        page([decision(0, .staysBehind(.backupNotEncrypted))], isEncrypted: false),
        [("Make a backup with a password. The item that", backup[0].commands)] + restore
      ),
      (
        "without a password all return to the same device", page([new], isEncrypted: false, isSameDevice: true),
        [("Make a backup without a password.", ["keyhaul backup old-phone -o old-phone.backup --no-password"])]
          + restore
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), steps, situation) }
  }

  @Test("The steps after an inspection are useful in every situation")
  func inspections() throws {
    func item(_ protection: ProtectionClass?, _ reason: Reason? = nil) -> KeychainEntry {
      KeychainEntry(
        index: 0, undecryptable: ItemDescriptor(undecryptable: .genericPassword), protection: protection,
        persistentReference: nil, reason: reason)
    }
    func page(
      _ items: [KeychainEntry]?, isEncrypted: Bool = true, hasKeychain: Bool = true
    ) throws -> InspectionPage {
      var backup = try InspectionPageTests.backup(items, isEncrypted: isEncrypted)
      backup.hasKeychain = hasKeychain
      return InspectionPage(backup, program: "keyhaul 1.0")
    }
    let verify: Steps = [("Check that every file", ["keyhaul verify family.backup"])]
    let plan: Steps = [("See what a restore to a device would do", ["keyhaul plan family.backup --to DEVICE"])]
    let password: Steps = [
      (
        "To move the keychain to another device, make a new backup with a password.",
        ["keyhaul explain backup-password"]
      )
    ]
    let damage: Steps = [("Find out what is damaged", ["keyhaul verify family.backup", "keyhaul verify COPY"])]
    let save: Steps = [("Save the secrets", ["keyhaul export family.backup --reveal -o secrets.json"])]
    let decrypt: Steps = [
      (
        "List the items of the keychain",
        ["keyhaul inspect family.backup --format html --password-file PATH -o inspection.html"]
      )
    ]
    let portable = item(.whenUnlocked)
    let bound = item(.whenUnlockedThisDeviceOnly)
    let lost = item(.whenUnlocked, .tagMismatch)
    let secretOnly = KeychainEntry.secretOnly(0, .whenUnlocked)
    let table: [(situation: String, page: InspectionPage, steps: Steps)] = [
      ("no password is given", try page(nil), decrypt + plan + verify),
      ("the password decrypts it", try page([portable, bound]), plan + verify),
      ("it is empty", try page([]), verify),
      ("it has no keychain", try page(nil, hasKeychain: false), verify),
      ("it has no password", try page([portable], isEncrypted: false), password + plan + verify),
      ("it has no password, and a password would not help", try page([bound], isEncrypted: false), plan + verify),
      ("it has no password and no items", try page([], isEncrypted: false), verify),
      ("one of two is damaged", try page([portable, lost]), damage + plan),
      ("all are damaged", try page([lost]), damage),
      ("it contains only secrets without names", try page([secretOnly]), save + verify),
      (
        "it contains only secrets without names, and has no password", try page([secretOnly], isEncrypted: false),
        save + verify
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), steps, situation) }
  }

  @Test("The steps after a comparison are useful in every situation")
  func differences() throws {
    let encrypted = KeychainEntry(
      index: 0, undecryptable: ItemDescriptor(undecryptable: .genericPassword), protection: .whenUnlockedThisDeviceOnly,
      persistentReference: nil, reason: .deviceBound)
    let damaged = KeychainEntry(
      index: 0, undecryptable: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .tagMismatch)
    func side(
      _ kind: DifferencePage.Side.Kind, _ name: String, itemCount: Int = 1, hasKeychain: Bool = true
    ) -> DifferencePage.Side {
      .init(kind: kind, name: name, argument: name, deviceName: nil, itemCount: itemCount, hasKeychain: hasKeychain)
    }
    let (monday, family) = (side(.archive, "monday"), side(.archive, "family"))
    let (phone, other) = (side(.device, "phone"), side(.device, "other"))
    let emptyFamily = side(.archive, "family", itemCount: 0, hasKeychain: false)
    let emptyPhone = side(.device, "phone", itemCount: 0)
    let one = [KeychainEntry(index: 0, item: item("anna"))]
    let two = one + [KeychainEntry(index: 1, item: item("berta"))]
    let bound = [KeychainEntry(index: 0, item: item("berta", .whenUnlockedThisDeviceOnly))]

    let backUpPhone: Steps = [("Make a new backup", ["keyhaul backup phone -o new.backup"])]
    let planFamily: Steps = [("See what restoring family to a device would do", ["keyhaul plan family --to DEVICE"])]
    let planFamilyToPhone: Steps = [
      ("See what restoring family to phone would do", ["keyhaul plan family --to phone"])
    ]
    let verifyMonday: Steps = [("Find out what is damaged", ["keyhaul verify monday"])]
    let useDeviceKey: Steps = [
      ("To see which encrypted items are the same", ["keyhaul diff monday family --device-key-file PATH"])
    ]

    typealias Side = (info: DifferencePage.Side, entries: [KeychainEntry])
    let table: [(situation: String, old: Side, new: Side, steps: Steps)] = [
      ("two backups are the same", (monday, one), (family, one), []),
      ("two backups differ", (monday, one), (family, two), planFamily),
      ("all items are missing, and nothing can be restored", (monday, one), (emptyFamily, []), []),
      ("a device has changed", (monday, one), (phone, two), backUpPhone),
      ("a device equals its backup", (monday, one), (phone, one), []),
      ("a device has no items", (monday, one), (emptyPhone, []), []),
      ("a backup is compared with a device", (phone, one), (family, two), planFamilyToPhone),
      ("two devices differ", (phone, one), (other, two), []),
      ("damage on a device has no other copy", (phone, one + [damaged]), (other, one), []),
      ("damage in a backup", (monday, one + [damaged]), (phone, one), verifyMonday),
      ("an encrypted item may match", (monday, [encrypted]), (family, bound), useDeviceKey),
    ]
    for (situation, old, new, steps) in table {
      let difference = try KeychainDifference(from: old.entries, to: new.entries)
      let page = DifferencePage(from: old.info, to: new.info, difference, program: "keyhaul 1.0")
      check(StepList(page), steps, situation)
    }
  }

  private func item(_ account: String, _ protection: ProtectionClass = .whenUnlocked) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword, attributes: [.account: .string(account), .accessGroup: .string("ABCDE12345.org.chat")])
    item.protection = protection
    return item
  }
}
