import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Backups
@testable import Reports

private typealias Steps = [(text: String, commands: [String])]

/// Checks that steps begin with the expected texts and have the expected commands.
private func check(_ list: StepList, has expectedSteps: Steps, in situation: String) {
  #expect(list.steps.count == expectedSteps.count, "\(situation): \(list.steps.map(\.text))")
  for (step, expectedStep) in zip(list.steps, expectedSteps) {
    #expect(step.text.hasPrefix(expectedStep.text), "\(situation): \(step.text)")
    #expect(step.commands == expectedStep.commands, "\(situation)")
  }
}

@Suite("Next steps after a plan of a backup")
struct BackupPlanStepTests {
  private typealias Row = (situation: String, page: PlanPage, steps: Steps)

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
  private static let makeBackup: Steps = [
    ("Make a new backup with a password. The item that", ["keyhaul explain backup-password"])
  ]
  private static let mergeNewBackup: Steps = [
    ("To keep the items on", ["keyhaul plan with-password.backup --to new-phone --existing merge"])
  ]
  private static let planNewBackup: Steps = [
    (
      "Plan with that backup",
      [
        "keyhaul plan with-password.backup --to new-phone -o move.plan",
        "keyhaul restore with-password.backup --to new-phone --plan move.plan",
      ]
    )
  ]

  private let new = decision(0, .migrates(.new))
  private let bound = decision(3, .staysBehind(.deviceBound))
  private let existing = [identity("there")]

  @Test("There are steps only if a restore would put an item on the target")
  func nothingToRestore() {
    let same = decision(1, .migrates(.identical))
    let older = decision(2, .migrates(.keepsExisting))
    let table: [Row] = [
      ("the backup is empty", .make([]), []),
      ("the backup is empty, and a restore would only remove items", .make([], removed: existing), []),
      ("all are on the target already", .make([same, same], policy: .merge), []),
      ("all are on the target already, newer or identical", .make([same, older], policy: .merge), []),
      ("all are on the target already, with others that a restore would remove", .make([same], removed: existing), []),
      ("one of two is new", .make([same, new]), Self.restore),
    ]
    for (situation, page, steps) in table { check(StepList(page), has: steps, in: situation) }
  }

  @Test("A restore is suggested for items that move, and keeping the old device for items that stay")
  func movingAndStaying() {
    let system = decision(5, .staysBehind(.systemBound))
    let deleted = decision(6, .staysBehind(.deleted))
    let table: [Row] = [
      ("all move", .make([new]), Self.restore),
      ("all move, and a restore removes existing items", .make([new], removed: existing), Self.merge + Self.restore),
      ("some stay", .make([new, bound]), Self.restore + Self.keep),
      ("all stay", .make([bound]), Self.keep),
      ("all stay, and a restore would only remove items", .make([bound], removed: existing), Self.keep),
      ("the item that stays exists on every device", .make([new, system]), Self.restore),
      ("the item that stays was deleted earlier", .make([new, deleted]), Self.restore),
      ("all return to the same device", .make([new], isSameDevice: true), Self.restore),
      ("some return to the same device", .make([new, bound], isSameDevice: true), Self.restore),
      (
        "the target is locked", .make([new], state: "before-first-unlock"),
        [(Self.restore[0].text, ["keyhaul device unlock new-phone"] + Self.restore[0].commands)]
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), has: steps, in: situation) }
  }

  @Test("Another copy is suggested first if items cannot be read")
  func unreadable() {
    let damaged = decision(7, .unreadable(.tagMismatch))
    let table: [Row] = [
      ("some cannot be read", .make([new, damaged]), Self.otherCopy + Self.restore + Self.keep),
      ("none can be read", .make([damaged]), Self.otherCopy + Self.keep),
    ]
    for (situation, page, steps) in table { check(StepList(page), has: steps, in: situation) }
  }

  @Test("A new backup is suggested first if items stay only because the backup has no password")
  func withoutPassword() {
    let needsPassword = decision(4, .staysBehind(.backupNotEncrypted))
    let table: [Row] = [
      ("all need a password", .make([needsPassword], isEncrypted: false), Self.makeBackup + Self.planNewBackup),
      (
        "some are bound", .make([needsPassword, bound], isEncrypted: false),
        Self.makeBackup + Self.planNewBackup + Self.keep
      ),
      (
        "a restore removes existing items, so merging the new backup is suggested",
        .make([needsPassword], removed: existing, isEncrypted: false),
        Self.makeBackup + Self.mergeNewBackup + Self.planNewBackup
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), has: steps, in: situation) }
  }
}

