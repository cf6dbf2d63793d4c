import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Asked on a terminal")
struct MovePromptTests {
  @Test("a backup asks for its new password twice, and takes no two different ones")
  func newPassword() throws {
    let world = try MoveWorld()
    let different = try world.keyhaul("backup old-phone -o b.tar --rounds 1", typed: ["one", "two"])
    #expect(different.status == 1 && different.errors.contains("differ\n  why: both were typed for b.tar\n"))
    #expect(try !world.names().contains("b.tar"))
    let same = try world.keyhaul("backup old-phone -o b.tar --rounds 1 -q", typed: ["s3cret", "s3cret"])
    #expect(same.status == 0 && !same.terminal.contains("s3cret"))
    #expect(same.terminal.contains("New password for b.tar: ") && same.terminal.lowercased().contains("again: "))
    let plan = try world.keyhaul("plan b.tar --to new-phone", typed: ["s3cret"])
    #expect(plan.status == 0 && plan.terminal == "Password of b.tar: \n")
    #expect(try world.keyhaul("plan b.tar --to new-phone --no-input", typed: []).status == 12)
  }

  /// What a terminal shows where the password of `b.tar` is wrong.
  private static let wrong = "Password of b.tar: \nThat password is wrong; try again.\n"

  @Test("a wrong password is said, and asked for again, three times in all")
  func wrongPassword() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let plan = "plan b.tar --to new-phone --json"
    let right = try world.keyhaul(plan, typed: ["hunter2", "hunter3", MoveWorld.password, "never typed"])
    #expect(right.status == 0 && right.terminal == Self.wrong + Self.wrong + "Password of b.tar: \n", "\(right)")
    #expect(try PlannedItems(world.object(right.output)) == PlannedItems(world.plan("b.tar")))
    // Each derivation is shown as the first one is, and no wrong password is an error of the run.
    let lines = right.errors.split(separator: "\n")
    #expect(lines.count { $0 == #"{"message_type":"status","phase":"derive-key"}"# } == 3, "\(right.errors)")
    #expect(lines.allSatisfy { $0.contains(#""message_type":"status""#) })
    let never = try world.keyhaul(
      "plan b.tar --to new-phone", typed: ["hunter2", "hunter3", "hunter4", MoveWorld.password])
    #expect(never.status == 12 && never.output == "")
    #expect(never.terminal == Self.wrong + Self.wrong + "Password of b.tar: \n")
    #expect(never.errors.hasPrefix("error: cannot open b.tar: the password is wrong\n  why: "))
    #expect(never.errors.ranges(of: "error: ").count == 1 && !never.errors.contains("hunter"))
    let ended = try world.keyhaul("plan b.tar --to new-phone", typed: ["hunter2", "", MoveWorld.password])
    #expect(ended.status == 12 && ended.errors.hasPrefix("error: the password of b.tar is empty\n"))
  }

  @Test("a wrong password is asked for again by every verb that opens a backup", arguments: OpeningLines.all)
  func wrongPasswordOfVerbs(line: String) throws {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "b/")
    let outcome = try world.keyhaul(line, typed: ["hunter2", MoveWorld.password])
    let expected = line == "inspect b" ? "" : Self.wrong.replacing("b.tar", with: "b") + "Password of b: \n"
    #expect(outcome.status == 0 && outcome.terminal == expected, "\(outcome)")
    if line.hasPrefix("diff") { #expect(outcome.terminal.ranges(of: "Password of b: ").count == 2) }
  }

  @Test("of two backups each has its own three tries")
  func wrongPasswordOfTwo() throws {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "b.tar")
    try world.succeed("backup old-phone -o c.tar --password-file .np --rounds 1 -q")
    let outcome = try world.keyhaul(
      "diff b.tar c.tar", typed: ["hunter2", "hunter3", MoveWorld.password, "hunter4", "hunter5", "battery staple"])
    #expect(outcome.status == 0, "\(outcome)")
    let second = Self.wrong.replacing("b.tar", with: "c.tar")
    #expect(
      outcome.terminal
        == "\(Self.wrong)\(Self.wrong)Password of b.tar: \n\(second)\(second)Password of c.tar: \n")
  }

  @Test("a wrong password that nobody types is not asked for again, though there is a terminal")
  func wrongPasswordElsewhere() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.write(Array("hunter2\n".utf8), to: ".wrong")
    for source in [
      "--password-file .wrong", "--password-fd 5 5< .wrong", "--password-command 'cat .wrong'",
      "--password-file .wrong --no-input",
    ] {
      let outcome = try world.keyhaul("plan b.tar --to new-phone \(source)", typed: [MoveWorld.password])
      #expect(outcome.status == 12 && outcome.terminal == "", "\(source): \(outcome)")
    }
  }

  @Test("a restore that removes something asks with the counts, and only a yes is a yes")
  func removal() throws {
    let world = try MoveWorld()
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try world.backUp(to: "b.tar")
    let before = try world.contents(of: "new-phone")
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
      let outcome = try world.keyhaul("restore b.tar --to new-phone --password-file .bp", typed: [answer])
      #expect(outcome.status == 1 && matches(outcome.terminal, answer), "\(outcome.terminal)")
      #expect(outcome.errors == "error: stopped: the answer was not yes\n  why: nothing was changed\n")
    }
    let unasked = try world.keyhaul("restore b.tar --to new-phone --password-file .bp --no-input", typed: [])
    #expect(unasked.status == 64 && unasked.errors.contains("--no-input prevents Keyhaul from asking"))
    #expect(try world.contents(of: "new-phone") == before)
    let merged = try world.keyhaul("restore b.tar --to new-phone --existing merge -n --password-file .bp", typed: [])
    #expect(merged.status == 0 && merged.terminal == "")
    let done = try world.keyhaul("restore b.tar --to new-phone --password-file .bp", typed: ["y"])
    #expect(done.status == 0 && matches(done.terminal, "y"), "\(done.terminal)")
    #expect(
      done.output
        == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind, 1 removed.\n")
  }

  @Test("a backup in the place of another asks first, before its password", arguments: ["b.tar", "b/", "all/"])
  func replacement(name: String) throws {
    let world = try MoveWorld()
    try world.devices.run("mkdir all && echo mine > all/note")
    try world.backUp(to: name)
    let path = name == "all/" ? "all/" + (try world.names(in: "all").first { $0 != "note" } ?? "") : name
    let before = try world.plan(path)["source"] as? NSDictionary
    let no = try world.keyhaul("backup new-phone -o \(path) --rounds 1", typed: ["n"])
    #expect(no.status == 1 && no.terminal == "Replace \(path) (a backup of old-phone)? [y/N] n\n")
    #expect(try world.plan(path)["source"] as? NSDictionary == before)
    let yes = try world.keyhaul("backup new-phone -o \(path) --rounds 1 --password-file .bp -q", typed: ["yes"])
    #expect(yes.status == 0 && yes.terminal == "Replace \(path) (a backup of old-phone)? [y/N] yes\n")
    #expect((try world.plan(path)["source"] as? [String: Any])?["device_name"] as? String == "new-phone")
    #expect(try world.names().filter { $0.hasSuffix(".tmp") || $0.hasSuffix(".old") } == [])
  }

  @Test("a tar is not shown on a terminal, unless it goes through a pipe")
  func tarOnTerminal() throws {
    let world = try MoveWorld()
    let outcome = try world.devices.runOnTerminal(["backup", "old-phone", "-o", "-", "--no-password"])
    #expect(outcome.status == 64 && outcome.terminal.contains("a tar is not shown on a terminal"))
  }
}

