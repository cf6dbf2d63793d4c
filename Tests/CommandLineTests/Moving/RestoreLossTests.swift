import Foundation
import Testing

@testable import keyhaul

@Suite("Losses shown before a restore")
struct RestoreLossTests {
  private func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "b.tar") }

  private let line = "restore b.tar --to new-phone --password-file .bp"

  @Test("A newer item on the target is listed first with both dates, and only a yes overwrites it")
  func newer() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("item update new-phone --service AirPort --new-label mine --yes -q")
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let unconfirmed = try sandbox.keyhaul(line)
    #expect(unconfirmed.status == 64 && unconfirmed.output == "")
    #expect(
      unwrapped(unconfirmed.errors).hasPrefix(
        "error: adding 12 items, removing 1 item from new-phone and overwriting 1 there, of which 1 is newer than the "
          + "backup's, must be confirmed"), "\(unconfirmed.errors)")
    let stopped = try sandbox.keyhaul(line, typed: ["n"])
    #expect(stopped.status == 1)
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    let expectedLines = [
      "Plan: b.tar → new-phone (another device)", "  made [..] by old-phone · encrypted · 18 items",
      "  new-phone: unlocked, passcode set, 3 items", "  existing items: replace, as iOS does (--existing replace)",
      "  this-device-only items: names decrypted with the device key of old-phone", "",
      "Newer on new-phone, but overwritten by b.tar (1)",
      "  ~ generic      AirPort · Home  after first unlock",
      "      on the target: [..]; in the backup: [..]; the existing item is",
      "      newer, but is removed first", "",
      "Removed from new-phone (1)", "  - generic      mine · me", "",
      "14 will move (12 new, 1 replaced, 1 already there), 4 stay behind, 0 cannot be",
      "read, 1 removed from new-phone.",
      "Remove 1 item from new-phone, overwrite 1 there (1 is newer than the backup's) and add 12? [y/N] n",
    ]
    #expect(SessionScript.matches(stopped.terminal, expectedLines), "\(stopped.terminal)")
    // Merging keeps the newer item, and removes nothing.
    let merged = try sandbox.keyhaul("\(line) --existing merge")
    #expect(
      merged.output
        == "Restored 12 items to new-phone in one step; 1 was already there, 1 existing item kept, 4 stayed behind.\n",
      "\(merged)")
    #expect(try sandbox.succeed("item find new-phone --service mine").contains("me"))
  }

  @Test("A long list is shortened and says how many items it hides, and -v shows all of them")
  func long() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run(
      "for n in 01 02 03 04 05 06 07 08 09 10 11 12; do printf x | keyhaul item add new-phone --service own --account $n --secret-file - -q; done"
    )
    let shortened = try sandbox.keyhaul(line, typed: ["n"])
    #expect(shortened.terminal.contains("Removed from new-phone (12)\n"), "\(shortened.terminal)")
    #expect(shortened.terminal.contains("… 2 more (-v shows all)\n"), "\(shortened.terminal)")
    #expect(!shortened.terminal.contains("own · 12\n"))
    let complete = try sandbox.keyhaul("\(line) -v", typed: ["n"])
    #expect(complete.terminal.contains("  - generic      own · 12\n") && !complete.terminal.contains(" more ("))
  }

  @Test("A repeated merge reports that there is nothing to do, and changes no file of the device")
  func repeatedMerge() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("\(line) --existing merge --yes -q")
    let filesBefore = try sandbox.devices.files(of: "new-phone")
    let contentsBefore = try sandbox.contents(of: "new-phone")
    let text = try sandbox.succeed("\(line) --existing merge")
    #expect(text == "Nothing to do: all 14 items are already on new-phone; 4 stayed behind.\n")
    let document = try sandbox.object(sandbox.succeed("\(line) --existing merge --json"))
    #expect(document["restored"] as? Int == 0)
    // No byte, date or revision has changed, and a plan calls all items identical.
    #expect(try sandbox.devices.files(of: "new-phone") == filesBefore)
    #expect(try sandbox.contents(of: "new-phone") == contentsBefore)
    let shown = try sandbox.object(sandbox.succeed("device show new-phone --json"))
    #expect(document["revision"] as? String == shown["revision"] as? String)
    let plan = try sandbox.plan("b.tar", to: "new-phone", "--existing merge")
    let items = try #require(plan["items"] as? [[String: Any]])
    #expect(items.compactMap { $0["change"] as? String } == Array(repeating: "identical", count: 14))
    // The command fails if it cannot print even this result.
    #expect(try sandbox.devices.run("keyhaul \(line) --existing merge > /dev/full").status == 1)
  }

  @Test("Items that were already on the target do not count as restored")
  func counted() throws {
    let sandbox = try sandbox()
    // One of the 14 items that arrive, a certificate, is already on new-phone.
    #expect(
      try sandbox.succeed("\(line) --yes")
        == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n")
    let repeated = try sandbox.object(sandbox.succeed("\(line) --yes --json"))
    #expect(repeated["restored"] as? Int == 0)
    #expect(
      try sandbox.succeed("\(line) --yes")
        == "Nothing to restore: all 14 items were already on new-phone; 4 stayed behind.\n")
  }
}
