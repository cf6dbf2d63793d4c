import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Information before a restore question")
struct RestoreQuestionTests {
  private let line = "restore b.tar --to new-phone --password-file .bp"

  private func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "b.tar") }

  /// Runs a command on a terminal. While the command asks its question, runs a shell line, and then answers yes.
  private func run(
    _ line: String, duringQuestion otherLine: String, in sandbox: PhoneSandbox
  ) throws -> BuiltProgram.Outcome {
    try sandbox.devices.program.shell("keyhaul \(line)", typed: ["y"]) { _ in
      let outcome = try sandbox.devices.run(otherLine)
      #expect(outcome.status == 0, "\(otherLine): \(outcome)")
    }
  }

  @Test("A short plan is shown above the question, even if nothing is removed")
  func additions() throws {
    let sandbox = try sandbox()
    let merge = "\(line) --existing merge --only only.json"
    // The two logins of the mail server, which new-phone does not have.
    try sandbox.write(Array(#"{"indexes": [9, 10]}"#.utf8), to: "only.json")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let stopped = try sandbox.keyhaul(merge, typed: ["n"])
    #expect(stopped.status == 1, "\(stopped)")
    #expect(
      SessionScript.matches(
        stopped.terminal,
        [
          "Plan: b.tar → new-phone (another device)", "  made [..] by old-phone · encrypted · 2 items",
          "  new-phone: unlocked, passcode set, 2 items",
          "  existing items: merge; the newer item is kept (--existing merge)",
          "  this-device-only items: names decrypted with the device key of old-phone", "",
          "2 will move (2 new), 0 cannot be read, 0 removed.", "Add 2 items to new-phone? [y/N] n",
        ]), "\(stopped.terminal)")
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    let restored = try sandbox.keyhaul(merge, typed: ["y"])
    #expect(restored.status == 0 && restored.output == "Restored 2 items to new-phone in one step.\n", "\(restored)")
    // Keyhaul does not ask if nothing would change, or with --yes.
    #expect(try sandbox.keyhaul(merge, typed: []).terminal == "")
    #expect(try sandbox.keyhaul("\(line) --existing merge --yes", typed: []).terminal == "")
  }

  @Test("A saved plan that removes nothing is carried out without a question")
  func savedPlan() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("device create empty -q")
    try sandbox.succeed("plan b.tar --to empty --password-file .bp -o move.plan -q")
    let outcome = try sandbox.keyhaul("restore b.tar --to empty --password-file .bp --plan move.plan", typed: [])
    #expect(outcome.status == 0 && outcome.terminal == "", "\(outcome)")
    #expect(outcome.output == "Restored 14 items to empty in one step; 4 stayed behind.\n")
  }

  @Test("Another process can change the device during the question, which makes the plan stale")
  func changedMeanwhile() throws {
    let sandbox = try sandbox()
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let outcome = try run(
      line, duringQuestion: "printf x | keyhaul item add new-phone --service later --account me --secret-file - -q",
      in: sandbox)
    #expect(outcome.status == 16 && outcome.output == "", "\(outcome)")
    #expect(
      outcome.errors
        == "error: new-phone has changed since the question was asked\n  why: its identifier or revision is different "
        + "now; nothing was done\n  try: run it again\n")
    // Only the item of the other process was added.
    try sandbox.succeed("item delete new-phone --service later --yes -q")
    let items = try sandbox.succeed("item find new-phone --json --reveal")
    // `contents(of:)` begins with the output of `item find`.
    #expect(deviceBefore.hasPrefix(items))
  }

  @Test("Another process can change the device while a password is typed, and the plan includes the change")
  func changedBeforeQuestion() throws {
    let sandbox = try sandbox()
    var prompts: [String] = []
    let outcome = try sandbox.devices.program.shell(
      "keyhaul restore b.tar --to new-phone", typed: [PhoneSandbox.password, "y"]
    ) { terminal in
      if prompts.isEmpty {
        try sandbox.succeed("item delete new-phone --service AirPort --yes -q")
      }
      prompts.append(terminal)
    }
    #expect(outcome.status == 0 && prompts.count == 2, "\(outcome)")
    #expect(outcome.terminal.hasSuffix("Add 13 items to new-phone? [y/N] y\n"), "\(outcome.terminal)")
    #expect(
      outcome.output
        == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n")
  }

  @Test(
    "Replacing or moving the backup during the question makes the plan stale, but an equal copy does not",
    arguments: ["b.tar", "b"])
  func anotherBackup(name: String) throws {
    let sandbox = try PhoneSandbox()
    let isFolder = name == "b"
    try sandbox.backUp(to: isFolder ? "b/" : name)
    try sandbox.backUp("new-phone", to: isFolder ? "other/" : "other")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let restore = "restore \(name) --to new-phone --password-file .bp"
    let replaced = try run(restore, duringQuestion: "mv \(name) old && mv other \(name)", in: sandbox)
    #expect(replaced.status == 16, "\(replaced)")
    #expect(
      replaced.errors
        == "error: \(name) has changed since the question was asked\n  why: its keychain or its manifest has been "
        + "replaced; nothing was done\n  try: run it again\n")
    try sandbox.devices.run("mv \(name) other && mv old \(name)")
    let moved = try run(restore, duringQuestion: "mv \(name) old", in: sandbox)
    #expect(moved.status == 16 && moved.errors.contains("it can no longer be read:"), "\(moved)")
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    // A copy with the same bytes is the same backup.
    let copied = try run(
      "restore old --to new-phone --password-file .bp", duringQuestion: "cp -r old copy && rm -r old && mv copy old",
      in: sandbox)
    #expect(copied.status == 0, "\(copied)")
  }

  @Test("Nothing is restored to a device that is locked, erased or replaced during the question")
  func lockedMeanwhile() throws {
    let sandbox = try sandbox()
    let locked = try run(line, duringQuestion: "keyhaul device lock new-phone -q", in: sandbox)
    #expect(locked.status == 15 && locked.output == "", "\(locked)")
    try sandbox.devices.run("echo 2468 > .pin; chmod 600 .pin")
    try sandbox.succeed("device unlock new-phone --passcode-file .pin -q")
    try sandbox.succeed("device create other -q")
    let erased = try run(line, duringQuestion: "keyhaul device erase new-phone --yes -q", in: sandbox)
    #expect(erased.status == 16, "\(erased)")
    let replaced = try run(
      "restore b.tar --to other --password-file .bp",
      duringQuestion: "keyhaul device delete other --confirm other -q; keyhaul device create other -q", in: sandbox)
    #expect(replaced.status == 16, "\(replaced)")
  }

  @Test("With --yes, a warning and the result state that newer items on the device were overwritten")
  func newerOnDevice() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("item update new-phone --service AirPort --new-label mine --yes -q")
    let copy = try PhoneSandbox(copyOf: sandbox)
    let outcome = try sandbox.keyhaul("\(line) --yes")
    #expect(outcome.status == 0, "\(outcome)")
    let warning = unwrapped(outcome.errors)
    #expect(
      warning.hasPrefix(
        "warning: overwriting 1 item on new-phone, although 1 is newer than the backup's why: generic password "
          + "\"AirPort · Home\": on the target: "), "\(outcome.errors)")
    #expect(warning.contains("; in the backup: ") && warning.hasSuffix("try: --existing merge to keep the newer ones"))
    let sentence =
      "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind, 1 that was newer on new-phone "
      + "was overwritten.\n"
    #expect(outcome.output == sentence)
    // With -q there is no warning, but the result states it.
    let quiet = try PhoneSandbox(copyOf: copy).keyhaul("\(line) --yes -q")
    #expect(quiet.errors == "" && quiet.output == sentence, "\(quiet)")
    let document = try copy.object(copy.succeed("\(line) --yes --json"))
    #expect(document["overwritten"] as? Int == 1 && document["overwritten_newer"] as? Int == 1)
    #expect(document["restored"] as? Int == 13)
  }

  @Test("An unreadable item is listed above the question, and counted in the question if the damage was accepted")
  func damaged() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.succeed("device erase old-phone --yes -q")
    try sandbox.damageFirstItem(in: "plain")
    let outcome = try sandbox.keyhaul("restore plain --to old-phone", typed: ["y"])
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.terminal.contains("\nCannot be read (1)  unsupported-version"), "\(outcome.terminal)")
    // The backup is known to be damaged, so Keyhaul asks only about the damage.
    #expect(outcome.terminal.hasSuffix("Restore the rest to old-phone? [y/N] y\n"), "\(outcome.terminal)")
    #expect(outcome.terminal.contains("\n17 will be restored (17 new), 1 cannot be read, 0 removed.\n"))
    try sandbox.succeed("device erase old-phone --yes -q")
    let accepted = try sandbox.keyhaul("restore plain --to old-phone --accept-damage", typed: ["y"])
    #expect(
      accepted.terminal.hasSuffix("Add 17 items to old-phone, skipping 1 that cannot be read? [y/N] y\n"),
      "\(accepted.terminal)")
  }
}