@Suite("The password of a backup")
struct MovePasswordTests {
  @Test("comes from a file, a descriptor, standard input, a command or the environment, always the same")
  func sources() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let plan = "keyhaul plan b.tar --to new-phone --json"
    let expected = PlannedItems(try world.plan("b.tar"))
    for line in [
      "\(plan) --password-file .bp", "\(plan) --password-fd 7 7< .bp", "\(plan) --password-file - < .bp",
      "\(plan) --password-fd 0 < .bp", "\(plan) --password-command 'cat .bp'",
      "KEYHAUL_PASSWORD_FILE=.bp \(plan)", "KEYHAUL_PASSWORD_COMMAND='cat .bp' \(plan)",
      "KEYHAUL_PASSWORD_FILE=wrong KEYHAUL_PASSWORD_COMMAND=false \(plan) --password-fd 3 3< .bp",
      "printf 'correct horse\\r\\n' | \(plan) --password-file -", "printf 'correct horse' | \(plan) --password-file -",
    ] {
      let outcome = try world.devices.run(line)
      #expect(outcome.status == 0, "\(line): \(outcome.errors)")
      #expect(try PlannedItems(world.object(outcome.output)) == expected)
    }
  }

  @Test("has one source, and must be the right one")
  func refusals() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
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
      let outcome = try world.devices.run(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(outcome.output == "" && outcome.errors.hasPrefix("error: "))
      #expect(!outcome.errors.contains("correct horse"), "\(outcome.errors)")
    }
  }

  @Test("is never in the arguments or the environment of the program or of a program it starts")
  func nowhereElse() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.write(
      Array(
        "env > seen; ps -o args= -p $PPID $$ >> seen; cat /proc/$PPID/environ /proc/$PPID/cmdline >> seen; cat .bp".utf8
      ),
      to: "ask")
    let outcome = try world.devices.run(
      "keyhaul restore b.tar --to new-phone --yes --password-command '. ./ask 2> /dev/null' 3< .bp")
    #expect(outcome.status == 0, "\(outcome)")
    let seen = String(decoding: try world.read("seen"), as: UTF8.self)
    #expect(seen.contains("KEYHAUL_HOME") && !seen.contains("correct horse"))
  }

  @Test("in a file that others can read earns a warning")
  func warning() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.devices.run("chmod 640 .bp")
    let outcome = try world.keyhaul("plan b.tar --to new-phone --password-file .bp")
    #expect(outcome.status == 0)
    #expect(
      outcome.errors
        == "warning: other users can read .bp\n  why: they can see the password of b.tar in it\n  try: chmod 600 .bp\n")
    // What is to be typed is one word for a shell.
    try world.devices.run("cp -p .bp 'my password'")
    let spaced = try world.keyhaul("plan b.tar --to new-phone --password-file 'my password'")
    #expect(spaced.errors.hasSuffix("  try: chmod 600 'my password'\n"))
  }
}