@Suite("Next steps after a plan of a device")
struct DevicePlanStepTests {
  private static let backup: Steps = [
    ("Make a backup with a password.", ["keyhaul backup old-phone -o old-phone.backup"])
  ]
  private static let backupWithoutPassword: Steps = [
    ("Make a backup without a password.", ["keyhaul backup old-phone -o old-phone.backup --no-password"])
  ]
  private static let merge: Steps = [
    ("To keep the items on", ["keyhaul plan old-phone --to new-phone --existing merge"])
  ]
  private static let restore: Steps = [
    (
      "Plan with that backup",
      [
        "keyhaul plan old-phone.backup --to new-phone -o move.plan",
        "keyhaul restore old-phone.backup --to new-phone --plan move.plan",
      ]
    )
  ]

  private func page(
    _ decisions: [Decision], removed: [ItemDescriptor] = [], isEncrypted: Bool = true, isSameDevice: Bool = false
  ) -> PlanPage {
    .make(
      decisions, removed: removed, from: "old-phone", isEncrypted: isEncrypted, isSameDevice: isSameDevice,
      kind: .device)
  }

  @Test("The steps begin with a backup, unless nothing would be restored")
  func steps() {
    let new = decision(0, .migrates(.new))
    let table: [(situation: String, page: PlanPage, steps: Steps)] = [
      ("the device is empty", page([]), []),
      ("all move", page([new]), Self.backup + Self.restore),
      ("all are on the target already", page([decision(0, .migrates(.identical))]), []),
      ("none moves", page([decision(0, .staysBehind(.passcodeOnly))]), [("Keep old-phone until", [])]),
      (
        "a restore removes existing items", page([new], removed: [identity("x")]),
        Self.backup + Self.merge + Self.restore
      ),
      (
        "without a password nothing would move",
        page([decision(0, .staysBehind(.backupNotEncrypted))], isEncrypted: false),
        [("Make a backup with a password. The item that", Self.backup[0].commands)] + Self.restore
      ),
      (
        "without a password all return to the same device", page([new], isEncrypted: false, isSameDevice: true),
        Self.backupWithoutPassword + Self.restore
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), has: steps, in: situation) }
  }
}

@Suite("Next steps after an inspection")
struct InspectionStepTests {
  private static let verify: Steps = [("Check that every file", ["keyhaul verify family.backup"])]
  private static let plan: Steps = [
    ("See what a restore to a device would do", ["keyhaul plan family.backup --to DEVICE"])
  ]
  private static let password: Steps = [
    (
      "To move the keychain to another device, make a new backup with a password.", ["keyhaul explain backup-password"]
    )
  ]
  private static let findDamage: Steps = [
    ("Find out what is damaged", ["keyhaul verify family.backup", "keyhaul verify COPY"])
  ]
  private static let save: Steps = [("Save the secrets", ["keyhaul export family.backup --reveal -o secrets.json"])]
  private static let decrypt: Steps = [
    (
      "List the items of the keychain",
      ["keyhaul inspect family.backup --format html --password-file PATH -o inspection.html"]
    )
  ]

  private func entry(_ protection: ProtectionClass?, _ reason: Reason? = nil) -> KeychainEntry {
    KeychainEntry(
      index: 0, undecryptable: ItemDescriptor(undecryptable: .genericPassword), protection: protection,
      persistentReference: nil, reason: reason)
  }

  private func page(
    _ entries: [KeychainEntry]?, isEncrypted: Bool = true, hasKeychain: Bool = true
  ) throws -> InspectionPage {
    var backup = try InspectionPageTests.backup(entries, isEncrypted: isEncrypted)
    backup.hasKeychain = hasKeychain
    return InspectionPage(backup, program: "keyhaul 1.0")
  }

