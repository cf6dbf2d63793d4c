import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Questions of the move commands")
struct MovePromptTests {
  @Test("Backup asks for a new password twice, and rejects two different ones")
  func newPassword() throws {
    let sandbox = try PhoneSandbox()
    let different = try sandbox.keyhaul("backup old-phone -o b.tar --rounds 1", typed: ["one", "two"])
    #expect(different.status == 1 && different.errors.contains("differ\n  why: both were typed for b.tar\n"))
    #expect(try !sandbox.names().contains("b.tar"))
    let same = try sandbox.keyhaul("backup old-phone -o b.tar --rounds 1 -q", typed: ["s3cret", "s3cret"])
    #expect(same.status == 0 && !same.terminal.contains("s3cret"))
    #expect(same.terminal.contains("New password for b.tar: ") && same.terminal.lowercased().contains("again: "))
    let plan = try sandbox.keyhaul("plan b.tar --to new-phone", typed: ["s3cret"])
    #expect(plan.status == 0 && plan.terminal == "Password of b.tar: \n")
    #expect(try sandbox.keyhaul("plan b.tar --to new-phone --no-input", typed: []).status == 12)
  }

  /// The text on the terminal after a wrong password of `b.tar`.
  private static let wrong = "Password of b.tar: \nThat password is wrong; try again.\n"

