import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Questions of the move commands")
struct MovePromptTests {
  @Test("Backup asks for a new password twice, and rejects two different passwords")
  func newPassword() throws {
    let sandbox = try PhoneSandbox()
    let differentPasswords = try sandbox.keyhaul("backup old-phone -o b.tar --rounds 1", typed: ["one", "two"])
    #expect(
      differentPasswords.status == 1 && differentPasswords.errors.contains("differ\n  why: both were typed for b.tar\n")
    )
    #expect(try !sandbox.names().contains("b.tar"))
    let samePassword = try sandbox.keyhaul("backup old-phone -o b.tar --rounds 1 -q", typed: ["s3cret", "s3cret"])
    #expect(samePassword.status == 0 && !samePassword.terminal.contains("s3cret"))
    #expect(
      samePassword.terminal.contains("New password for b.tar: ")
        && samePassword.terminal.lowercased().contains("again: "))
    let plan = try sandbox.keyhaul("plan b.tar --to new-phone", typed: ["s3cret"])
    #expect(plan.status == 0 && plan.terminal == "Password of b.tar: \n")
    #expect(try sandbox.keyhaul("plan b.tar --to new-phone --no-input", typed: []).status == 12)
  }

  /// Returns the text on the terminal for one wrong password: the prompt and the message.
  private static func wrongAttempt(for backup: String) -> String {
    "Password of \(backup): \nThat password is wrong; try again.\n"
  }

  @Test("Keyhaul asks for a password up to three times")
  func wrongPassword() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let plan = "plan b.tar --to new-phone --json"
    let threePrompts = Self.wrongAttempt(for: "b.tar") + Self.wrongAttempt(for: "b.tar") + "Password of b.tar: \n"
    let rightAtLast = try sandbox.keyhaul(plan, typed: ["hunter2", "hunter3", PhoneSandbox.password, "never typed"])
    #expect(rightAtLast.status == 0 && rightAtLast.terminal == threePrompts, "\(rightAtLast)")
    #expect(try PlannedItems(sandbox.object(rightAtLast.output)) == PlannedItems(sandbox.plan("b.tar")))
    // Every attempt reports its key derivation, and no wrong password is reported as an error.
    let messages = rightAtLast.errors.split(separator: "\n")
    let derivationCount = messages.count { $0 == #"{"message_type":"status","phase":"derive-key"}"# }
    #expect(derivationCount == 3, "\(rightAtLast.errors)")
    #expect(messages.allSatisfy { $0.contains(#""message_type":"status""#) })
    let alwaysWrong = try sandbox.keyhaul(
      "plan b.tar --to new-phone", typed: ["hunter2", "hunter3", "hunter4", PhoneSandbox.password])
    #expect(alwaysWrong.status == 12 && alwaysWrong.output == "")
    #expect(alwaysWrong.terminal == threePrompts)
    #expect(alwaysWrong.errors.hasPrefix("error: cannot open b.tar: the password is wrong\n  why: "))
    #expect(alwaysWrong.errors.ranges(of: "error: ").count == 1 && !alwaysWrong.errors.contains("hunter"))
    let empty = try sandbox.keyhaul("plan b.tar --to new-phone", typed: ["hunter2", "", PhoneSandbox.password])
    #expect(empty.status == 12 && empty.errors.hasPrefix("error: the password of b.tar is empty\n"))
  }

  @Test(
    "Every command that decrypts a backup asks again after a wrong password; inspect without options does not ask",
    arguments: DecryptingCommands.all)
  func wrongPasswordOfCommands(line: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b/")
    let outcome = try sandbox.keyhaul(line, typed: ["hunter2", PhoneSandbox.password])
    let needsPassword = line != "inspect b"
    let expectedTerminal = needsPassword ? Self.wrongAttempt(for: "b") + "Password of b: \n" : ""
    #expect(outcome.status == 0 && outcome.terminal == expectedTerminal, "\(outcome)")
    if line.hasPrefix("diff") { #expect(outcome.terminal.ranges(of: "Password of b: ").count == 2) }
  }

  @Test("For each of two backups, the user has three attempts to type the password")
  func wrongPasswordOfTwo() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b.tar")
    try sandbox.succeed("backup old-phone -o c.tar --password-file .np --rounds 1 -q")
    let outcome = try sandbox.keyhaul(
      "diff b.tar c.tar", typed: ["hunter2", "hunter3", PhoneSandbox.password, "hunter4", "hunter5", "battery staple"])
    #expect(outcome.status == 0, "\(outcome)")
    let expectedPrompts = ["b.tar", "c.tar"].map { backup in
      Self.wrongAttempt(for: backup) + Self.wrongAttempt(for: backup) + "Password of \(backup): \n"
    }
    #expect(outcome.terminal == expectedPrompts.joined())
  }

  @Test("After a wrong password from a file, a descriptor or a command, Keyhaul does not ask for the password")
  func wrongPasswordElsewhere() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(Array("hunter2\n".utf8), to: ".wrong")
    for source in [
      "--password-file .wrong", "--password-fd 5 5< .wrong", "--password-command 'cat .wrong'",
      "--password-file .wrong --no-input",
    ] {
      let outcome = try sandbox.keyhaul("plan b.tar --to new-phone \(source)", typed: [PhoneSandbox.password])
      #expect(outcome.status == 12 && outcome.terminal == "", "\(source): \(outcome)")
    }
  }

  @Test("A restore that removes items states how many in its question, and continues only after yes")
  func removal() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.backUp(to: "b.tar")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let question = """
      Plan: b.tar → new-phone (another device)
        made [..] by old-phone · encrypted · 18 items
        new-phone: unlocked, passcode set, 3 items
        existing items: replace, as iOS does (--existing replace)
        this-device-only items: names decrypted with the device key of old-phone

      Removed from new-phone (1)
        - generic      mine · me

      Overwritten on new-phone (1)
        ~ generic      AirPort · Home  after first unlock
            on the target: 2025-03-02; in the backup: [..]

      14 will move (12 new, 1 replaced, 1 already there), 4 stay behind, 0 cannot be
      read, 1 removed from new-phone.
      Remove 1 item from new-phone, overwrite 1 there and add 12? [y/N]\u{20}
      """
    func showsQuestion(_ terminal: String, answeredWith answer: String) -> Bool {
      let lines = (question + answer).split(separator: "\n", omittingEmptySubsequences: false)
      return SessionScript.matches(terminal, lines.map(String.init))
    }
    let restore = "restore b.tar --to new-phone --password-file .bp"
    for answer in ["", "n", "no", "yess", "Y e s"] {
      let outcome = try sandbox.keyhaul(restore, typed: [answer])
      #expect(outcome.status == 1 && showsQuestion(outcome.terminal, answeredWith: answer), "\(outcome.terminal)")
      #expect(outcome.errors == "error: stopped: the answer was not yes\n  why: nothing was changed\n")
    }
    let withoutInput = try sandbox.keyhaul("\(restore) --no-input", typed: [])
    #expect(withoutInput.status == 64 && withoutInput.errors.contains("--no-input prevents Keyhaul from asking"))
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    // A dry run asks nothing.
    let dryMerge = try sandbox.keyhaul("\(restore) --existing merge -n", typed: [])
    #expect(dryMerge.status == 0 && dryMerge.terminal == "")
    let restored = try sandbox.keyhaul(restore, typed: ["y"])
    #expect(restored.status == 0 && showsQuestion(restored.terminal, answeredWith: "y"), "\(restored.terminal)")
    #expect(
      restored.output
        == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind, 1 removed.\n")
  }

  @Test("Keyhaul asks whether to replace a backup before it asks for the password", arguments: ["b.tar", "b/", "all/"])
  func replacement(name: String) throws {
    let sandbox = try PhoneSandbox()
    // In a folder with unrelated files, the backup is written into a subfolder.
    try sandbox.devices.run("mkdir all && echo mine > all/note")
    try sandbox.backUp(to: name)
    let path = name == "all/" ? "all/" + (try sandbox.names(in: "all").first { $0 != "note" } ?? "") : name
    let sourceBefore = try sandbox.plan(path)["source"] as? NSDictionary
    let stopped = try sandbox.keyhaul("backup new-phone -o \(path) --rounds 1", typed: ["n"])
    #expect(stopped.status == 1 && stopped.terminal == "Replace \(path) (a backup of old-phone)? [y/N] n\n")
    #expect(try sandbox.plan(path)["source"] as? NSDictionary == sourceBefore)
    let replaced = try sandbox.keyhaul("backup new-phone -o \(path) --rounds 1 --password-file .bp -q", typed: ["yes"])
    #expect(replaced.status == 0 && replaced.terminal == "Replace \(path) (a backup of old-phone)? [y/N] yes\n")
    #expect((try sandbox.plan(path)["source"] as? [String: Any])?["device_name"] as? String == "new-phone")
    #expect(try sandbox.names().filter { $0.hasSuffix(".tmp") || $0.hasSuffix(".old") } == [])
  }

  @Test("A backup is not written to a terminal as a tar")
  func tarOnTerminal() throws {
    let sandbox = try PhoneSandbox()
    let outcome = try sandbox.devices.runOnTerminal(["backup", "old-phone", "-o", "-", "--no-password"])
    #expect(outcome.status == 64 && outcome.terminal.contains("a tar is not shown on a terminal"))
  }
}
