import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("What a restore shows before it asks")
struct RestoreQuestionTests {
  private let line = "restore b.tar --to new-phone --password-file .bp"

  private func world() throws -> MoveWorld { try MoveWorld(backedUpTo: "b.tar") }

  /// Runs a line on a terminal; before the question is answered with yes, another process does something.
  private func run(
    _ world: MoveWorld, _ line: String, meanwhile: String
  ) throws -> (outcome: BuiltProgram.Outcome, other: BuiltProgram.Outcome?) {
    var other: BuiltProgram.Outcome?
    let outcome = try world.devices.program.shell("keyhaul \(line)", typed: ["y"]) { _ in
      other = try world.devices.run(meanwhile)
    }
    return (outcome, other)
  }

  @Test("the plan in short stands above the question, also where nothing is taken away")
  func additions() throws {
    let world = try world()
    let merge = "\(line) --existing merge --only only.json"
    // The two logins of the mail server, which new-phone has not.
    try world.write(Array(#"{"indexes": [9, 10]}"#.utf8), to: "only.json")
    let before = try world.contents(of: "new-phone")
    let no = try world.keyhaul(merge, typed: ["n"])
    #expect(no.status == 1, "\(no)")
    #expect(
      SessionScript.matches(
        no.terminal,
        [
          "Plan: b.tar → new-phone (another device)", "  made [..] by old-phone · encrypted · 2 items",
          "  new-phone: unlocked, passcode set, 2 items",
          "  existing items: merge; the newer item is kept (--existing merge)",
          "  this-device-only items: names decrypted with the hardware key of old-phone", "",
          "2 will move (2 new), 0 cannot be read, 0 removed.", "Add 2 items to new-phone? [y/N] n",
        ]), "\(no.terminal)")
    #expect(try world.contents(of: "new-phone") == before)
    let yes = try world.keyhaul(merge, typed: ["y"])
    #expect(yes.status == 0 && yes.output == "Restored 2 items to new-phone in one step.\n", "\(yes)")
    // Where nothing would change, where it was agreed to, and where there is nobody, nothing is asked.
    #expect(try world.keyhaul(merge, typed: []).terminal == "")
    #expect(try world.keyhaul("\(line) --existing merge --yes", typed: []).terminal == "")
  }

  @Test("a saved plan that takes nothing away is carried out without a question")
  func planned() throws {
    let world = try world()
    try world.succeed("device create empty -q")
    try world.succeed("plan b.tar --to empty --password-file .bp -o move.plan -q")
    let outcome = try world.keyhaul("restore b.tar --to empty --password-file .bp --plan move.plan", typed: [])
    #expect(outcome.status == 0 && outcome.terminal == "", "\(outcome)")
    #expect(outcome.output == "Restored 14 items to empty in one step; 4 stayed behind.\n")
  }

  @Test("nobody is kept from the device while the question stands, and a change then is a stale plan")
  func changedMeanwhile() throws {
    let world = try world()
    let before = try world.contents(of: "new-phone")
    let (outcome, other) = try run(
      world, line,
      meanwhile: "printf x | keyhaul item add new-phone --service later --account me --secret-file - -q")
    #expect(other?.status == 0, "\(String(describing: other))")
    #expect(outcome.status == 16 && outcome.output == "", "\(outcome)")
    #expect(
      outcome.errors
        == "error: new-phone has changed since the question was asked\n  why: its identifier or revision is different "
        + "now; nothing was done\n  try: run it again\n")
    // The other one's item is there, and nothing else has happened.
    try world.succeed("item delete new-phone --service later --yes -q")
    let items = try world.succeed("item find new-phone --json --reveal")
    #expect(before.hasPrefix(items))
  }

  @Test("nor while a password is typed, and a change then is a part of what is shown")
  func changedBeforeQuestion() throws {
    let world = try world()
    var prompts: [String] = []
    let outcome = try world.devices.program.shell(
      "keyhaul restore b.tar --to new-phone", typed: [MoveWorld.password, "y"]
    ) { terminal in
      if prompts.isEmpty {
        try world.succeed("item delete new-phone --service AirPort --yes -q")
      }
      prompts.append(terminal)
    }
    #expect(outcome.status == 0 && prompts.count == 2, "\(outcome)")
    #expect(outcome.terminal.hasSuffix("Add 13 items to new-phone? [y/N] y\n"), "\(outcome.terminal)")
    #expect(
      outcome.output
        == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n")
  }

