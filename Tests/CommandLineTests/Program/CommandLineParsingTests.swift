import ArgumentParser
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Parsing of command lines")
struct CommandLineParsingTests {
  func words(_ line: String) -> [String] { line.split(separator: " ").map(String.init) }
  func parse(_ line: String) throws -> any ParsableCommand { try AllCommands.parse(line: words(line)) }

  @Test(
    "Flags may be anywhere",
    arguments: [
      "backup old-phone -o x.backup --home /h --json -vv --wait 30s --password-file /p -n",
      "--home /h --json -vv backup old-phone -o x.backup --wait 30s --password-file /p -n",
      "--password-file /p -n --wait 30s -o x.backup --home=/h -v --json -v backup old-phone",
      "--json backup -n --home /h -o x.backup -v old-phone --verbose --password-file /p --wait=30s",
    ])
  func anywhere(line: String) throws {
    let backup = try #require(try parse(line) as? BackupCommand)
    #expect(backup.device == "old-phone")
    #expect(backup.output == "x.backup")
    #expect(backup.common.home == "/h")
    #expect(backup.common.isJSON)
    #expect(backup.common.verbose == 2)
    #expect(backup.common.wait.duration == .seconds(30))
    #expect(backup.password.file == "/p")
    #expect(backup.dryRun.isOn)
  }

  @Test("Flags may be between a group and its command")
  func between() throws {
    let command = try parse("device --home /h passcode --json set old-phone --new-passcode-fd 3")
    let passcodeSet = try #require(command as? DevicePasscodeSet)
    #expect(passcodeSet.target.device == "old-phone")
    #expect(passcodeSet.newPasscode.descriptor == 3)
    #expect(passcodeSet.common.home == "/h" && passcodeSet.common.json)
  }

  @Test("A hyphen means standard input, and everything after two hyphens is an argument")
  func hyphen() throws {
    let restore = try #require(try parse("restore - --to new-phone --password-file -") as? Restore)
    #expect(restore.archive == "-")
    #expect(restore.accessOptions.password.file == "-")
    #expect(try #require(try parse("inspect --json -- --help") as? Inspect).paths == ["--help"])
  }

  @Test(
    "A negative number can be an argument",
    arguments: ["explain -25300 --json", "--json explain -25300", "explain --json -- -25300"])
  func negativeNumber(line: String) throws {
    let explain = try #require(try parse(line) as? Explain)
    #expect(explain.topic == "-25300" && explain.common.isJSON)
  }

  @Test("Protection classes are accepted as words and as codes", arguments: ProtectionArgument.allValueStrings)
  func protection(word: String) throws {
    let byWord = try #require(try parse("item add d --protection \(word)") as? ItemAdd).attributes.protection?
      .protection
    let code = try #require(byWord).rawValue
    let byCode = try #require(try parse("item add d --protection \(code)") as? ItemAdd).attributes.protection
    #expect(byCode?.protection == byWord)
  }

