import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Repeated commands")
struct RepeatedCommandTests {
  /// Returns a sandbox with two phones, a backup of old-phone in `folder`, and files with secrets.
  private static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "run twice") { sandbox in
      try sandbox.backUp(to: "folder/")
      try sandbox.write(Array("135790".utf8), to: ".pin")
      try sandbox.write(Array("secret".utf8), to: ".secret")
      try sandbox.write(Array("another".utf8), to: ".np")
    }
  }

  /// A command that is run twice, with the expected result of the second run.
  struct RepeatedCommand: CustomTestStringConvertible, Sendable {
    let line: String
    /// A part of the message on standard output or standard error.
    let message: String
    var code: Int32 = 0
    /// Whether the first run has the same message, because there is nothing to do.
    var isFirstRunIdle = false
    /// Commands to run before the first run.
    var before: [String] = []

    var testDescription: String { line }
  }

  private static let passwordFlag = "--password-file .bp"
  private static let itemFlags = "--service chat.example --account alice --access-group g"

  private static let commands: [RepeatedCommand] = [
    RepeatedCommand(line: "device lock old-phone", message: "old-phone is already locked."),
    RepeatedCommand(
      line: "device unlock old-phone --passcode-file .pin", message: "old-phone is already unlocked.",
      before: ["keyhaul device lock old-phone"]),
    RepeatedCommand(line: "device unlock old-phone", message: "old-phone is already unlocked.", isFirstRunIdle: true),
    RepeatedCommand(
      line: "device passcode change old-phone --passcode-file .pin --new-passcode-file .pin",
      message: "The passcode of old-phone has not changed.", isFirstRunIdle: true),
    RepeatedCommand(
      line: "device create third --from new-phone", message: "a device named third already exists", code: 64),
    RepeatedCommand(
      line: "device erase new-phone --yes", message: "Erased new-phone again. It had no items and no passcode."),
    RepeatedCommand(
      line: "device delete new-phone --confirm new-phone", message: "there is no device named new-phone", code: 10),
    RepeatedCommand(
      line: "restore folder --to new-phone --yes \(passwordFlag)",
      message: "Nothing to restore: all 14 items were already on new-phone; 4 stayed behind."),
    RepeatedCommand(
      line: "restore folder --to new-phone --existing merge --yes \(passwordFlag)",
      message: "Nothing to do: all 14 items are already on new-phone; 4 stayed behind."),
    RepeatedCommand(
      line: "rekey folder \(passwordFlag) --new-password-file .bp",
      message: "Nothing to do: folder already has this password.", isFirstRunIdle: true),
    RepeatedCommand(
      line: "rekey folder \(passwordFlag) --new-password-file .bp --rounds 7",
      message: "Nothing to do: folder already has this password."),
    // After the first run, the old password is wrong.
    RepeatedCommand(
      line: "rekey folder \(passwordFlag) --new-password-file .np", message: "the password is wrong", code: 12),
    RepeatedCommand(
      line: "seal folder \(passwordFlag)", message: "folder is already sealed", before: ["rm folder/Keyhaul.seal"]),
    // If the copy has the same bytes, Keyhaul neither asks nor writes.
    RepeatedCommand(
      line: "convert folder -o copy.tar", message: "Nothing to do: copy.tar already contains the same files as folder."
    ),
    RepeatedCommand(
      line: "convert folder -o copy/", message: "Nothing to do: copy/ already contains the same files as folder."),
    RepeatedCommand(
      line: "convert folder -o copy.tar.zst -n", message: "Would copy folder to copy.tar.zst", isFirstRunIdle: true),
    RepeatedCommand(
      line: "backup old-phone -o new.tar \(passwordFlag) --rounds 1", message: "replacing new.tar", code: 64),
    RepeatedCommand(line: "export folder -o items.json \(passwordFlag)", message: "replacing items.json", code: 64),
    RepeatedCommand(
      line: "export folder --files out \(passwordFlag)",
      message: "Nothing to do: 1 file of folder was already in out, and was not compared again."),
    RepeatedCommand(line: "device export old-phone -o k.db", message: "replacing k.db must be confirmed", code: 64),
  ]

  @Test("A repeated command reports that there is nothing to do, or why it cannot be done again", arguments: commands)
  func twice(_ command: RepeatedCommand) throws {
    let sandbox = try Self.sandbox()
    for line in command.before { try sandbox.devices.run(line) }
    let first = try sandbox.keyhaul(command.line)
    #expect(first.status == 0, "\(first)")
    #expect(unwrapped(first.output + first.errors).contains(command.message) == command.isFirstRunIdle, "\(first)")
    let second = try sandbox.keyhaul(command.line)
    #expect(
      second.status == command.code && unwrapped(second.output + second.errors).contains(command.message), "\(second)")
  }

  @Test(
    "A repeated change of items is reported, on a device and in a backup",
    arguments: ["old-phone", "folder \(passwordFlag)"])
  func items(source: String) throws {
    let sandbox = try Self.sandbox()
    let location = source.hasPrefix("folder") ? "in folder" : "on old-phone"
    let add = "item add \(source) \(Self.itemFlags) --label one --secret-file .secret"
    try sandbox.succeed(add)
    let repeated = try sandbox.keyhaul(add)
    #expect(repeated.status == 1 && repeated.errors.contains("already has this item"), "\(repeated)")

    for change in ["--new-label two", "--new-secret-file .np", "--new-label three --new-secret-file .secret"] {
      let update = "item update \(source) \(Self.itemFlags) \(change) --yes"
      #expect(try sandbox.succeed(update) == "Changed 1 item \(location).\n")
      let before = try sandbox.devices.files(of: "old-phone")
      #expect(try sandbox.succeed(update) == "Nothing to do: 1 item \(location) already has these values.\n")
      // Keyhaul does not ask about a change that changes nothing.
      #expect(try sandbox.keyhaul(update.replacing(" --yes", with: "")).status == 0)
      #expect(try sandbox.devices.files(of: "old-phone") == before)
      #expect(try sandbox.object(sandbox.succeed("\(update) --json"))["changed"] as? Int == 0)
    }

    let delete = "item delete \(source) \(Self.itemFlags) --yes"
    #expect(try sandbox.succeed(delete).hasPrefix("Deleted 1 item"))
    let repeatedDeletion = try sandbox.keyhaul(delete)
    #expect(
      repeatedDeletion.status == 4 && repeatedDeletion.errors.contains("No item \(location) matches."),
      "\(repeatedDeletion)")
  }

  @Test(
    "A repeated conversion writes nothing, and asks if the copy would differ",
    arguments: PhoneSandbox.backupEndings.map { "copy" + $0 })
  func conversion(copy: String) throws {
    let sandbox = try Self.sandbox()
    // With a seal, `convert` would notice the changes below.
    try sandbox.removeSeal("folder")
    let line = "convert folder -o \(copy) --json"
    let first = try sandbox.object(sandbox.succeed(line))
    #expect(first["written"] as? Bool == true)
    try sandbox.devices.run("touch -d @1000000000 \(copy)")
    let second = try sandbox.object(sandbox.succeed(line))
    #expect(second["written"] as? Bool == false)
    for member in ["digest", "files", "bytes", "archive"] {
      // The defaults differ, so the check fails if both results lack the member.
      #expect("\(second[member] ?? "")" == "\(first[member] ?? "-")", "\(member)")
    }
    #expect(try sandbox.object(sandbox.succeed("\(line) -n"))["written"] as? Bool == false)
    #expect(try sandbox.devices.run("stat -c %Y \(copy)").output == "1000000000\n")
    #expect(try sandbox.keyhaul("convert folder -o \(copy) -q").status == 0)

    // The first change adds a byte to a file without a digest, and the second one adds a file.
    let changes = [
      "printf x >> folder/Info.plist", "mkdir -p folder/00; cp folder/Manifest.plist folder/00/$(printf %040d 0)",
    ]
    for change in changes {
      try sandbox.devices.run(change)
      let unconfirmed = try sandbox.keyhaul("convert folder -o \(copy)")
      #expect(unconfirmed.status == 64 && unconfirmed.errors.contains("must be confirmed"), "\(change): \(unconfirmed)")
      #expect(try sandbox.object(sandbox.succeed("\(line) --yes"))["written"] as? Bool == true)
      #expect(try sandbox.object(sandbox.succeed(line))["written"] as? Bool == false)
    }
  }

  @Test("A rekey to the same password writes nothing, unless it has another iteration count")
  func rekey() throws {
    let sandbox = try Self.sandbox()
    let line = "rekey folder \(Self.passwordFlag) --new-password-file .bp --json"
    let before = try sandbox.read("folder/Manifest.plist")
    #expect(try sandbox.object(sandbox.succeed(line))["written"] as? Bool == false)
    #expect(try sandbox.read("folder/Manifest.plist") == before)
    #expect(try sandbox.object(sandbox.succeed("\(line) --rounds 9"))["written"] as? Bool == true)
    #expect(try sandbox.read("folder/Manifest.plist") != before)
  }

  @Test("A repeated command deletes leftovers of killed runs, even if there is nothing else to do")
  func leftovers() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("item add folder \(Self.passwordFlag) \(Self.itemFlags) --label one --secret-file .secret")
    for line in [
      "rekey folder \(Self.passwordFlag) --new-password-file .bp",
      "item update folder \(Self.passwordFlag) \(Self.itemFlags) --new-label one --yes",
    ] {
      let names = ["folder/.Manifest.plist.7ee21a21.tmp", "folder/.Keyhaul.seal.7ee21a21.tmp"]
      for name in names { try sandbox.write([1], to: name) }
      #expect(try sandbox.succeed("\(line) --dry-run").contains("Nothing to do"))
      #expect(names.allSatisfy { (try? sandbox.read($0)) != nil })
      #expect(try sandbox.succeed("\(line) --in-place").contains("Nothing to do"))
      #expect(names.allSatisfy { (try? sandbox.read($0)) == nil })
    }
  }

  @Test("A repeated installation or removal reports that there is nothing to do")
  func install() throws {
    let sandbox = try DeviceSandbox()
    let script = Repository.root.appending(path: "packaging/install").path
    try sandbox.run("mkdir pages; echo page > pages/keyhaul.1")
    let line = "'\(script)' \"$(command -v keyhaul)\" pages there"
    let first = try sandbox.run(line)
    #expect(first.status == 0 && first.output == "Installed keyhaul below there.\n", "\(first)")
    let second = try sandbox.run(line)
    #expect(
      second.status == 0 && second.output == "Nothing to do: this keyhaul is installed below there.\n", "\(second)")
    #expect(try sandbox.run("'\(script)' --remove there").output == "Removed keyhaul below there.\n")
    #expect(try sandbox.run("'\(script)' --remove there").output == "Nothing to do: there is no keyhaul below there.\n")
  }
}