  @Test("The steps depend on the password, the items that can move, and the damage")
  func steps() throws {
    let portable = entry(.whenUnlocked)
    let bound = entry(.whenUnlockedThisDeviceOnly)
    let damaged = entry(.whenUnlocked, .tagMismatch)
    let secretOnly = KeychainEntry.secretOnly(0, .whenUnlocked)
    let table: [(situation: String, page: InspectionPage, steps: Steps)] = [
      ("no password is given", try page(nil), Self.decrypt + Self.plan + Self.verify),
      ("the password decrypts it", try page([portable, bound]), Self.plan + Self.verify),
      ("it is empty", try page([]), Self.verify),
      ("it has no keychain", try page(nil, hasKeychain: false), Self.verify),
      ("it has no password", try page([portable], isEncrypted: false), Self.password + Self.plan + Self.verify),
      (
        "it has no password, and a password would not help", try page([bound], isEncrypted: false),
        Self.plan + Self.verify
      ),
      ("it has no password and no items", try page([], isEncrypted: false), Self.verify),
      ("one of two is damaged", try page([portable, damaged]), Self.findDamage + Self.plan),
      ("all are damaged", try page([damaged]), Self.findDamage),
      ("it contains only secrets without names", try page([secretOnly]), Self.save + Self.verify),
      (
        "it contains only secrets without names, and has no password", try page([secretOnly], isEncrypted: false),
        Self.save + Self.verify
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), has: steps, in: situation) }
  }
}

private func side(
  _ kind: DifferencePage.Side.Kind, _ name: String, itemCount: Int = 1, hasKeychain: Bool = true
) -> DifferencePage.Side {
  .init(kind: kind, name: name, argument: name, deviceName: nil, itemCount: itemCount, hasKeychain: hasKeychain)
}

@Suite("Next steps after a comparison")
struct DifferenceStepTests {
  private typealias Side = (info: DifferencePage.Side, entries: [KeychainEntry])

  private static let backUpPhone: Steps = [("Make a new backup", ["keyhaul backup phone -o new.backup"])]
  private static let planFamily: Steps = [
    ("See what restoring family to a device would do", ["keyhaul plan family --to DEVICE"])
  ]
  private static let planFamilyToPhone: Steps = [
    ("See what restoring family to phone would do", ["keyhaul plan family --to phone"])
  ]
  private static let verifyMonday: Steps = [("Find out what is damaged", ["keyhaul verify monday"])]
  private static let useDeviceKey: Steps = [
    ("To see which encrypted items are the same", ["keyhaul diff monday family --device-key-file PATH"])
  ]

  private let monday = side(.archive, "monday")
  private let family = side(.archive, "family")
  private let phone = side(.device, "phone")
  private let otherPhone = side(.device, "other")
  private let emptyFamily = side(.archive, "family", itemCount: 0, hasKeychain: false)
  private let emptyPhone = side(.device, "phone", itemCount: 0)

  private let encrypted = KeychainEntry(
    index: 0, undecryptable: ItemDescriptor(undecryptable: .genericPassword), protection: .whenUnlockedThisDeviceOnly,
    persistentReference: nil, reason: .deviceBound)
  private let damaged = KeychainEntry(
    index: 0, undecryptable: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
    reason: .tagMismatch)

  @Test("The steps depend on which sides are backups, what differs, and the damage")
  func steps() throws {
    let anna = [KeychainEntry(index: 0, item: item("anna"))]
    let annaAndBerta = anna + [KeychainEntry(index: 1, item: item("berta"))]
    let bound = [KeychainEntry(index: 0, item: item("berta", .whenUnlockedThisDeviceOnly))]
    let table: [(situation: String, old: Side, new: Side, steps: Steps)] = [
      ("two backups are the same", (monday, anna), (family, anna), []),
      ("two backups differ", (monday, anna), (family, annaAndBerta), Self.planFamily),
      ("all items are missing, and nothing can be restored", (monday, anna), (emptyFamily, []), []),
      ("a device has changed", (monday, anna), (phone, annaAndBerta), Self.backUpPhone),
      ("a device equals its backup", (monday, anna), (phone, anna), []),
      ("a device has no items", (monday, anna), (emptyPhone, []), []),
      ("the new side is a backup", (phone, anna), (family, annaAndBerta), Self.planFamilyToPhone),
      ("two devices differ", (phone, anna), (otherPhone, annaAndBerta), []),
      ("an item is damaged on a device, which has no other copy", (phone, anna + [damaged]), (otherPhone, anna), []),
      ("damage in a backup", (monday, anna + [damaged]), (phone, anna), Self.verifyMonday),
      ("an encrypted item may match", (monday, [encrypted]), (family, bound), Self.useDeviceKey),
    ]
    for (situation, old, new, steps) in table {
      let difference = try KeychainDifference(from: old.entries, to: new.entries)
      let page = DifferencePage(from: old.info, to: new.info, difference, program: "keyhaul 1.0")
      check(StepList(page), has: steps, in: situation)
    }
  }

  private func item(_ account: String, _ protection: ProtectionClass = .whenUnlocked) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword, attributes: [.account: .string(account), .accessGroup: .string("ABCDE12345.org.chat")])
    item.protection = protection
    return item
  }
}