  @Test("After a wrong password, Keyhaul asks again, three times in total")
  func wrongPassword() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let plan = "plan b.tar --to new-phone --json"
    let right = try sandbox.keyhaul(plan, typed: ["hunter2", "hunter3", PhoneSandbox.password, "never typed"])
    #expect(right.status == 0 && right.terminal == Self.wrong + Self.wrong + "Password of b.tar: \n", "\(right)")
    #expect(try PlannedItems(sandbox.object(right.output)) == PlannedItems(sandbox.plan("b.tar")))
    // Each derivation is shown as the first one is, and no wrong password is an error of the run.
    let lines = right.errors.split(separator: "\n")
    #expect(lines.count { $0 == #"{"message_type":"status","phase":"derive-key"}"# } == 3, "\(right.errors)")
    #expect(lines.allSatisfy { $0.contains(#""message_type":"status""#) })
    let never = try sandbox.keyhaul(
      "plan b.tar --to new-phone", typed: ["hunter2", "hunter3", "hunter4", PhoneSandbox.password])
    #expect(never.status == 12 && never.output == "")
    #expect(never.terminal == Self.wrong + Self.wrong + "Password of b.tar: \n")
    #expect(never.errors.hasPrefix("error: cannot open b.tar: the password is wrong\n  why: "))
    #expect(never.errors.ranges(of: "error: ").count == 1 && !never.errors.contains("hunter"))
    let ended = try sandbox.keyhaul("plan b.tar --to new-phone", typed: ["hunter2", "", PhoneSandbox.password])
    #expect(ended.status == 12 && ended.errors.hasPrefix("error: the password of b.tar is empty\n"))
  }

  @Test("Every command that decrypts a backup asks again after a wrong password", arguments: DecryptingCommands.all)
  func wrongPasswordOfVerbs(line: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b/")
    let outcome = try sandbox.keyhaul(line, typed: ["hunter2", PhoneSandbox.password])
    let expected = line == "inspect b" ? "" : Self.wrong.replacing("b.tar", with: "b") + "Password of b: \n"
    #expect(outcome.status == 0 && outcome.terminal == expected, "\(outcome)")
    if line.hasPrefix("diff") { #expect(outcome.terminal.ranges(of: "Password of b: ").count == 2) }
  }

  @Test("Each of two backups has its own three attempts")
  func wrongPasswordOfTwo() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b.tar")
    try sandbox.succeed("backup old-phone -o c.tar --password-file .np --rounds 1 -q")
    let outcome = try sandbox.keyhaul(
      "diff b.tar c.tar", typed: ["hunter2", "hunter3", PhoneSandbox.password, "hunter4", "hunter5", "battery staple"])
    #expect(outcome.status == 0, "\(outcome)")
    let second = Self.wrong.replacing("b.tar", with: "c.tar")
    #expect(
      outcome.terminal
        == "\(Self.wrong)\(Self.wrong)Password of b.tar: \n\(second)\(second)Password of c.tar: \n")
  }

  @Test("A wrong password that was not typed is not asked for again")
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

  @Test("A restore that removes items asks with the counts, and only a yes continues")
  func removal() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.backUp(to: "b.tar")
    let before = try sandbox.contents(of: "new-phone")
    let question = """
      Plan: b.tar → new-phone (another device)
        made [..] by old-phone · encrypted · 18 items
        new-phone: unlocked, passcode set, 3 items
        existing items: replace, as iOS does (--existing replace)
        this-device-only items: names decrypted with the hardware key of old-phone

      Removed from new-phone (1)
        - generic      mine · me

      Overwritten on new-phone (1)
        ~ generic      AirPort · Home  after first unlock
            on the target: 2025-03-02; in the backup: [..]

      14 will move (12 new, 1 replaced, 1 already there), 4 stay behind, 0 cannot be
      read, 1 removed from new-phone.
      Remove 1 item from new-phone, overwrite 1 there and add 12? [y/N]\u{20}
      """
    func matches(_ terminal: String, _ answer: String) -> Bool {
      let lines = (question + answer).split(separator: "\n", omittingEmptySubsequences: false)
      return SessionScript.matches(terminal, lines.map(String.init))
    }
    for answer in ["", "n", "no", "yess", "Y e s"] {
      let outcome = try sandbox.keyhaul("restore b.tar --to new-phone --password-file .bp", typed: [answer])
      #expect(outcome.status == 1 && matches(outcome.terminal, answer), "\(outcome.terminal)")
      #expect(outcome.errors == "error: stopped: the answer was not yes\n  why: nothing was changed\n")
    }
    let unasked = try sandbox.keyhaul("restore b.tar --to new-phone --password-file .bp --no-input", typed: [])
    #expect(unasked.status == 64 && unasked.errors.contains("--no-input prevents Keyhaul from asking"))
    #expect(try sandbox.contents(of: "new-phone") == before)
    let merged = try sandbox.keyhaul("restore b.tar --to new-phone --existing merge -n --password-file .bp", typed: [])
    #expect(merged.status == 0 && merged.terminal == "")
    let done = try sandbox.keyhaul("restore b.tar --to new-phone --password-file .bp", typed: ["y"])
    #expect(done.status == 0 && matches(done.terminal, "y"), "\(done.terminal)")
    #expect(
      done.output
        == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind, 1 removed.\n")
  }

  @Test("Keyhaul asks before replacing a backup, before it asks for the password", arguments: ["b.tar", "b/", "all/"])
  func replacement(name: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("mkdir all && echo mine > all/note")
    try sandbox.backUp(to: name)
    let path = name == "all/" ? "all/" + (try sandbox.names(in: "all").first { $0 != "note" } ?? "") : name
    let before = try sandbox.plan(path)["source"] as? NSDictionary
    let no = try sandbox.keyhaul("backup new-phone -o \(path) --rounds 1", typed: ["n"])
    #expect(no.status == 1 && no.terminal == "Replace \(path) (a backup of old-phone)? [y/N] n\n")
    #expect(try sandbox.plan(path)["source"] as? NSDictionary == before)
    let yes = try sandbox.keyhaul("backup new-phone -o \(path) --rounds 1 --password-file .bp -q", typed: ["yes"])
    #expect(yes.status == 0 && yes.terminal == "Replace \(path) (a backup of old-phone)? [y/N] yes\n")
    #expect((try sandbox.plan(path)["source"] as? [String: Any])?["device_name"] as? String == "new-phone")
    #expect(try sandbox.names().filter { $0.hasSuffix(".tmp") || $0.hasSuffix(".old") } == [])
  }

  @Test("A tar is not shown on a terminal, but can be piped")
  func tarOnTerminal() throws {
    let sandbox = try PhoneSandbox()
    let outcome = try sandbox.devices.runOnTerminal(["backup", "old-phone", "-o", "-", "--no-password"])
    #expect(outcome.status == 64 && outcome.terminal.contains("a tar is not shown on a terminal"))
  }
}