  @Test("another archive in its place is a stale plan too", arguments: ["b.tar", "b"])
  func anotherArchive(name: String) throws {
    let world = try MoveWorld()
    try world.backUp(to: name == "b" ? "b/" : name)
    try world.backUp("new-phone", to: name == "b" ? "other/" : "other")
    let before = try world.contents(of: "new-phone")
    let restore = "restore \(name) --to new-phone --password-file .bp"
    let (replaced, _) = try run(world, restore, meanwhile: "mv \(name) old && mv other \(name)")
    #expect(replaced.status == 16, "\(replaced)")
    #expect(
      replaced.errors
        == "error: \(name) has changed since the question was asked\n  why: its keychain or its manifest has been "
        + "replaced; nothing was done\n  try: run it again\n")
    try world.devices.run("mv \(name) other && mv old \(name)")
    let (gone, _) = try run(world, restore, meanwhile: "mv \(name) old")
    #expect(gone.status == 16 && gone.errors.contains("it can no longer be read:"), "\(gone)")
    #expect(try world.contents(of: "new-phone") == before)
    // A copy of the same bytes is the same archive.
    let (copied, _) = try run(
      world, "restore old --to new-phone --password-file .bp", meanwhile: "cp -r old copy && rm -r old && mv copy old")
    #expect(copied.status == 0, "\(copied)")
  }

  @Test("a device that is locked or erased meanwhile is not restored to")
  func lockedMeanwhile() throws {
    let world = try world()
    let (locked, _) = try run(world, line, meanwhile: "keyhaul device lock new-phone -q")
    #expect(locked.status == 15 && locked.output == "", "\(locked)")
    try world.devices.run("echo 2468 > .pin; chmod 600 .pin")
    try world.succeed("device unlock new-phone --passcode-file .pin -q")
    try world.succeed("device create other -q")
    let (erased, _) = try run(world, line, meanwhile: "keyhaul device erase new-phone --yes -q")
    #expect(erased.status == 16, "\(erased)")
    let (replaced, _) = try run(
      world, "restore b.tar --to other --password-file .bp",
      meanwhile: "keyhaul device delete other --confirm other -q; keyhaul device create other -q")
    #expect(replaced.status == 16, "\(replaced)")
  }

  @Test("what is newer on the device is said where nobody is asked, and in the result")
  func newer() throws {
    let world = try world()
    try world.succeed("item update new-phone --service AirPort --new-label mine --yes -q")
    let copy = try MoveWorld(copyOf: world)
    let outcome = try world.keyhaul("\(line) --yes")
    #expect(outcome.status == 0, "\(outcome)")
    let told = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(
      told.hasPrefix(
        "warning: overwriting 1 item on new-phone, although 1 is newer than the backup's why: generic password "
          + "\"AirPort · Home\": on the target: "), "\(outcome.errors)")
    #expect(told.contains("; in the backup: ") && told.hasSuffix("try: --existing merge to keep the newer ones"))
    let sentence =
      "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind, 1 that was newer on new-phone "
      + "was overwritten.\n"
    #expect(outcome.output == sentence)
    // Quiet is no warning, but the result says it all the same.
    let quiet = try MoveWorld(copyOf: copy).keyhaul("\(line) --yes -q")
    #expect(quiet.errors == "" && quiet.output == sentence, "\(quiet)")
    let document = try copy.object(copy.succeed("\(line) --yes --json"))
    #expect(document["overwritten"] as? Int == 1 && document["overwritten_newer"] as? Int == 1)
    #expect(document["restored"] as? Int == 13)
  }

  @Test("an item that cannot be read is named and counted above the question and in it")
  func damaged() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    try world.succeed("device erase old-phone --yes -q")
    let payload = try #require(try world.files(in: "plain").first { $0.contains("/") })
    var bytes = try world.read("plain/\(payload)")
    // The version of one item's blob, which no system writes so.
    let blob = try #require(bytes.firstRange(of: [3, 0, 0, 0]))
    bytes[blob.lowerBound] = 9
    try world.write(bytes, to: "plain/\(payload)")
    let outcome = try world.keyhaul("restore plain --to old-phone", typed: ["y"])
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.terminal.contains("\nCannot be read (1)  unsupported-version"), "\(outcome.terminal)")
    // Such a backup is known to be damaged, which is the one question then.
    #expect(outcome.terminal.hasSuffix("Restore the rest to old-phone? [y/N] y\n"), "\(outcome.terminal)")
    #expect(outcome.terminal.contains("\n17 will be restored (17 new), 1 cannot be read, 0 removed.\n"))
    try world.succeed("device erase old-phone --yes -q")
    let accepted = try world.keyhaul("restore plain --to old-phone --accept-damage", typed: ["y"])
    #expect(
      accepted.terminal.hasSuffix("Add 17 items to old-phone, skipping 1 that cannot be read? [y/N] y\n"),
      "\(accepted.terminal)")
  }
}