@Suite("A device or a disk that is not ready")
struct MoveWorldTests {
  @Test("is busy while another command holds it, and is waited for if that is wanted")
  func busy() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let device = try DeviceSet(path: world.devices.devices.path).device(DeviceName("new-phone"))
    let holder = try device.openSession(.reading, verb: "keyhaul plan")
    let restore = "restore b.tar --to new-phone --password-file .bp --yes"
    // It may be looked at and not be changed; who took it last, to look at it, was the restore itself.
    let refused = try world.keyhaul(restore)
    #expect(refused.status == 11 && refused.output == "", "\(refused)")
    #expect(
      SessionScript.matches(
        refused.errors,
        ["error: new-phone is in use", "  why: another process is using it", "  try: wait, or add --wait 30s"]),
      "\(refused.errors)")
    #expect(try world.keyhaul("item delete new-phone --service AirPort --yes").status == 11)
    #expect(try world.keyhaul("plan b.tar --to new-phone --password-file .bp").status == 0)

    nonisolated(unsafe) let releasing = holder
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 0.3)
      releasing.invalidate()
    }
    let waited = try world.keyhaul("\(restore) --wait 60s")
    #expect(
      waited.status == 0
        && waited.output == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n",
      "\(waited)")
  }

  @Test("that is full leaves no part of a backup, and the old one where there was one")
  func full() throws {
    let world = try MoveWorld(backedUpTo: "old.tar")
    try world.backUp(to: "old/")
    let before = (
      try world.plan("old.tar")["source"] as? NSDictionary, try world.plan("old/")["source"] as? NSDictionary
    )
    for name in ["new.tar", "new.tar.gz", "new.zip", "new/", "old.tar", "old/"] {
      let outcome = try world.devices.run(
        "ulimit -f 64; keyhaul backup old-phone -o \(name) --password-file .bp --rounds 1 --yes")
      #expect(outcome.status == 1 && outcome.output == "", "\(name): \(outcome)")
      #expect(
        outcome.errors.hasPrefix("error: could not write \(name)\n  why: \(name): file too large\n"),
        "\(outcome.errors)")
    }
    #expect(try world.names() == [".bp", "devices", "old", "old.tar"])
    #expect(try world.plan("old.tar")["source"] as? NSDictionary == before.0)
    #expect(try world.plan("old/")["source"] as? NSDictionary == before.1)
  }

  @Test("that is full during a restore leaves the keychain as it was")
  func fullRestore() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let before = try world.contents(of: "new-phone")
    let outcome = try world.devices.run(
      "ulimit -f 32; keyhaul restore b.tar --to new-phone --password-file .bp --yes")
    #expect(outcome.status == 1 && outcome.output == "" && outcome.errors.hasPrefix("error: "), "\(outcome)")
    #expect(try world.contents(of: "new-phone") == before)
    try world.succeed("restore b.tar --to new-phone --password-file .bp --yes")
  }

  @Test("takes no plan where there is no folder or no file, and says so")
  func plan() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.devices.run("mkfifo pipe; mkdir folder")
    for name in ["nowhere/p", "b.tar/p", "folder", "pipe", "/proc/p"] {
      let outcome = try world.keyhaul("plan b.tar --to new-phone --password-file .bp -o \(name)")
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("error: could not write \(name)\n"), "\(outcome)")
    }
    #expect(try world.names() == [".bp", "b.tar", "devices", "folder", "pipe"])
    #expect(try world.devices.run("keyhaul --version > /dev/full").status == 1)
    let pipe = try world.devices.run("keyhaul plan b.tar --to new-phone --password-file .bp > /dev/full")
    #expect(pipe.status == 1 && pipe.errors.contains("error: could not write the result"), "\(pipe)")
  }
}
