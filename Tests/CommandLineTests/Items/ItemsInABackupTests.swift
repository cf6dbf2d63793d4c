import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Items inside a backup")
struct ItemsInABackupTests {
  /// A device and its backups with a password, as a folder and as one file, and without one; and another home without
  /// any device.
  private static func world() throws -> MoveWorld {
    try MoveWorld(named: "items in backups") { world in
      try world.write(Array("new secret".utf8), to: ".secret")
      try world.backUp(to: "b.zip")
      try world.backUp(to: "b/")
      try world.succeed("backup old-phone -o plain.tar --no-password -q")
      try world.devices.run("mkdir elsewhere")
    }
  }

  private func items(_ world: MoveWorld, _ line: String) throws -> [JSONValue] {
    let document = try JSONReader.read(Array(world.succeed("export \(line) -o - --reveal --json").utf8))
    return document["items"]?.arrayValue ?? []
  }

  /// An item without its position, which those behind a new one change.
  private func content(_ item: JSONValue) -> String {
    [item["kind"], item["attributes"], item["secret"]].map { $0?.compactText() ?? "-" }.joined(separator: " ")
  }

  private static let group = "ABCDE12345.org.example.chat"

  @Test(
    "stay as they are where the keychain file is damaged: rewritten it would not show that any more",
    arguments: [
      "add b --service fresh --account zoe --access-group \(group) --secret-file .secret",
      "update b --account anna --new-label other --yes", "delete b --account anna --yes", "delete b --account anna -n",
    ])
  func damaged(line: String) throws {
    let world = try Self.world()
    try world.unseal("b")
    let name = try #require(try world.files(in: "b").first { $0.hasPrefix("51/") })
    let url = world.home.appending(path: "b/\(name)")
    var bytes = try Data(contentsOf: url)
    bytes[5_000] ^= 1
    try bytes.write(to: url)
    let outcome = try world.keyhaul("item \(line) --in-place --password-file .bp")
    #expect(
      outcome.status == 13 && outcome.errors.contains("error: b is damaged, and nothing was changed"), "\(outcome)")
    #expect(outcome.errors.contains("the digest recorded for the keychain file does not match"))
    #expect(try Data(contentsOf: url) == bytes)
    #expect(try world.keyhaul("verify b --password-file .bp").status == 13)
  }

  @Test("are added, found, changed and deleted, and everything else of it stays", arguments: ["b.zip", "b"])
  func story(name: String) throws {
    let world = try Self.world()
    let open = "\(name) --password-file .bp"
    let before = try items(world, open).map(content)
    let added = try world.succeed(
      "item add \(open) --service fresh.example --account zoe --access-group \(Self.group) --secret-file .secret")
    #expect(
      added
        == "Added generic password \"fresh.example · zoe\" to \(name) (can be decrypted on any device with the "
        + "backup's password).\n"
    )
    #expect(try world.succeed("item find \(open) --service 'fresh.*' --reveal") == "new secret")
    #expect(try world.succeed("verify \(open)").contains("\(name) is intact"))
    let withNew = try items(world, open)
    #expect(withNew.count == before.count + 1 && Set(withNew.map(content)).isSuperset(of: before))

    let same = try world.keyhaul(
      "item add \(open) --service fresh.example --account zoe --access-group \(Self.group) --secret-file .secret")
    #expect(same.status == 1 && same.errors.contains("already has this item"), "\(same)")

    let changed = try world.succeed(
      "item update \(open) --service fresh.example --new-account zara --new-label Renamed --yes --json")
    let document = try JSONReader.read(Array(changed.utf8))
    #expect(document["changed"] == .count(1) && document["source"] == ["kind": "archive", "name": .string(name)])
    #expect(document["items"]?.arrayValue?.first?["attributes"]?["acct"] == "zara")
    let found = try JSONReader.read(Array(world.succeed("item find \(open) --label Renamed --json").utf8))
    #expect(found["items"]?.arrayValue == document["items"]?.arrayValue)
    #expect(try world.succeed("item find \(open) --label Renamed --reveal") == "new secret")

    let tried = try world.succeed("item delete \(open) --service fresh.example -n")
    #expect(tried.hasPrefix("Would delete 1 item from \(name):"))
    #expect(try items(world, open).count == before.count + 1)
    #expect(
      try world.succeed("item delete \(open) --service fresh.example --yes") == "Deleted 1 item from \(name).\n")
    #expect(try items(world, open).map(content) == before)
    #expect(try world.succeed("verify \(open)").contains("\(name) is intact"))
    #expect(try world.keyhaul("item find \(open) --service fresh.example").status == 4)
  }

  @Test("arrive as the plan of the changed backup says")
  func restored() throws {
    let world = try Self.world()
    try world.succeed(
      "item add b.zip --password-file .bp --service fresh.example --account zoe --access-group \(Self.group) --secret-file .secret -q"
    )
    try world.succeed("item delete b.zip --password-file .bp --service chat.example --yes -q")
    let plan = try JSONReader.read(
      Array(world.keyhaul("plan b.zip --to new-phone --password-file .bp --json").output.utf8))
    let planned = (plan["items"]?.arrayValue ?? []).filter { $0["outcome"] == "migrates" }.count
    _ = try world.keyhaul("restore b.zip --to new-phone --password-file .bp --yes")
    #expect(try world.succeed("item find new-phone --service fresh.example --reveal") == "new secret")
    #expect(try world.keyhaul("item find new-phone --service chat.example").status == 4)
    #expect(planned > 0)
  }

  @Test("stay as they are and are counted where only their device opens them, and none is added that nobody could open")
  func sealed() throws {
    let world = try Self.world()
    let device = "--home elsewhere"
    let listed = try world.keyhaul("item find b.zip --password-file .bp --service chat.example \(device)")
    #expect(listed.errors.contains("cannot be decrypted here and may match"), "\(listed)")
    let bound = try world.keyhaul(
      "item add b.zip --password-file .bp --service x --account y --access-group g --secret-file .secret --protection when-unlocked-this-device \(device)"
    )
    #expect(bound.status == 14 && bound.errors.contains("cannot be encrypted for b.zip"), "\(bound)")
    let before = try items(world, "b.zip --password-file .bp").map(content)
    try world.succeed(
      "item add b.zip --password-file .bp --service x --account y --access-group g --secret-file .secret -q \(device)")
    let after = try items(world, "b.zip --password-file .bp")
    #expect(after.filter { $0["attributes"]?["svce"] != "x" }.map(content) == before)
    // With its device at hand, also one that only this device opens.
    try world.succeed(
      "item add b.zip --password-file .bp --service bound --account y --access-group g --secret-file .secret --protection when-unlocked-this-device -q"
    )
    #expect(try world.succeed("item find b.zip --password-file .bp --service bound --reveal") == "new secret")
    #expect(try world.keyhaul("item find b.zip --password-file .bp --service bound \(device)").status == 4)
  }

  @Test("of a backup without a password are changed with its device's key alone")
  func withoutPassword() throws {
    let world = try Self.world()
    let line = "item add plain.tar --service x --account y --access-group g --secret-file .secret"
    let refused = try world.keyhaul(line + " --home elsewhere")
    #expect(refused.status == 14 && flat(refused.errors).contains("nothing was changed"), "\(refused)")
    #expect(try world.succeed(line).contains("can be decrypted only on the source device"))
    #expect(try world.succeed("item find plain.tar --service x --reveal") == "new secret")
    #expect(try world.succeed("verify plain.tar").contains("plain.tar is intact"))
  }

  @Test("are refused in clear words, and nothing is changed")
  func refusals() throws {
    let world = try Self.world()
    try world.devices.run("cp b.zip kept.zip && touch b/note.txt")
    let new = "--service x --account y --secret-file .secret"
    for (line, status, words) in [
      ("item add b.zip --password-file .bp \(new)", 64, "no access group was given for the item"),
      (
        "item add b.zip --password-file .bp \(new) --access-group g --app chat", 64,
        "--app chat applies only to devices"
      ),
      (
        "item add b.zip --password-file .bp \(new) --access-group g --protection passcode-only", 14,
        "no backup contains"
      ),
      ("item add b.zip --password-file .bp \(new) --access-group g --biometry", 14, "no backup contains"),
      ("item add b.zip --password-file .secret \(new) --access-group g", 12, "password"),
      (
        "item update b.zip --password-file .bp --service chat.example --new-protection passcode-only --yes", 14,
        "no backup"
      ),
      ("item delete b.zip --password-file .bp", 64, "no attribute selects the items to delete"),
      ("item delete - --service x --yes --password-file .bp", 64, "cannot read standard input"),
      ("item add b --password-file .bp \(new) --access-group g", 64, "note.txt"),
      ("item add old-phone --password-file .bp \(new)", 64, "a device needs no backup password"),
    ] {
      let outcome = try world.keyhaul(line)
      #expect(outcome.status == status && outcome.errors.contains(words), "\(line): \(outcome)")
    }
    try world.devices.run("cmp b.zip kept.zip")
  }

  @Test("are the old ones or the new ones, killed at ten moments, or three in a quick run", arguments: ["b.zip", "b"])
  func killed(name: String) throws {
    let world = try Self.world()
    try world.devices.run("cp -Rp \(name) kept")
    let line =
      "item add \(name) --password-file .bp --service x --account y --access-group g --secret-file .secret --protection always"
    let start = Date()
    try world.succeed(line)
    let time = Date().timeIntervalSince(start)
    var numbers = SeededRandom(seed: UInt64(name.count))
    for _ in 0..<Cases.count(10, quick: 3) {
      try world.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
      let delay = Double.random(in: 0...time * 1.1, using: &numbers)
      try world.devices.run(
        "keyhaul \(line) > log 2>&1 & sleep \(String(format: "%.3f", delay)); kill -KILL $! 2> /dev/null; wait $! 2> /dev/null"
      )
      #expect(try world.succeed("verify \(name) --password-file .bp").contains("\(name) is intact"), "after \(delay) s")
      #expect([0, 4].contains(try world.keyhaul("item find \(name) --password-file .bp --service x").status))
    }
    // The next one clears up what a killed one left.
    try world.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
    try world.succeed(line)
    let hidden = try world.names().filter { $0.hasPrefix(".") && ![".bp", ".secret"].contains($0) }
    #expect(hidden.isEmpty, "\(hidden)")
  }

  @Test(
    "item find ends with 3 in every format if a damaged item may match too, and with 0 or 4 if it cannot",
    arguments: ["", "--json", "--format csv", "--reveal"])
  func damagedMatch(format: String) throws {
    let world = try Self.world()
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    let payload = try #require(try world.files(in: "plain").first { $0.contains("/") })
    var bytes = try world.read("plain/\(payload)")
    // The first item is a generic password, and no system writes this version.
    let blob = try #require(bytes.firstRange(of: [3, 0, 0, 0]))
    bytes[blob.lowerBound] = 9
    let find = "item find plain \(format)"
    let one = "--service chat.example --account anna"
    #expect(try world.keyhaul("\(find) \(one)").status == 0)
    try world.write(bytes, to: "plain/\(payload)")
    let found = try world.keyhaul("\(find) \(one)")
    #expect(found.status == 3 && !found.output.isEmpty, "\(found)")
    // The document of --json has no notes.
    let note = "1 item of plain cannot be decrypted here and may match"
    #expect(found.errors.contains(note) == (format != "--json"), "\(found)")
    let none = try world.keyhaul("\(find) --service nobody")
    #expect(none.status == 4 && none.errors.contains(note) == (format != "--json"), "\(none)")
    let other = try world.keyhaul("\(find) --server imap.example.org")
    #expect(other.status == 0 && !other.errors.contains("may match"), "\(other)")
  }

  @Test("says of sealed items only those that may be meant, and ends with 3 where a damaged one is among them")
  func hidden() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let find = "item find b.tar --password-file .bp --home elsewhere"
    // Three passwords for a service and a key are of this device only.
    for (selection, count) in [("--service nobody", 3), ("--label nobody", 4), ("--kind key --label nobody", 1)] {
      let outcome = try world.keyhaul("\(find) \(selection)")
      #expect(outcome.status == 4)
      #expect(
        outcome.errors.contains("\(count) item\(count == 1 ? " of b.tar" : "s of b.tar") cannot be decrypted here"),
        "\(outcome)")
    }
    #expect(try world.keyhaul("\(find) --server nobody").errors == "No item in b.tar matches.\n")
    #expect(try world.keyhaul("\(find) --service chat.example").status == 0)
  }
}