@Suite("Sources of a backup's password")
struct MovePasswordTests {
  @Test("A file, descriptor, standard input, command and environment provide the same password")
  func sources() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let plan = "keyhaul plan b.tar --to new-phone --json"
    let expected = PlannedItems(try sandbox.plan("b.tar"))
    for line in [
      "\(plan) --password-file .bp", "\(plan) --password-fd 7 7< .bp", "\(plan) --password-file - < .bp",
      "\(plan) --password-fd 0 < .bp", "\(plan) --password-command 'cat .bp'",
      "KEYHAUL_PASSWORD_FILE=.bp \(plan)", "KEYHAUL_PASSWORD_COMMAND='cat .bp' \(plan)",
      "KEYHAUL_PASSWORD_FILE=wrong KEYHAUL_PASSWORD_COMMAND=false \(plan) --password-fd 3 3< .bp",
      "printf 'correct horse\\r\\n' | \(plan) --password-file -", "printf 'correct horse' | \(plan) --password-file -",
    ] {
      let outcome = try sandbox.devices.run(line)
      #expect(outcome.status == 0, "\(line): \(outcome.errors)")
      #expect(try PlannedItems(sandbox.object(outcome.output)) == expected)
    }
  }

  @Test("Only one source is allowed, and the password must be right")
  func refusals() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let plan = "keyhaul plan b.tar --to new-phone"
    for (line, status) in [
      ("\(plan) --password-file .bp --password-fd 3 3< .bp", Int32(64)),
      ("\(plan) --password-command 'cat .bp' --password-fd 3 3< .bp", 64),
      ("printf 'correct horse \\n' | \(plan) --password-file -", 12),
      ("printf 'Correct horse' | \(plan) --password-file -", 12),
      ("printf 'correct horse\\n\\n' | \(plan) --password-file -", 12), (plan, 12),
      ("KEYHAUL_PASSWORD='correct horse' \(plan)", 12), ("printf '' | \(plan) --password-file -", 12),
      ("\(plan) --password-command false", 1), ("\(plan) --password-file nothing", 10),
      ("\(plan) --password-fd 987", 1),
      ("\(plan) --password 'correct horse'", 64), ("\(plan) --password='correct horse'", 64),
    ] {
      let outcome = try sandbox.devices.run(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(outcome.output == "" && outcome.errors.hasPrefix("error: "))
      #expect(!outcome.errors.contains("correct horse"), "\(outcome.errors)")
    }
  }

  @Test("The password is never in the arguments or environment of any process")
  func nowhereElse() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.write(
      Array(
        "env > seen; ps -o args= -p $PPID $$ >> seen; cat /proc/$PPID/environ /proc/$PPID/cmdline >> seen; cat .bp".utf8
      ),
      to: "ask")
    let outcome = try sandbox.devices.run(
      "keyhaul restore b.tar --to new-phone --yes --password-command '. ./ask 2> /dev/null' 3< .bp")
    #expect(outcome.status == 0, "\(outcome)")
    let seen = String(decoding: try sandbox.read("seen"), as: UTF8.self)
    #expect(seen.contains("KEYHAUL_HOME") && !seen.contains("correct horse"))
  }

  @Test("A password file that others can read causes a warning")
  func warning() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("chmod 640 .bp")
    let outcome = try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp")
    #expect(outcome.status == 0)
    #expect(
      outcome.errors
        == "warning: other users can read .bp\n  why: they can see the password of b.tar in it\n  try: chmod 600 .bp\n")
    // What is to be typed is one word for a shell.
    try sandbox.devices.run("cp -p .bp 'my password'")
    let spaced = try sandbox.keyhaul("plan b.tar --to new-phone --password-file 'my password'")
    #expect(spaced.errors.hasSuffix("  try: chmod 600 'my password'\n"))
  }
}