  @Test("Every protection class and every kind has a word")
  func allWords() {
    #expect(
      ProtectionArgument.allValueStrings == [
        "when-unlocked", "after-first-unlock", "always", "when-unlocked-this-device", "after-first-unlock-this-device",
        "always-this-device", "passcode-only",
      ])
    #expect(Set(ItemKindArgument.names.map(\.1)) == Set(ItemKind.allCases))
  }

  @Test(
    "Waiting times have a unit, and are at most 24 hours",
    arguments: [
      ("0", .zero), ("30s", .seconds(30)), ("2m", .seconds(120)), ("1h", .seconds(3600)), ("500ms", .milliseconds(500)),
      ("24h", .seconds(86_400)), ("25h", nil), ("30", nil), ("-1s", nil), ("s", nil), ("1.5s", nil),
      ("99999999999999999999s", nil),
    ] as [(String, Duration?)])
  func wait(text: String, duration: Duration?) {
    #expect(WaitTime(text)?.duration == duration)
  }

  @Test(
    "Iteration counts may have separators, and are from 1 to 4,294,967,295",
    arguments: [
      ("10000000", 10_000_000), ("10,000,000", 10_000_000), ("0", nil), ("-1", nil), ("4294967296", nil), ("", nil),
    ]
      as [(String, Int?)])
  func iterationCount(text: String, value: Int?) {
    #expect(IterationCount(argument: text)?.value == value)
  }

  @Test(
    "Parser errors look like the program's own errors: a message, a reason and advice",
    arguments: [
      ("bakup old", "keyhaul has no command \"bakup\"", nil, "keyhaul backup"),
      ("device lisst", "keyhaul device has no command \"lisst\"", nil, "keyhaul device list"),
      ("unlock x", "keyhaul has no command \"unlock\"", "\"unlock\" is a command of device", "keyhaul device unlock"),
      ("frobnicate", "keyhaul has no command \"frobnicate\"", nil, "keyhaul -h"),
      ("back x", "keyhaul has no command \"back\"", nil, "keyhaul backup"),
      (
        "backup x -o y --no-pasword", "keyhaul backup has no flag --no-pasword", "--no-password is similar",
        "--no-password"
      ),
      (
        "plan x --to y --password z", "keyhaul plan has no flag --password",
        "a password is never an argument",
        "--password-file, --password-fd or --password-command"
      ),
      (
        "device unlock x --passcode 1234", "keyhaul device unlock has no flag --passcode",
        "a passcode is never an argument",
        "--passcode-file, --passcode-fd or --passcode-command"
      ),
      ("backup", "keyhaul backup needs a device", nil, "keyhaul backup -h"),
      ("backup x", "keyhaul backup needs --output ARCHIVE", nil, "keyhaul backup -h"),
      ("device list y", "keyhaul device list does not accept the argument \"y\"", nil, "keyhaul device list -h"),
      (
        "device list a b",
        "keyhaul device list has too many arguments", "2 are too many: a, b", "keyhaul device list -h"
      ),
      (
        "why x word", "keyhaul why has too many arguments",
        "flags select the item, and a password is never an argument",
        "--service NAME or --account NAME; for a password --password-file, --password-fd or --password-command"
      ),
      (
        "convert / /tmp -o x", "keyhaul convert has too many arguments", "\"/tmp\" is one argument too many",
        "run one command for each, or keyhaul diff A B to compare two backups"
      ),
      (
        "item update x --account a --secret-file p", "keyhaul item update has no flag --secret-file",
        "the flags --new-... set an item's new values", "--new-secret-file"
      ),
      ("backup x -o", "-o needs a value", nil, "-o ARCHIVE"),
      (
        "plan x --to y --existing keep", "--existing cannot be \"keep\"", "it must be replace or merge",
        "keyhaul plan -h"
      ),
      (
        "backup x -o y --rounds 0", "--rounds cannot be \"0\"", "it must be a number from 1 to 19,990,000",
        "keyhaul backup -h"
      ),
      (
        "inspect x --max-rounds abc", "--max-rounds cannot be \"abc\"", "it must be a number from 1 to 4,294,967,295",
        "keyhaul inspect -h"
      ),
      (
        "rekey x --rounds 4294967296", "--rounds cannot be \"4294967296\"", "it must be a number from 1 to 19,990,000",
        "keyhaul rekey -h"
      ),
      ("compare x y", "keyhaul has no command \"compare\"", "\"diff\" does that", "keyhaul diff"),
      ("info x", "keyhaul has no command \"info\"", "\"inspect\" does that", "keyhaul inspect"),
      ("decrypt x", "keyhaul has no command \"decrypt\"", "\"export\" does that", "keyhaul export"),
      ("Passwords x", "keyhaul has no command \"Passwords\"", "\"export\" does that", "keyhaul export"),
      ("plan x --to y --wait 5", "--wait cannot be \"5\"", nil, "keyhaul plan -h"),
      ("completions tcsh", "SHELL cannot be \"tcsh\"", "it must be bash, zsh or fish", "keyhaul completions -h"),
      ("explain --json=yes", "--json does not accept a value", nil, "--json alone"),
      ("inspect x --list --keybag", "--list and --keybag cannot be used together", nil, "use only one of them"),
      ("device list -x", "keyhaul device list has no flag -x", nil, "keyhaul device list -h"),
    ] as [(String, String, String?, String)])
  func parserErrors(line: String, message: String, why: String?, advice: String) {
    let failure = thrownError { _ = try parse(line) }
    #expect(failure?.status == .usage)
    #expect(failure?.message == message)
    if let why { #expect(failure?.why == why) }
    #expect(failure?.advice == advice)
  }

  @Test("A value that may be a password is never repeated")
  func unrepeated() throws {
    for line in [
      "backup x -o y --password hunter2", "backup x -o y --password=hunter2", "--password=hunter2 backup x -o y",
    ] {
      let failure = try #require(thrownError { _ = try parse(line) })
      #expect(!"\(failure)".contains("hunter2"))
    }
  }

  @Test("Contradicting flags are rejected", arguments: [["--json", "--format", "text"], ["-q", "-v"]])
  func contradiction(flags: [String]) throws {
    let common = try CommonOptions.parse(flags)
    #expect(thrownError { try common.check() }?.status == .usage)
  }
}
