import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Items in backups")
struct BackupItemTests {
  /// Returns a sandbox with a device, its encrypted backups `b` and `b.zip`, its unencrypted backup `plain.tar`, and
  /// `elsewhere`, a device folder without devices.
  private static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "items in backups") { sandbox in
      try sandbox.write(Array("new secret".utf8), to: ".secret")
      try sandbox.backUp(to: "b.zip")
      try sandbox.backUp(to: "b/")
      try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
      try sandbox.devices.run("mkdir elsewhere")
    }
  }

  /// Returns the items of a backup, including their secrets.
  ///
  /// - Parameter backup: The backup, with the flags to decrypt it.
  private func items(of backup: String, in sandbox: PhoneSandbox) throws -> [JSONValue] {
    let document = try JSONReader.read(Array(sandbox.succeed("export \(backup) -o - --reveal --json").utf8))
    return document["items"]?.arrayValue ?? []
  }

  /// Returns an item without its index, because an added item can change the indexes of later items.
  private func withoutIndex(_ item: JSONValue) -> String {
    [item["kind"], item["attributes"], item["secret"]].map { $0?.compactText() ?? "-" }.joined(separator: " ")
  }

  private static let group = "ABCDE12345.org.example.chat"

  @Test(
    "Items in a damaged keychain file are not changed, because rewriting would hide the damage",
    arguments: [
      "add b --service fresh --account zoe --access-group \(group) --secret-file .secret",
      "update b --account anna --new-label other --yes", "delete b --account anna --yes", "delete b --account anna -n",
    ])
  func damaged(line: String) throws {
    let sandbox = try Self.sandbox()
    try sandbox.removeSeal("b")
    let path = "b/\(PhoneSandbox.keychainPath)"
    try sandbox.flipMiddleBit(of: path)
    let damagedBytes = try sandbox.read(path)
    let outcome = try sandbox.keyhaul("item \(line) --in-place --password-file .bp")
    #expect(
      outcome.status == 13 && outcome.errors.contains("error: b is damaged, and nothing was changed"), "\(outcome)")
    #expect(outcome.errors.contains("the digest recorded for the keychain file does not match"))
    #expect(try sandbox.read(path) == damagedBytes)
    #expect(try sandbox.keyhaul("verify b --password-file .bp").status == 13)
  }

  @Test(
    "Items are added, found, changed and deleted, and everything else in the backup stays", arguments: ["b.zip", "b"])
  func changes(name: String) throws {
    let sandbox = try Self.sandbox()
    let backup = "\(name) --password-file .bp"
    let itemsBefore = try items(of: backup, in: sandbox).map(withoutIndex)
    let added = try sandbox.succeed(
      "item add \(backup) --service fresh.example --account zoe --access-group \(Self.group) --secret-file .secret")
    #expect(
      added
        == "Added generic password \"fresh.example · zoe\" to \(name) (can be decrypted on any device with the "
        + "backup's password).\n"
    )
    #expect(try sandbox.succeed("item find \(backup) --service 'fresh.*' --reveal") == "new secret")
    #expect(try sandbox.succeed("verify \(backup)").contains("\(name) is intact"))
    let itemsWithNew = try items(of: backup, in: sandbox)
    #expect(itemsWithNew.count == itemsBefore.count + 1)
    #expect(Set(itemsWithNew.map(withoutIndex)).isSuperset(of: itemsBefore))

    let repeated = try sandbox.keyhaul(
      "item add \(backup) --service fresh.example --account zoe --access-group \(Self.group) --secret-file .secret")
    #expect(repeated.status == 1 && repeated.errors.contains("already has this item"), "\(repeated)")

    let changed = try sandbox.succeed(
      "item update \(backup) --service fresh.example --new-account zara --new-label Renamed --yes --json")
    let document = try JSONReader.read(Array(changed.utf8))
    #expect(document["changed"] == .count(1) && document["source"] == ["kind": "archive", "name": .string(name)])
    #expect(document["items"]?.arrayValue?.first?["attributes"]?["acct"] == "zara")
    let search = try JSONReader.read(Array(sandbox.succeed("item find \(backup) --label Renamed --json").utf8))
    #expect(search["items"]?.arrayValue == document["items"]?.arrayValue)
    #expect(try sandbox.succeed("item find \(backup) --label Renamed --reveal") == "new secret")

    let dryRun = try sandbox.succeed("item delete \(backup) --service fresh.example -n")
    #expect(dryRun.hasPrefix("Would delete 1 item from \(name):"))
    #expect(try items(of: backup, in: sandbox).count == itemsBefore.count + 1)
    #expect(
      try sandbox.succeed("item delete \(backup) --service fresh.example --yes") == "Deleted 1 item from \(name).\n")
    #expect(try items(of: backup, in: sandbox).map(withoutIndex) == itemsBefore)
    #expect(try sandbox.succeed("verify \(backup)").contains("\(name) is intact"))
    #expect(try sandbox.keyhaul("item find \(backup) --service fresh.example").status == 4)
  }

  @Test("Changed items are restored as the plan says")
  func restored() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed(
      "item add b.zip --password-file .bp --service fresh.example --account zoe --access-group \(Self.group) --secret-file .secret -q"
    )
    try sandbox.succeed("item delete b.zip --password-file .bp --service chat.example --yes -q")
    let plan = PlannedItems(try sandbox.plan("b.zip"))
    #expect(!plan.migrating.isEmpty)
    _ = try sandbox.keyhaul("restore b.zip --to new-phone --password-file .bp --yes")
    #expect(try sandbox.succeed("item find new-phone --service fresh.example --reveal") == "new secret")
    #expect(try sandbox.keyhaul("item find new-phone --service chat.example").status == 4)
  }

  @Test("Without the device key, undecryptable items are reported and kept, and no device-bound item can be added")
  func undecryptable() throws {
    let sandbox = try Self.sandbox()
    let emptyHomeFlag = "--home elsewhere"
    let found = try sandbox.keyhaul("item find b.zip --password-file .bp --service chat.example \(emptyHomeFlag)")
    #expect(found.errors.contains("cannot be decrypted here and may match"), "\(found)")
    let deviceBound = try sandbox.keyhaul(
      "item add b.zip --password-file .bp --service x --account y --access-group g --secret-file .secret --protection when-unlocked-this-device \(emptyHomeFlag)"
    )
    #expect(deviceBound.status == 14 && deviceBound.errors.contains("cannot be encrypted for b.zip"), "\(deviceBound)")
    let itemsBefore = try items(of: "b.zip --password-file .bp", in: sandbox).map(withoutIndex)
    try sandbox.succeed(
      "item add b.zip --password-file .bp --service x --account y --access-group g --secret-file .secret -q \(emptyHomeFlag)"
    )
    let itemsAfter = try items(of: "b.zip --password-file .bp", in: sandbox)
    #expect(itemsAfter.filter { $0["attributes"]?["svce"] != "x" }.map(withoutIndex) == itemsBefore)
    // If the source device is available, an item that only this device can decrypt can also be added.
    try sandbox.succeed(
      "item add b.zip --password-file .bp --service bound --account y --access-group g --secret-file .secret --protection when-unlocked-this-device -q"
    )
    #expect(try sandbox.succeed("item find b.zip --password-file .bp --service bound --reveal") == "new secret")
    #expect(try sandbox.keyhaul("item find b.zip --password-file .bp --service bound \(emptyHomeFlag)").status == 4)
  }

  @Test("Items of a backup without a password are changed with the source device's key")
  func withoutPassword() throws {
    let sandbox = try Self.sandbox()
    let line = "item add plain.tar --service x --account y --access-group g --secret-file .secret"
    let refused = try sandbox.keyhaul(line + " --home elsewhere")
    #expect(refused.status == 14 && unwrapped(refused.errors).contains("nothing was changed"), "\(refused)")
    #expect(try sandbox.succeed(line).contains("can be decrypted only on the source device"))
    #expect(try sandbox.succeed("item find plain.tar --service x --reveal") == "new secret")
    #expect(try sandbox.succeed("verify plain.tar").contains("plain.tar is intact"))
  }

  @Test(
    "If the given device key is wrong, items are added and changed with the virtual device's key and stay readable",
    arguments: ["b --password-file .bp", "plain.tar"])
  func wrongKeyNextToDevice(backup: String) throws {
    let sandbox = try Self.sandbox()
    try sandbox.write([UInt8](repeating: 7, count: 16), to: ".wrong")
    let added = try sandbox.keyhaul(
      "item add \(backup) --service bound --account zoe --access-group \(Self.group) --secret-file .secret --protection when-unlocked-this-device --device-key-file .wrong"
    )
    #expect(added.status == 0 && added.output.contains("can be decrypted only on the source device"), "\(added)")
    #expect(unwrapped(added.errors).contains("the given device key does not belong to the source device"), "\(added)")
    #expect(try sandbox.succeed("item find \(backup) --service bound --reveal") == "new secret")
    try sandbox.succeed("verify \(backup)")

    // The push token of old-phone is also this-device-only.
    let token = "--account 'push token'"
    #expect(try sandbox.succeed("item find \(backup) \(token) --reveal") != "new secret")
    try sandbox.succeed(
      "item update \(backup) \(token) --new-secret-file .secret --device-key-file .wrong --yes -q")
    #expect(try sandbox.succeed("item find \(backup) \(token) --reveal") == "new secret")
    try sandbox.succeed("item delete \(backup) --service bound --device-key-file .wrong --yes -q")
    #expect(try sandbox.keyhaul("item find \(backup) --service bound").status == 4)
    try sandbox.succeed("verify \(backup)")
  }

  @Test("Without the device, a wrong device key encrypts no item, and the right key encrypts this-device-only items")
  func deviceKeyWithoutDevice() throws {
    let sandbox = try Self.sandbox()
    try sandbox.write([UInt8](repeating: 7, count: 16), to: ".wrong")
    try sandbox.write(sandbox.deviceKey(of: "old-phone"), to: ".right")
    let newItem = "--account y --access-group g --secret-file .secret --home elsewhere"
    let deviceBound = "--service bound --protection when-unlocked-this-device"
    // Without a password, every item needs the device key.
    let refusals = [("b.zip", "--password-file .bp \(deviceBound)"), ("plain.tar", "--service x")]
    for (name, flags) in refusals {
      let bytesBefore = try sandbox.read(name)
      let refused = try sandbox.keyhaul("item add \(name) \(flags) \(newItem) --device-key-file .wrong")
      #expect(
        refused.status == 14 && refused.errors.contains("the item cannot be encrypted for \(name)"), "\(refused)")
      #expect(
        unwrapped(refused.errors).contains("the given device key does not belong to the source device of \(name)"),
        "\(refused)")
      #expect(try sandbox.read(name) == bytesBefore)
    }
    try sandbox.succeed("item add b.zip --password-file .bp --service x \(newItem) --device-key-file .wrong -q")
    try sandbox.succeed("item add b.zip --password-file .bp \(deviceBound) \(newItem) --device-key-file .right -q")
    for service in ["x", "bound"] {
      #expect(
        try sandbox.succeed("item find b.zip --password-file .bp --service \(service) --reveal") == "new secret")
    }
    try sandbox.succeed("verify b.zip --password-file .bp")
  }

  @Test("Rejected changes have a clear reason and change nothing")
  func refusals() throws {
    let sandbox = try Self.sandbox()
    let bytesBefore = try sandbox.read("b.zip")
    try sandbox.devices.run("touch b/note.txt")
    let newItem = "--service x --account y --secret-file .secret"
    let cases: [(line: String, status: Int32, message: String)] = [
      ("item add b.zip --password-file .bp \(newItem)", 64, "no access group was given for the item"),
      (
        "item add b.zip --password-file .bp \(newItem) --access-group g --app chat", 64,
        "--app chat applies only to devices"
      ),
      (
        "item add b.zip --password-file .bp \(newItem) --access-group g --protection passcode-only", 14,
        "no backup contains"
      ),
      ("item add b.zip --password-file .bp \(newItem) --access-group g --biometry", 14, "no backup contains"),
      ("item add b.zip --password-file .secret \(newItem) --access-group g", 12, "password"),
      (
        "item update b.zip --password-file .bp --service chat.example --new-protection passcode-only --yes", 14,
        "no backup"
      ),
      ("item delete b.zip --password-file .bp", 64, "no attribute selects the items to delete"),
      ("item delete - --service x --yes --password-file .bp", 64, "cannot read standard input"),
      ("item add b --password-file .bp \(newItem) --access-group g", 64, "note.txt"),
      ("item add old-phone --password-file .bp \(newItem)", 64, "a device needs no backup password"),
    ]
    for (line, status, message) in cases {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status && outcome.errors.contains(message), "\(line): \(outcome)")
    }
    #expect(try sandbox.read("b.zip") == bytesBefore)
  }

  @Test("A killed change leaves the old or the new items (10 moments, 3 in a quick run)", arguments: ["b.zip", "b"])
  func killed(name: String) throws {
    let sandbox = try Self.sandbox()
    try sandbox.devices.run("cp -Rp \(name) original")
    let line =
      "item add \(name) --password-file .bp --service x --account y --access-group g --secret-file .secret --protection always"
    let duration = try sandbox.duration(of: line)
    var random = SeededRandom(seed: UInt64(name.count))
    for _ in 0..<Cases.count(10, quick: 3) {
      try sandbox.devices.run("rm -rf \(name) && cp -Rp original \(name)")
      let delay = Double.random(in: 0...duration * 1.1, using: &random)
      try sandbox.run(line, killedAfter: delay)
      #expect(
        try sandbox.succeed("verify \(name) --password-file .bp").contains("\(name) is intact"), "after \(delay) s")
      #expect([0, 4].contains(try sandbox.keyhaul("item find \(name) --password-file .bp --service x").status))
    }
    // The next command deletes the leftovers of the killed commands.
    try sandbox.devices.run("rm -rf \(name) && cp -Rp original \(name)")
    try sandbox.succeed(line)
    let leftovers = try sandbox.names().filter { $0.hasPrefix(".") && ![".bp", ".secret"].contains($0) }
    #expect(leftovers.isEmpty, "\(leftovers)")
  }

  @Test(
    "`item find` exits with 3 if a damaged item may also match, with 4 if no readable item matches, and otherwise with 0",
    arguments: ["", "--json", "--format csv", "--reveal"])
  func damagedMatch(format: String) throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    let find = "item find plain \(format)"
    let login = "--service chat.example --account anna"
    #expect(try sandbox.keyhaul("\(find) \(login)").status == 0)
    // The first item is a generic password.
    try sandbox.damageFirstItem(in: "plain")
    let match = try sandbox.keyhaul("\(find) \(login)")
    #expect(match.status == 3 && !match.output.isEmpty, "\(match)")
    // The document of --json has no notes.
    let note = "1 item of plain cannot be decrypted here and may match"
    let hasNote = format != "--json"
    #expect(match.errors.contains(note) == hasNote, "\(match)")
    let unmatched = try sandbox.keyhaul("\(find) --service nobody")
    #expect(unmatched.status == 4 && unmatched.errors.contains(note) == hasNote, "\(unmatched)")
    let internetPassword = try sandbox.keyhaul("\(find) --server imap.example.org")
    #expect(
      internetPassword.status == 0 && !internetPassword.errors.contains("may match"), "\(internetPassword)")
  }

  @Test("A search without a match exits with 4, and counts the undecryptable items that may match")
  func mayMatch() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let find = "item find b.tar --password-file .bp --home elsewhere"
    // Three generic passwords and a key are this-device-only.
    let searches: [(selection: String, items: String)] = [
      ("--service nobody", "3 items"), ("--label nobody", "4 items"), ("--kind key --label nobody", "1 item"),
    ]
    for (selection, items) in searches {
      let outcome = try sandbox.keyhaul("\(find) \(selection)")
      #expect(outcome.status == 4)
      #expect(outcome.errors.contains("\(items) of b.tar cannot be decrypted here"), "\(outcome)")
    }
    #expect(try sandbox.keyhaul("\(find) --server nobody").errors == "No item in b.tar matches.\n")
    #expect(try sandbox.keyhaul("\(find) --service chat.example").status == 0)
  }
}