@Suite("A restore that would only take away")
struct PointlessRestoreTests {
  @Test("is refused whoever agrees, and nothing is removed", arguments: ["--yes", "", "-n", "--plan move.plan --yes"])
  func refused(flags: String) throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain.tar --no-password -q")
    try world.succeed("plan plain.tar --to new-phone -o move.plan -q")
    let before = try world.contents(of: "new-phone")
    let outcome = try world.keyhaul("restore plain.tar --to new-phone \(flags)", typed: ["y"])
    #expect(outcome.status == 14 && outcome.terminal == "", "\(outcome)")
    #expect(
      flat(outcome.errors).hasSuffix(
        flat(
          """
          error: no item of plain.tar would be restored to new-phone, so nothing was removed from it
            why: the restore would restore none of 18 items and remove 2 items
            try: make a new backup of old-phone with a password: keyhaul explain backup-password
          """)), "\(outcome.errors)")
    #expect(try world.contents(of: "new-phone") == before)
  }

  @Test("is no error where there is nothing to take away, or where items are kept")
  func harmless() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain.tar --no-password -q")
    let merged = try world.keyhaul("restore plain.tar --to new-phone --existing merge")
    #expect(merged.status == 0, "\(merged)")
    #expect(merged.output == "Nothing was restored to new-phone; 18 stayed behind.\n")
    try world.succeed("device create empty -q")
    let empty = try world.keyhaul("restore plain.tar --to empty")
    #expect(empty.status == 0 && empty.output == "Restored 0 items to empty in one step; 18 stayed behind.\n")
  }

  @Test("is what --only of nothing asks for, and refused as well")
  func nothingChosen() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.write(Array(#"{"indexes": []}"#.utf8), to: "none.json")
    let before = try world.contents(of: "new-phone")
    let outcome = try world.keyhaul("restore b.tar --to new-phone --only none.json --password-file .bp --yes")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(try world.contents(of: "new-phone") == before)
  }

  @Test("a backup of a keychain that holds nothing leaves nothing, once that is agreed to")
  func emptyBackup() throws {
    let world = try MoveWorld()
    try world.succeed("device create empty -q")
    try world.backUp("empty", to: "empty.tar")
    let line = "restore empty.tar --to new-phone --password-file .bp"
    #expect(try world.keyhaul(line).status == 64)
    let asked = try world.keyhaul(line, typed: ["n"])
    #expect(asked.terminal.hasSuffix("Remove 2 items from new-phone and add none? [y/N] n\n"), "\(asked)")
    let done = try world.keyhaul("\(line) --yes")
    #expect(done.status == 0 && done.output == "Restored 0 items to new-phone in one step; 2 removed.\n", "\(done)")
  }

  @Test("is called so by the plan, in text and on its page")
  func plan() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain.tar --no-password -q")
    let text = try world.succeed("plan plain.tar --to new-phone")
    #expect(text.contains("No item replaces them, so restore refuses to remove them."), "\(text)")
    let page = try world.succeed("plan plain.tar --to new-phone --format html")
    #expect(
      page.contains(
        "iOS removes the items on the device before it restores. Keyhaul refuses to do so if no item would be "
          + "restored."))
  }
}
