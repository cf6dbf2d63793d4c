import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Restores that would only remove items")
struct RemovalOnlyRestoreTests {
  @Test(
    "A restore that would only remove items is rejected with any flags, and nothing is removed",
    arguments: ["--yes", "", "-n", "--plan move.plan --yes"])
  func refused(flags: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    try sandbox.succeed("plan plain.tar --to new-phone -o move.plan -q")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.keyhaul("restore plain.tar --to new-phone \(flags)", typed: ["y"])
    #expect(outcome.status == 14 && outcome.terminal == "", "\(outcome)")
    #expect(
      unwrapped(outcome.errors).hasSuffix(
        unwrapped(
          """
          error: no item of plain.tar would be restored to new-phone, so nothing was removed from it
            why: the restore would restore none of 18 items and remove 2 items
            try: make a new backup of old-phone with a password: keyhaul explain backup-password
          """)), "\(outcome.errors)")
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("A restore that restores no item is accepted if it also removes no item")
  func harmless() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let merged = try sandbox.keyhaul("restore plain.tar --to new-phone --existing merge")
    #expect(merged.status == 0, "\(merged)")
    #expect(merged.output == "Nothing was restored to new-phone; 18 stayed behind.\n")
    try sandbox.succeed("device create empty -q")
    let empty = try sandbox.keyhaul("restore plain.tar --to empty")
    #expect(empty.status == 0 && empty.output == "Restored 0 items to empty in one step; 18 stayed behind.\n")
  }

  @Test("A restore with an empty list of items is rejected, and nothing is removed")
  func emptyList() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array(#"{"indexes": []}"#.utf8), to: "none.json")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --only none.json --password-file .bp --yes")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test("An empty backup empties the target after the user agrees")
  func emptyBackup() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create empty -q")
    try sandbox.backUp("empty", to: "empty.tar")
    let line = "restore empty.tar --to new-phone --password-file .bp"
    #expect(try sandbox.keyhaul(line).status == 64)
    let stopped = try sandbox.keyhaul(line, typed: ["n"])
    #expect(stopped.terminal.hasSuffix("Remove 2 items from new-phone and add none? [y/N] n\n"), "\(stopped)")
    let restored = try sandbox.keyhaul("\(line) --yes")
    #expect(restored.status == 0, "\(restored)")
    #expect(restored.output == "Restored 0 items to new-phone in one step; 2 removed.\n", "\(restored)")
  }

  @Test("A plan warns about a restore that would only remove items, in text and on its page")
  func plan() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let text = try sandbox.succeed("plan plain.tar --to new-phone")
    #expect(text.contains("No item replaces them, so restore refuses to remove them."), "\(text)")
    let page = try sandbox.succeed("plan plain.tar --to new-phone --format html")
    #expect(
      page.contains(
        "iOS removes the items on the device before it restores. Keyhaul refuses to do so if no item would be "
          + "restored."))
  }
}