@Suite("Busy devices and full disks")
struct BusyOrFullTests {
  @Test("A device in use by another command is busy, and --wait waits for it")
  func busy() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let device = try DeviceSet(path: sandbox.devices.devices.path).device(DeviceName("new-phone"))
    let holder = try device.openSession(.reading, verb: "keyhaul plan")
    let restore = "restore b.tar --to new-phone --password-file .bp --yes"
    // It may be looked at and not be changed; who took it last, to look at it, was the restore itself.
    let refused = try sandbox.keyhaul(restore)
    #expect(refused.status == 11 && refused.output == "", "\(refused)")
    #expect(
      SessionScript.matches(
        refused.errors,
        ["error: new-phone is in use", "  why: another process is using it", "  try: wait, or add --wait 30s"]),
      "\(refused.errors)")
    #expect(try sandbox.keyhaul("item delete new-phone --service AirPort --yes").status == 11)
    #expect(try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp").status == 0)

    nonisolated(unsafe) let releasing = holder
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 0.3)
      releasing.invalidate()
    }
    let waited = try sandbox.keyhaul("\(restore) --wait 60s")
    #expect(
      waited.status == 0
        && waited.output == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n",
      "\(waited)")
  }

  @Test("A full disk leaves no part of a backup, and keeps an old one")
  func full() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "old.tar")
    try sandbox.backUp(to: "old/")
    let before = (
      try sandbox.plan("old.tar")["source"] as? NSDictionary, try sandbox.plan("old/")["source"] as? NSDictionary
    )
    for name in ["new.tar", "new.tar.gz", "new.zip", "new/", "old.tar", "old/"] {
      let outcome = try sandbox.devices.run(
        "ulimit -f 64; keyhaul backup old-phone -o \(name) --password-file .bp --rounds 1 --yes")
      #expect(outcome.status == 1 && outcome.output == "", "\(name): \(outcome)")
      #expect(
        outcome.errors.hasPrefix("error: could not write \(name)\n  why: \(name): file too large\n"),
        "\(outcome.errors)")
    }
    #expect(try sandbox.names() == [".bp", "devices", "old", "old.tar"])
    #expect(try sandbox.plan("old.tar")["source"] as? NSDictionary == before.0)
    #expect(try sandbox.plan("old/")["source"] as? NSDictionary == before.1)
  }

  @Test("A full disk during a restore leaves the keychain unchanged")
  func fullRestore() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let before = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.devices.run(
      "ulimit -f 32; keyhaul restore b.tar --to new-phone --password-file .bp --yes")
    #expect(outcome.status == 1 && outcome.output == "" && outcome.errors.hasPrefix("error: "), "\(outcome)")
    #expect(try sandbox.contents(of: "new-phone") == before)
    try sandbox.succeed("restore b.tar --to new-phone --password-file .bp --yes")
  }

  @Test("A plan cannot be saved without an existing folder, and the error says so")
  func plan() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("mkfifo pipe; mkdir folder")
    for name in ["nowhere/p", "b.tar/p", "folder", "pipe", "/proc/p"] {
      let outcome = try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp -o \(name)")
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("error: could not write \(name)\n"), "\(outcome)")
    }
    #expect(try sandbox.names() == [".bp", "b.tar", "devices", "folder", "pipe"])
    #expect(try sandbox.devices.run("keyhaul --version > /dev/full").status == 1)
    let pipe = try sandbox.devices.run("keyhaul plan b.tar --to new-phone --password-file .bp > /dev/full")
    #expect(pipe.status == 1 && pipe.errors.contains("error: could not write the result"), "\(pipe)")
  }
}
