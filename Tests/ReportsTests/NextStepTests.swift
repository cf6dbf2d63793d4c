import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing

@testable import Backups
@testable import Reports

/// Each page ends with what to do next, and nothing of it is in vain.
@Suite("The next steps of a page")
struct NextStepTests {
  /// The steps as their first words, with the commands that they give.
  private func check(_ list: StepList, _ expected: [(words: String, commands: [String])], _ situation: String) {
    #expect(list.steps.count == expected.count, "\(situation): \(list.steps.map(\.words))")
    for (step, expected) in zip(list.steps, expected) {
      #expect(step.words.hasPrefix(expected.words), "\(situation): \(step.words)")
      #expect(step.commands == expected.commands, "\(situation)")
    }
  }

  private typealias Steps = [(words: String, commands: [String])]

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

  @Test("of a plan of a backup bring something in every situation")
  func plans() {
    let new = decision(0, .migrates(.new))
    let same = decision(1, .migrates(.identical))
    let older = decision(2, .migrates(.keepsExisting))
    let bound = decision(3, .staysBehind(.deviceBound))
    let closed = decision(4, .staysBehind(.backupNotEncrypted))
    let systems = decision(5, .staysBehind(.systemBound))
    let deleted = decision(6, .staysBehind(.deleted))
    let damaged = decision(7, .unreadable(.tagMismatch))
    let there = [identity("there")]
    let table: [(situation: String, page: PlanPage, steps: Steps)] = [
      ("nothing is in the backup", .of([]), []),
      ("nothing is in the backup, and a restore would remove", .of([], removed: there), []),
      ("all move", .of([new]), Self.restore),
      ("all move, and something there goes", .of([new], removed: there), Self.merge + Self.restore),
      ("all are there already", .of([same, same], policy: .merge), []),
      ("all are there already, newer or the same", .of([same, older], policy: .merge), []),
      ("all are there already, and more, which would go", .of([same], removed: there), []),
      ("one of two is new", .of([same, new]), Self.restore),
      ("some stay", .of([new, bound]), Self.restore + Self.keep),
      ("all stay", .of([bound]), Self.keep),
      ("all stay, and a restore would only remove", .of([bound], removed: there), Self.keep),
      ("what stays, every device has itself", .of([new, systems]), Self.restore),
      ("what stays was deleted before", .of([new, deleted]), Self.restore),
      ("all come back to the device itself", .of([new], isSameDevice: true), Self.restore),
      ("some come back, and the phone is the same", .of([new, bound], isSameDevice: true), Self.restore),
      ("some cannot be read", .of([new, damaged]), Self.otherCopy + Self.restore + Self.keep),
      ("none can be read", .of([damaged]), Self.otherCopy + Self.keep),
      ("there is no password", .of([closed], encrypted: false), Self.withPassword),
      (
        "there is no password, and some are bound", .of([closed, bound], encrypted: false),
        Self.withPassword + Self.keep
      ),
      (
        "there is no password, and something there goes: the backup that is merged is the new one",
        .of([closed], removed: there, encrypted: false),
        [
          Self.withPassword[0],
          ("To keep the items on", ["keyhaul plan with-password.backup --to new-phone --existing merge"]),
          Self.withPassword[1],
        ]
      ),
      (
        "the target is locked", .of([new], state: "before-first-unlock"),
        [(Self.restore[0].words, ["keyhaul device unlock new-phone"] + Self.restore[0].commands)]
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), steps, situation) }
  }

  @Test("of a plan of a device make the backup first, and none where nothing would be restored")
  func devices() {
    func page(_ decisions: [Decision], removed: [ItemDescriptor] = [], encrypted: Bool = true, same: Bool = false)
      -> PlanPage
    {
      .of(decisions, removed: removed, from: "old-phone", encrypted: encrypted, isSameDevice: same, kind: .device)
    }
    func restore(_ words: String = "Plan with that backup", _ flags: String = "") -> Steps {
      [
        (
          words,
          [
            "keyhaul plan old-phone.backup --to new-phone\(flags) -o move.plan",
            "keyhaul restore old-phone.backup --to new-phone --plan move.plan",
          ]
        )
      ]
    }
    let backup: Steps = [("Make a backup with a password.", ["keyhaul backup old-phone -o old-phone.backup"])]
    let new = decision(0, .migrates(.new))
    let table: [(situation: String, page: PlanPage, steps: Steps)] = [
      ("nothing is on it", page([]), []),
      ("all move", page([new]), backup + restore()),
      ("all are there already", page([decision(0, .migrates(.identical))]), []),
      ("none moves", page([decision(0, .staysBehind(.passcodeOnly))]), Self.keep),
      (
        "something there goes", page([new], removed: [identity("x")]),
        backup + [("To keep the items on", ["keyhaul plan old-phone --to new-phone --existing merge"])] + restore()
      ),
      (
        "without a password nothing would move",
        page([decision(0, .staysBehind(.backupNotEncrypted))], encrypted: false),
        [("Make a backup with a password. The item that", backup[0].commands)] + restore()
      ),
      (
        "without a password all comes back to itself", page([new], encrypted: false, same: true),
        [("Make a backup without a password.", ["keyhaul backup old-phone -o old-phone.backup --no-password"])]
          + restore()
      ),
    ]
    for (situation, page, steps) in table { check(StepList(page), steps, situation) }
  }

  @Test("of an archive bring something in every situation")
  func archives() throws {
    func item(_ protection: ProtectionClass?, _ reason: Reason? = nil, isSecretOnly: Bool = false)
      -> KeychainEntry
    {
      isSecretOnly
        ? .secretOnly(0, protection)
        : KeychainEntry(
          index: 0, sealed: ItemDescriptor(undecryptable: .genericPassword), protection: protection,
          persistentReference: nil,
          reason: reason)
    }
    func page(
      _ items: [KeychainEntry]?, encrypted: Bool = true, hasKeychain: Bool = true
    ) throws -> InspectionPage {
      var facts = try InspectionPageTests.facts(items, encrypted: encrypted)
      facts.hasKeychain = hasKeychain
      return InspectionPage(facts, program: "keyhaul 1.0")
    }
    let verify: Steps = [("Check that every file", ["keyhaul verify family.backup"])]
    let plan: Steps = [("See what a restore to a device would do", ["keyhaul plan family.backup --to DEVICE"])]
    let password: Steps = [
      (
        "To move the keychain to another device, make a new backup with a "
          + "password.", ["keyhaul explain backup-password"]
      )
    ]
    let damage: Steps = [("Find out what is damaged", ["keyhaul verify family.backup", "keyhaul verify COPY"])]
    let save: Steps = [("Save the secrets", ["keyhaul export family.backup --reveal -o secrets.json"])]
    let open: Steps = [
      (
        "List the items of the keychain",
        ["keyhaul inspect family.backup --format html --password-file PATH -o inspection.html"]
      )
    ]
    let free = item(.whenUnlocked)
    let bound = item(.whenUnlockedThisDeviceOnly)
    let lost = item(.whenUnlocked, .tagMismatch)
    let secret = item(.whenUnlocked, isSecretOnly: true)
    let table: [(situation: String, page: InspectionPage, steps: Steps)] = [
      ("no password is given", try page(nil), open + plan + verify),
      ("it opens", try page([free, bound]), plan + verify),
      ("it is empty", try page([]), verify),
      ("it has no keychain", try page(nil, hasKeychain: false), verify),
      ("it has no password", try page([free], encrypted: false), password + plan + verify),
      ("it has no password and nothing that one would bring", try page([bound], encrypted: false), plan + verify),
      ("it has no password and no items", try page([], encrypted: false), verify),
      ("one of two is damaged", try page([free, lost]), damage + plan),
      ("all are damaged", try page([lost]), damage),
      ("it holds secrets without names alone", try page([secret]), save + verify),
      ("it holds such, without a password", try page([secret], encrypted: false), save + verify),
    ]
    for (situation, page, steps) in table { check(StepList(page), steps, situation) }
  }

  @Test("of a comparison bring something in every situation")
  func differences() throws {
    let anna = item("anna")
    let sealed = KeychainEntry(
      index: 0, sealed: ItemDescriptor(undecryptable: .genericPassword), protection: .whenUnlockedThisDeviceOnly,
      persistentReference: nil, reason: .deviceBound)
    let damaged = KeychainEntry(
      index: 0, sealed: ItemDescriptor(undecryptable: .key), protection: nil, persistentReference: nil,
      reason: .tagMismatch)
    func side(_ kind: DifferencePage.Side.Kind, _ name: String, _ count: Int, hasKeychain: Bool = true)
      -> DifferencePage.Side
    {
      .init(kind: kind, name: name, argument: name, deviceName: nil, itemCount: count, hasKeychain: hasKeychain)
    }
    let (monday, family) = (side(.archive, "monday", 1), side(.archive, "family", 1))
    let (phone, other) = (side(.device, "phone", 1), side(.device, "other", 1))
    let empty = side(.archive, "family", 0, hasKeychain: false)
    let one = [KeychainEntry(index: 0, item: anna)]
    let two = one + [KeychainEntry(index: 1, item: item("berta"))]
    let bound = [KeychainEntry(index: 0, item: item("berta", .whenUnlockedThisDeviceOnly))]
    let plan: Steps = [("See what restoring family to a device would do", ["keyhaul plan family --to DEVICE"])]
    let table:
      [(situation: String, DifferencePage.Side, [KeychainEntry], DifferencePage.Side, [KeychainEntry], Steps)] =
        [
          ("two backups are the same", monday, one, family, one, []),
          ("two backups differ", monday, one, family, two, plan),
          ("all is gone, and there is nothing to restore", monday, one, empty, [], []),
          (
            "a device has gone on", monday, one, phone, two,
            [("Make a new backup", ["keyhaul backup phone -o new.backup"])]
          ),
          ("a device is as its backup", monday, one, phone, one, []),
          ("a device has nothing any more", monday, one, side(.device, "phone", 0), [], []),
          (
            "a backup is held against a device", phone, one, family, two,
            [("See what restoring family to phone would do", ["keyhaul plan family --to phone"])]
          ),
          ("two devices differ", phone, one, other, two, []),
          ("damage on a device has no other copy", phone, one + [damaged], other, one, []),
          (
            "damage in a backup", monday, one + [damaged], phone, one,
            [("Find out what is damaged", ["keyhaul verify monday"])]
          ),
          (
            "what is sealed may be the same", monday, [sealed], family, bound,
            [("To see which encrypted items are the same", ["keyhaul diff monday family --device-key-file PATH"])]
          ),
        ]
    for (situation, first, before, second, after, steps) in table {
      let page = DifferencePage(
        from: first, to: second, try KeychainDifference(from: before, to: after), program: "keyhaul 1.0")
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
