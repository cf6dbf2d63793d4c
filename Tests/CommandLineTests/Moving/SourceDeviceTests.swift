import Foundation
import Testing

@testable import keyhaul

@Suite("Source devices of backups")
struct SourceDeviceTests {
  private static let passwordFlag = "--password-file .bp"

  /// Returns the section of a plan about the items of the source device that are not in the backup.
  private func notInBackup(_ line: String, in sandbox: PhoneSandbox) throws -> [String: Any] {
    let document = try sandbox.object(sandbox.succeed("\(line) \(Self.passwordFlag) --json"))
    return try #require(document["not_in_backup"] as? [String: Any], "\(line)")
  }

  @Test("The plan for a different target also lists the source device's items that are in no backup, with reasons")
  func names() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let section = try notInBackup("plan b.tar --to new-phone", in: sandbox)
    let items = try #require(section["items"] as? [[String: Any]])
    var reasons: [String: String] = [:]
    for item in items {
      let name = try #require(item["account"] as? String ?? item["label"] as? String)
      reasons[name] = item["reason"] as? String
    }
    #expect(
      reasons == [
        "card 4": "passcode-only", "ssh work laptop": "hardware-key", "peer key": "system-bound",
        "vault key": "needs-authentication",
      ])
    #expect(
      try sandbox.succeed("plan b.tar --to new-phone \(Self.passwordFlag)").contains(
        "Never in a backup (4)\n  x generic      wallet · card 4"))
  }

  @Test("`plan --exit-code` counts an item of the source device that is in no backup, with and without a target")
  func exitCodeOfMissingItems() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create phone -q")
    try sandbox.succeed("item add phone --service a.example --account anna --secret-command 'printf x' -q")
    try sandbox.backUp("phone", to: "complete.tar")
    try sandbox.succeed("device create copy -q")
    for target in ["", "--to copy"] {
      #expect(
        try sandbox.keyhaul("plan complete.tar \(target) --exit-code \(Self.passwordFlag)").status == 0, "\(target)")
    }
    try sandbox.succeed("item add phone --service b.example --account anna --biometry --secret-command 'printf x' -q")
    try sandbox.backUp("phone", to: "incomplete.tar")
    for target in ["", "--to copy"] {
      let outcome = try sandbox.keyhaul("plan incomplete.tar \(target) --exit-code \(Self.passwordFlag)")
      #expect(outcome.status == 2, "\(target): \(outcome)")
      #expect(try sandbox.keyhaul("plan incomplete.tar \(target) \(Self.passwordFlag)").status == 0)
    }
    // Without the source device, the item is not known.
    let withoutDevice = try sandbox.keyhaul("plan incomplete.tar --exit-code \(Self.passwordFlag) --home elsewhere")
    #expect(withoutDevice.status == 0, "\(withoutDevice)")
  }

  @Test("New, changed and deleted items of the source device are each counted once")
  func changed() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array("x".utf8), to: "secret")
    try sandbox.succeed("item add old-phone --service garden.example --account anna --secret-file secret -q")
    try sandbox.succeed(
      "item add old-phone --service garden.example --account key --protection passcode-only --secret-file secret -q")
    try sandbox.succeed("item update old-phone --service AirPort --account Home --new-secret-file secret -q --yes")
    try sandbox.succeed("item delete old-phone --service home.example --account guest -q --yes")
    let section = try notInBackup("plan b.tar", in: sandbox)
    // 22 items, plus two new items, minus one deleted item. 17 of the 18 items in the backup still exist.
    #expect(section["total"] as? Int == 23 && section["in_backup"] as? Int == 17 && section["never"] as? Int == 5)
    #expect(section["since"] as? Int == 1 && section["changed"] as? Int == 1 && section["gone"] as? Int == 1)
    let text = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag) -v"))
    #expect(
      text.contains(
        "old-phone has changed since the backup: 1 item on it is not in the backup, 1 item differs and 1 item of the backup "
          + "is no longer on it, so other items that the backup omits may be gone too."), "\(text)")
    #expect(text.contains("Lost: not in this backup (1)") && text.contains("Make a new backup."))
    // 18 items in the backup, 5 that are never in a backup, and 1 that was added later.
    #expect(text.contains("x never in a backup 5 5 x not in this backup 1 1 total 24 24"), "\(text)")
    #expect(text.contains("Of the 24 items in the backup and on old-phone, 14 move to a new iPhone and 10 do not."))
  }

  @Test("For an erased source device, the plan says that the backup's items are not on it")
  func erased() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("device erase old-phone --yes -q")
    let text = unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag) -v"))
    #expect(
      text.contains(
        "18 items of the backup are no longer on it, so other items that the backup omits may be gone "
          + "too"), "\(text)"
    )
    #expect(text.contains("A backup cannot show items left out of it: keyhaul explain never-in-backup"))
    #expect(text.contains("Items that old-phone had when the backup was made, but no longer has, are not counted."))
    #expect(text.contains("x never in a backup not known not known"))
    let document = try sandbox.object(sandbox.succeed("plan b.tar \(Self.passwordFlag) --json"))
    let outlooks = try #require(document["futures"] as? [[String: Any]])
    #expect(outlooks.count == 2 && outlooks.allSatisfy { $0["never_in_backup"] is NSNull })
    #expect(try notInBackup("plan b.tar", in: sandbox)["gone"] as? Int == 18)
  }

  @Test("--source accepts the right device, also in another folder")
  func source() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("mkdir away && mv devices/old-phone away/")
    #expect(
      unwrapped(try sandbox.succeed("plan b.tar \(Self.passwordFlag) -v")).contains("never in a backup not known"))
    for line in ["plan b.tar --source ./away/old-phone", "plan b.tar --to new-phone --source ./away/old-phone"] {
      #expect(try notInBackup(line, in: sandbox)["never"] as? Int == 4, "\(line)")
    }
  }

  @Test("--source rejects a device that did not make the backup, a missing or locked device, and a plan for a device")
  func rejectedSource() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("mkdir away && mv devices/old-phone away/")
    try sandbox.succeed("device create other --from old-phone -q")
    let withOther = try sandbox.keyhaul("plan b.tar --source other \(Self.passwordFlag)")
    #expect(withOther.status == 64 && withOther.output.isEmpty, "\(withOther)")
    #expect(withOther.errors.contains("other did not make b.tar"))
    #expect(
      unwrapped(withOther.errors).contains("its key decrypts none of the items that need a device key"))
    let ofDevice = try sandbox.keyhaul("plan other --source other")
    #expect(ofDevice.status == 64 && ofDevice.errors.hasPrefix("error: --source is for backups only\n"), "\(ofDevice)")
    #expect(try sandbox.keyhaul("plan b.tar --source nobody \(Self.passwordFlag)").status == 10)
    try sandbox.devices.run("keyhaul --home away device lock old-phone -q")
    let locked = try sandbox.keyhaul("plan b.tar --source ./away/old-phone \(Self.passwordFlag)")
    #expect(locked.status == 15, "\(locked)")
  }

  @Test("A device with the same identifier but another key is not treated as the source")
  func sameIdentifier() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    func udid(of device: String) throws -> String {
      try #require(try sandbox.object(sandbox.succeed("device show \(device) --json"))["udid"] as? String)
    }
    let sourceUDID = try udid(of: "old-phone")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    try sandbox.succeed("device create twin --from old-phone -q")
    let record = String(decoding: try sandbox.read("devices/twin/device.json"), as: UTF8.self)
    let changedRecord = record.replacing(try udid(of: "twin"), with: sourceUDID)
    try sandbox.write(Array(changedRecord.utf8), to: "devices/twin/device.json")
    let document = try sandbox.object(sandbox.succeed("plan b.tar --json \(Self.passwordFlag)"))
    #expect(document["not_in_backup"] == nil && document["tried_hardware"] as? Bool == false)
  }

  @Test("With --exit-code, items missing from the backup count as a loss")
  func exitCode() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    #expect(try sandbox.keyhaul("plan b.tar --to old-phone \(Self.passwordFlag) --exit-code").status == 2)
    #expect(try sandbox.keyhaul("plan b.tar --to old-phone \(Self.passwordFlag)").status == 0)
  }

  @Test("An item that a restore made synchronizable counts as the same item")
  func synchronized() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let sectionBefore = try notInBackup("plan b.tar --to new-phone", in: sandbox)
    let restored = try sandbox.succeed("restore b.tar --to old-phone --yes \(Self.passwordFlag) --json")
    #expect(restored.contains("inferred-synchronizable"))
    let sectionAfter = try notInBackup("plan b.tar --to new-phone", in: sandbox)
    #expect(sectionBefore["in_backup"] as? Int == 18 && sectionAfter["in_backup"] as? Int == 18)
    for member in ["since", "changed", "gone"] {
      #expect(sectionAfter[member] as? Int == 0, "\(member): \(sectionAfter)")
    }
    let text = try sandbox.succeed("plan b.tar --to old-phone -v \(Self.passwordFlag)")
    #expect(text.contains("inferred-synchronizable: it already syncs on the target"), "\(text)")
  }
}
