import Foundation
import Testing

@testable import keyhaul

@Suite("Questions before moving to a new phone")
struct MoveQuestionTests {
  @Test("\"I backed up to my computer, will my passwords be there?\" Not from a backup without a password")
  func withoutPassword() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let plan = try sandbox.keyhaul("plan plain.tar --to new-phone")
    #expect(plan.status == 0)
    #expect(
      unwrapped(plan.errors)
        == "warning: no item in plain.tar can move to new-phone why: a backup without a password can be decrypted only "
        + "on old-phone try: make a new backup of old-phone with a password: keyhaul explain "
        + "backup-password")
    #expect(unwrapped(plan.output).contains("0 will move, 18 stay behind"))
    let compared = unwrapped(try sandbox.succeed("plan plain.tar --to new-phone --compare"))
    #expect(compared.contains("With a password, 14 more items would move; 4 stay behind in any case"))
    // A backup with a password restores the items, as the plan says.
    try sandbox.backUp(to: "b.tar")
    let restored = try sandbox.succeed("restore b.tar --to new-phone --password-file .bp --yes")
    #expect(restored.hasPrefix("Restored 13 items to new-phone"))
  }

  @Test("\"My one-time codes are behind Face ID, do they come along?\" They stay: export them before wiping the phone")
  func protectedCodes() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run(
      "printf otpauth | keyhaul item add old-phone --service codes.example --account anna --biometry --secret-file -")
    try sandbox.backUp(to: "b.tar")
    // The backup does not contain the item.
    #expect(try sandbox.plan("b.tar")["items"].map { "\($0)".contains("codes.example") } == false)
    let plan = unwrapped(try sandbox.succeed("plan old-phone --to new-phone -v"))
    #expect(
      plan.contains(
        "needs-authentication: the item can be decrypted only after the user authenticates on the device"))
    let explanation = unwrapped(try sandbox.succeed("why b.tar --service codes.example --password-file .bp"))
    #expect(explanation.contains("not in b.tar, but on old-phone, whose backups omit it"))
    #expect(
      explanation.contains(
        "Before you erase the source device, transfer them in the app that made them. For one-time passwords, use the "
          + "app's own export."))
    // Not even a restore to the same phone brings the item back.
    let document = try sandbox.object(sandbox.succeed("why old-phone --service codes.example --json"))
    let itemExplanation = try #require((document["stories"] as? [[String: Any]])?.first)
    let restores = try #require(itemExplanation["restores"] as? [[String: Any]])
    #expect(restores.count == 4 && restores.allSatisfy { $0["reason"] as? String == "needs-authentication" })
  }

  @Test("\"The app moved, but says its database is damaged.\" Its key was for the source device only")
  func databaseKey() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run(
      "printf 0123456789abcdef | keyhaul item add old-phone --service notes.example --account 'database key' "
        + "--protection after-first-unlock-this-device --secret-file -")
    try sandbox.backUp(to: "b.tar")
    let explanation = unwrapped(
      try sandbox.succeed("why b.tar --account 'database key' --to new-phone --password-file .bp"))
    #expect(explanation.contains("stays behind (device-bound)"))
    #expect(
      explanation.contains(
        "Sign in again on the new device. If the item is the key to an app's data, export that data "
          + "in the app first."))
    let plan = unwrapped(try sandbox.succeed("plan b.tar --to new-phone --password-file .bp"))
    #expect(plan.contains("notes.example · database key"))
    #expect(
      plan.contains(
        "to replace them. If one of them is the key to an app's database, that database cannot be "
          + "decrypted there."))
    let rule = unwrapped(try sandbox.succeed("explain device-bound"))
    #expect(
      rule.contains(
        "The item can be restored to the same device. Any other device skips it silently. If the item is the key to "
          + "an app's encrypted database, the database may move, but cannot be decrypted there."))
    // A restore to the source device restores the key too.
    try sandbox.succeed("device erase old-phone --yes -q")
    try sandbox.succeed("restore b.tar --to old-phone --password-file .bp -q")
    let secret = try sandbox.devices.run("keyhaul item find old-phone --account 'database key' --reveal")
    #expect(secret.output == "0123456789abcdef")
  }

  @Test("An item with the default protection class is restored")
  func defaultClass() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run(
      "printf x | keyhaul item add old-phone --service plain.example --account me --secret-file -")
    let document = try sandbox.object(sandbox.succeed("why old-phone --service plain.example --to new-phone --json"))
    let explanation = try #require((document["stories"] as? [[String: Any]])?.first)
    #expect(explanation["protection"] as? String == "ak")
    #expect((explanation["on_target"] as? [String: Any])?["outcome"] as? String == "migrates")
    try sandbox.backUp(to: "b.tar")
    try sandbox.succeed("restore b.tar --to new-phone --password-file .bp --yes -q")
    #expect(try sandbox.devices.run("keyhaul item find new-phone --service plain.example --reveal").output == "x")
  }

  @Test("A new password changes what decrypts the backup, but not which items it restores")
  func sameItems() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let itemsBefore = try PlannedItems(sandbox.plan("b.tar"))
    try sandbox.write(Array("another\n".utf8), to: ".new")
    try sandbox.succeed("rekey b.tar --password-file .bp --new-password-file .new --rounds 1 -q")
    #expect(try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp").status == 12)
    let planAfter = try sandbox.object(sandbox.succeed("plan b.tar --to new-phone --password-file .new --json"))
    #expect(PlannedItems(planAfter) == itemsBefore)
    // A restore to the source device does not need the old password either.
    let restored = try sandbox.succeed("restore b.tar --to old-phone --password-file .new --yes")
    #expect(restored.hasPrefix("Restored 1 item to old-phone in one step; 17 were already there"), "\(restored)")
  }
}
