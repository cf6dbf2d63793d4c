import Foundation
import Testing

@testable import keyhaul

@Suite("What a restore takes away from the target")
struct RestoreLossTests {
  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.backUp(to: "b.tar")
    return world
  }

  private let line = "restore b.tar --to new-phone --password-file .bp"

  @Test("an item that is newer there stands first, with both dates, and only a yes overwrites it")
  func newer() throws {
    let world = try world()
    try world.succeed("item update new-phone --service AirPort --new-label mine --yes -q")
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    let before = try world.contents(of: "new-phone")
    let unasked = try world.keyhaul(line)
    #expect(unasked.status == 64 && unasked.output == "")
    #expect(
      unasked.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ").hasPrefix(
        "error: adding 12 items, removing 1 item from new-phone and overwriting 1 there, of which 1 is newer than the "
          + "backup's, must be confirmed"
      ), "\(unasked.errors)")
    let no = try world.keyhaul(line, typed: ["n"])
    #expect(no.status == 1)
    #expect(try world.contents(of: "new-phone") == before)
    let shown = [
      "Plan: b.tar → new-phone (another device)", "  made [..] by old-phone · encrypted · 18 items",
      "  new-phone: unlocked, passcode set, 3 items", "  existing items: replace, as iOS does (--existing replace)",
      "  this-device-only items: names decrypted with the hardware key of old-phone", "",
      "Newer on new-phone, but overwritten by b.tar (1)",
      "  ~ generic      AirPort · Home  after first unlock",
      "      on the target: [..]; in the backup: [..]; the existing item is",
      "      newer, but is removed first", "",
      "Removed from new-phone (1)", "  - generic      mine · me", "",
      "14 will move (12 new, 1 replaced, 1 already there), 4 stay behind, 0 cannot be",
      "read, 1 removed from new-phone.",
      "Remove 1 item from new-phone, overwrite 1 there (1 is newer than the backup's) and add 12? [y/N] n",
    ]
    #expect(SessionScript.matches(no.terminal, shown), "\(no.terminal)")
    // Merging keeps the newer one, and takes nothing away.
    let merged = try world.keyhaul("\(line) --existing merge")
    #expect(
      merged.output
        == "Restored 12 items to new-phone in one step; 1 was already there, 1 existing item kept, 4 stayed behind.\n",
      "\(merged)")
    #expect(try world.succeed("item find new-phone --service mine").contains("me"))
  }

  @Test("a long list is cut with its count, and -v shows all of it")
  func long() throws {
    let world = try world()
    try world.devices.run(
      "for n in 01 02 03 04 05 06 07 08 09 10 11 12; do printf x | keyhaul item add new-phone --service own --account $n --secret-file - -q; done"
    )
    let cut = try world.keyhaul(line, typed: ["n"])
    #expect(cut.terminal.contains("Removed from new-phone (12)\n"), "\(cut.terminal)")
    #expect(cut.terminal.contains("… 2 more (-v shows all)\n"), "\(cut.terminal)")
    #expect(!cut.terminal.contains("own · 12\n"))
    let whole = try world.keyhaul("\(line) -v", typed: ["n"])
    #expect(whole.terminal.contains("  - generic      own · 12\n") && !whole.terminal.contains(" more ("))
  }

  @Test("a merge of the same again has nothing to do, says so, and touches no file of the device")
  func again() throws {
    let world = try world()
    try world.succeed("\(line) --existing merge --yes -q")
    let before = try world.devices.files(of: "new-phone")
    let contents = try world.contents(of: "new-phone")
    let text = try world.succeed("\(line) --existing merge")
    #expect(text == "Nothing to do: all 14 items are already on new-phone; 4 stayed behind.\n")
    let document = try world.object(world.succeed("\(line) --existing merge --json"))
    #expect(document["restored"] as? Int == 0)
    // Bytes, dates and the revision are as they were, and a plan says that all of them are there.
    #expect(try world.devices.files(of: "new-phone") == before)
    #expect(try world.contents(of: "new-phone") == contents)
    let shown = try world.object(world.succeed("device show new-phone --json"))
    #expect(document["revision"] as? String == shown["revision"] as? String)
    let plan = try world.plan("b.tar", to: "new-phone", "--existing merge")
    let items = try #require(plan["items"] as? [[String: Any]])
    #expect(items.compactMap { $0["change"] as? String } == Array(repeating: "identical", count: 14))
    // Nothing stands that could be done but.
    #expect(try world.devices.run("keyhaul \(line) --existing merge > /dev/full").status == 1)
  }

  @Test("what was there already is not counted as restored, whether it is kept or put back")
  func counted() throws {
    let world = try world()
    // One of the 14 that arrive, a certificate, is on new-phone as it is in the backup.
    let first = "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n"
    #expect(try world.succeed("\(line) --yes") == first)
    let second = try world.object(world.succeed("\(line) --yes --json"))
    #expect(second["restored"] as? Int == 0)
    #expect(
      try world.succeed("\(line) --yes")
        == "Nothing to restore: all 14 items were already on new-phone; 4 stayed behind.\n")
  }
}
