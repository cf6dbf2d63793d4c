import Foundation
import Testing

@testable import keyhaul

/// Without a target, a plan contains an outlook for each possible restore: to a new device, and to the erased source
/// device. In JSON, the outlooks are in `futures`.
@Suite("Plans without a target device")
struct OutlookTests {
  private static let passwordFlag = "--password-file .bp"

  /// Returns the outlook for one restore, in the document of a plan without a target.
  private func outlook(in document: [String: Any], isSameDevice: Bool, hasPassword: Bool = true) -> [String: Any] {
    let outlooks = document["futures"] as? [[String: Any]] ?? []
    return outlooks.first {
      $0["same_device"] as? Bool == isSameDevice && $0["password"] as? Bool == hasPassword
    } ?? [:]
  }

  /// Returns the number of items that arrive in one restore.
  private func arrivingCount(in document: [String: Any], isSameDevice: Bool, hasPassword: Bool = true) -> Int? {
    outlook(in: document, isSameDevice: isSameDevice, hasPassword: hasPassword)["arrives"] as? Int
  }

  @Test("The plan counts what moves to a new iPhone, what returns to old-phone, and what is in no backup")
  func backup() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let devicesBefore = try sandbox.names(in: "devices")
    let text = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag) -v"))
    #expect(
      text.contains(
        "Of the 22 items on old-phone, 14 move to a new iPhone and 8 do not. After an erase, 18 of them are restored to "
          + "old-phone and 4 are not."), "\(text)")
    #expect(text.contains("Keyhaul tried to decrypt every item. For old-phone, it used the device key of old-phone."))
    for name in ["wallet · card 4", "ssh work laptop", "SecureObjectSync · peer key", "bank.example · vault key"] {
      #expect(text.contains(name), "\(name)")
    }
    #expect(text.contains("Lost on a new iPhone; kept if restored to old-phone (4) device-bound"))
    #expect(text.contains("Before you erase old-phone") && text.contains("[ ] Check that the backup is intact."))
    #expect(try sandbox.names(in: "devices") == devicesBefore)
  }

  @Test("The counts in the plan match the results of real restores, to a new phone and to the erased source phone")
  func matchesRestores() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    try sandbox.devices.run("printf 2468 > .pin; chmod 600 .pin")
    let planOfDevice = try sandbox.object(sandbox.succeed("plan old-phone --json"))
    let planOfEncrypted = try sandbox.object(sandbox.succeed("plan b.tar --json \(Self.passwordFlag)"))
    let planOfPlain = try sandbox.object(sandbox.succeed("plan plain.tar --json"))
    let backups: [(backup: String, plan: [String: Any], hasPassword: Bool, newPhone: String)] = [
      ("b.tar", planOfEncrypted, true, "one"), ("plain.tar", planOfPlain, false, "two"),
    ]
    for (backup, planOfBackup, hasPassword, newPhone) in backups {
      let flags = hasPassword ? Self.passwordFlag : ""
      func itemCount(afterRestoreTo phone: String) throws -> Int {
        try sandbox.succeed("restore \(backup) --to \(phone) -q --yes \(flags)")
        let shown = try sandbox.object(sandbox.succeed("device show \(phone) --json"))
        return try #require(shown["items"] as? Int)
      }
      try sandbox.succeed("device create \(newPhone) --passcode-file .pin -q")
      let countOnNewPhone = try itemCount(afterRestoreTo: newPhone)
      #expect(countOnNewPhone == (hasPassword ? 14 : 0))

      try sandbox.succeed("device erase old-phone --yes -q")
      let countOnSamePhone = try itemCount(afterRestoreTo: "old-phone")
      #expect(countOnSamePhone == 18)
      for plan in [planOfBackup, planOfDevice] {
        #expect(arrivingCount(in: plan, isSameDevice: false, hasPassword: hasPassword) == countOnNewPhone, "\(backup)")
        #expect(arrivingCount(in: plan, isSameDevice: true, hasPassword: hasPassword) == countOnSamePhone, "\(backup)")
      }
    }
  }

  @Test(
    "Without the source device, the plan says that it judged items by their class")
  func byClass() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let text = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag) -v"))
    #expect(
      text.contains(
        "Of the 18 items in the backup, 14 move to a new iPhone and 4 do not. After an erase, 14 of them are restored "
          + "to old-phone, and 4 more should be, judging by their classes; this could not be checked. Items that "
          + "never enter a backup are lost in both cases and are not counted."), "\(text)")
    // A row of the table, with a column for a new device and a column for the same device.
    #expect(text.contains("x never in a backup not known not known"))
    #expect(
      text.contains(
        "it judged 4 items by class, because the device key that decrypts them is not available"))
    #expect(!text.contains("it used the device key"))
    let document = try sandbox.object(sandbox.succeed("plan b.tar --json \(Self.passwordFlag)"))
    let sameDevice = outlook(in: document, isSameDevice: true)
    #expect(sameDevice["arrives"] as? Int == 14 && sameDevice["expected"] as? Int == 4)
    #expect(sameDevice["never_in_backup"] is NSNull)
    #expect(document["tried_hardware"] as? Bool == false && document["not_in_backup"] == nil)
    let plainDocument = try sandbox.object(sandbox.succeed("plan plain.tar --json"))
    #expect(outlook(in: plainDocument, isSameDevice: true, hasPassword: false)["expected"] as? Int == 18)
    for isSameDevice in [true, false] {
      #expect(arrivingCount(in: plainDocument, isSameDevice: isSameDevice, hasPassword: false) == 0)
    }
    let plainText = unwrapped(try sandbox.succeed("plan plain.tar -v"))
    #expect(
      plainText.contains("None of the 18 items in the backup moves to a new iPhone; the backup has no password."))
    #expect(
      plainText.contains(
        "18 of them should be restored to old-phone, judging by their classes; this could not be checked."))
    // The plan claims nothing that it could not check.
    for claim in ["0 stay", "all of them are restored", "nothing is lost"] {
      #expect(!plainText.contains(claim), "\(claim)")
    }
  }

  @Test("The device key of another device causes a warning and is ignored")
  func deviceKey() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("head -c 16 /dev/zero > other.key; chmod 600 other.key")
    let line = "plan b.tar --device-key-file other.key --json \(Self.passwordFlag)"
    let outcomeBeforeDeletion = try sandbox.keyhaul(line)
    #expect(outcomeBeforeDeletion.errors.contains("the given device key does not belong to the source device of b.tar"))
    #expect(arrivingCount(in: try sandbox.object(outcomeBeforeDeletion.output), isSameDevice: true) == 18)
    // Without the source device, its own key is not available either.
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let outcomeAfterDeletion = try sandbox.keyhaul(line)
    let document = try sandbox.object(outcomeAfterDeletion.output)
    #expect(arrivingCount(in: document, isSameDevice: true) == 14 && document["tried_hardware"] as? Bool == false)
  }

  @Test("A plan for a device covers backups with and without a password")
  func device() throws {
    let sandbox = try PhoneSandbox()
    let document = try sandbox.object(sandbox.succeed("plan old-phone --json"))
    let counts = (document["futures"] as? [[String: Any]] ?? []).map { $0["arrives"] as? Int }
    // With a password: new device, same device. Without a password: new device, same device.
    #expect(counts == [14, 18, 0, 18])
    #expect(document["cannot_show"] == nil && document["not_in_backup"] == nil)
    let text = unwrapped(try sandbox.succeed("plan old-phone -v"))
    #expect(text.contains("Of the 22 items on old-phone, 14 move to a new iPhone and 8 do not."))
    #expect(
      text.contains("This is for a backup with a password. Without one, none move to a new iPhone, and 18 are restored")
    )
    #expect(!text.contains("Items that never enter a backup"))
    let withoutPassword = unwrapped(try sandbox.succeed("plan old-phone --no-password -v"))
    #expect(
      withoutPassword.contains(
        "None of the 22 items on old-phone moves to a new iPhone in a backup without a password."))
  }

  @Test("The plan is available as a page, a document and a redacted report")
  func formats() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let written = try sandbox.keyhaul("plan b.tar \(Self.passwordFlag) --format html -o lost.html")
    #expect(written.status == 0 && written.errors.contains("Wrote lost.html"), "\(written)")
    let page = String(decoding: try sandbox.read("lost.html"), as: UTF8.self)
    #expect(page.contains("Of the 22 items on old-phone, 14 move to a new iPhone and 8 do not."))
    #expect(page.contains("type=\"checkbox\"") && page.contains("Before you erase <bdi>old-phone</bdi>"))
    // A secret of old-phone.
    #expect(!page.contains("plum-orchard-42"))
    try sandbox.succeed("plan b.tar \(Self.passwordFlag) -o lost.txt -q")
    #expect(
      String(decoding: try sandbox.read("lost.txt"), as: UTF8.self).hasPrefix(
        "14 of 22 keychain items reach a new iPhone; 8 stay with old-phone.\n"))
    try sandbox.succeed("plan b.tar \(Self.passwordFlag) --json -o lost.json -q")
    // A plan without a target cannot be used for a restore.
    let refused = try sandbox.keyhaul("restore b.tar --to new-phone --plan lost.json \(Self.passwordFlag) --yes")
    #expect(refused.status == 14 && refused.errors.contains("migration-futures/1"), "\(refused)")
    for flags in ["-v", "--json", "--format html"] {
      let text = try sandbox.succeed("plan b.tar \(Self.passwordFlag) --redact \(flags)")
      for name in ["anna", "chat.example", "push token", "old-phone", "b.tar", "card 4"] {
        #expect(!text.contains(name), "\(flags) \(name)")
      }
      // Items have a number in place of their name: `item-` in the backup, and `own-` if only the device has them.
      #expect(text.contains("own-0001") || text.contains("item-0003"), "\(flags)")
    }
  }

  @Test("`plan --exit-code` exits with 2 if items are lost, and `plan` exits with 3 if the backup is damaged")
  func exitCodes() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    #expect(try sandbox.keyhaul("plan b.tar \(Self.passwordFlag) --exit-code").status == 2)
    // All items of this device move in a backup with a password.
    try sandbox.succeed("device create hostile-phone --from hostile-names -q")
    #expect(try sandbox.keyhaul("plan hostile-phone --exit-code").status == 0)
    #expect(try sandbox.keyhaul("plan hostile-phone --no-password --exit-code").status == 2)
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.damageFirstItem(in: "plain")
    let damaged = try sandbox.keyhaul("plan plain/ -v")
    #expect(damaged.status == 3 && unwrapped(damaged.output).contains("! cannot be read 1 1"), "\(damaged)")
    // The damaged item is one of 22, and no item is counted twice.
    #expect(unwrapped(damaged.output).contains("total 22 22"), "\(damaged)")
  }

  @Test("A plan for an empty backup says that nothing moves and nothing is restored")
  func empty() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create bare -q")
    try sandbox.backUp("bare", to: "bare.tar")
    try sandbox.succeed("device delete bare --confirm bare -q")
    let text = unwrapped(try sandbox.succeed("plan bare.tar \(Self.passwordFlag) -v"))
    #expect(
      text.contains("The backup contains no items. Nothing moves to a new iPhone, and nothing is restored to bare."))
    #expect(text.contains("Items that never enter a backup are lost in both cases and are not counted."))
    let document = try sandbox.object(sandbox.succeed("plan bare.tar --json \(Self.passwordFlag)"))
    #expect((document["futures"] as? [[String: Any]])?.map { $0["total"] as? Int } == [0, 0])
  }

  @Test("All views of a plan without a target are for a new iPhone")
  func views() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    for view in ["--compare", "--by-app"] {
      let text = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag) \(view)"))
      #expect(text.contains("b.tar → a new iPhone"), "\(text)")
      let document = try sandbox.object(sandbox.succeed("plan b.tar \(Self.passwordFlag) \(view) --json"))
      let target = try #require(document["target"] as? [String: Any])
      #expect(target["imagined"] as? Bool == true && target["items"] as? Int == 0)
    }
    #expect(try sandbox.succeed("plan b.tar \(Self.passwordFlag) --compare").contains("* 14 restored, 4 stay behind"))
    #expect(try sandbox.succeed("plan b.tar \(Self.passwordFlag) --audit").contains("14 leave the device"))
    let list = #"{"format":"plan-expectations/1","expectations":[{"account":"push token","expect":"stays-behind"}]}"#
    try sandbox.write(Array(list.utf8), to: "e.json")
    #expect(try sandbox.succeed("plan b.tar \(Self.passwordFlag) --expect e.json").contains("1 of 1 expectation met."))
    let page = try sandbox.succeed("plan b.tar \(Self.passwordFlag) --compare --format html -o -")
    #expect(page.contains("Four ways to restore"))
  }

  @Test("A flag and a restore that need a target are rejected with advice")
  func usage() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let existing = try sandbox.keyhaul("plan b.tar --existing merge \(Self.passwordFlag)")
    #expect(existing.status == 64 && existing.errors.hasPrefix("error: --existing needs --to\n"), "\(existing)")
    let restore = try sandbox.keyhaul("restore b.tar \(Self.passwordFlag)")
    #expect(
      restore.status == 64
        && unwrapped(restore.errors).contains(
          "To see what you would lose before you choose a device: keyhaul plan b.tar"),
      "\(restore)")
  }

  @Test("An unknown target is rejected with advice, and a password for a device is a usage error")
  func rejectedArguments() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let unknown = unwrapped(try sandbox.keyhaul("plan b.tar --to nobody \(Self.passwordFlag)").errors)
    #expect(unknown.contains("there is no device named nobody") && unknown.contains("keyhaul device create nobody"))
    #expect(unknown.contains(", or leave --to out to plan for a new device"))
    #expect(try sandbox.keyhaul("plan b.tar --to nobody \(Self.passwordFlag)").status == 10)
    #expect(try sandbox.keyhaul("plan old-phone \(Self.passwordFlag)").status == 64)
  }

  @Test("A plan for a locked phone fails, and a plan for its backup cannot list the items that the backup omits")
  func lockedSource() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("device lock old-phone -q")
    #expect(try sandbox.keyhaul("plan old-phone").status == 15)
    let locked = try sandbox.keyhaul("plan b.tar \(Self.passwordFlag) -v")
    #expect(locked.status == 0 && unwrapped(locked.errors).contains("cannot be listed"), "\(locked)")
    #expect(unwrapped(locked.output).contains("x never in a backup not known not known"))
    #expect(
      unwrapped(locked.output).contains(
        "After an erase, all of them are restored to old-phone. Items that never enter a backup"))
  }
}
