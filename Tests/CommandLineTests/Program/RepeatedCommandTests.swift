import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Repeated commands")
struct RepeatedCommandTests {
  /// Two phones, and a backup of the first in a folder and in a file.
  private static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "run twice") { sandbox in
      try sandbox.backUp(to: "folder/")
      try sandbox.write(Array("135790".utf8), to: ".pin")
      try sandbox.write(Array("secret".utf8), to: ".secret")
      try sandbox.write(Array("another".utf8), to: ".np")
    }
  }

  /// A verb, and what its second run says on either stream, with its exit code.
  struct Twice: CustomTestStringConvertible, Sendable {
    let line: String
    let second: String
    var code: Int32 = 0
    /// Whether it is said of the first run too.
    var isIdleAtOnce = false
    /// Commands to run before the first run.
    var before: [String] = []

    var testDescription: String { line }
  }

  private static let opening = "--password-file .bp"
  private static let item = "--service chat.example --account alice --access-group g"

  private static let verbs: [Twice] = [
    Twice(line: "device lock old-phone", second: "old-phone is already locked."),
    Twice(
      line: "device unlock old-phone --passcode-file .pin", second: "old-phone is already unlocked.",
      before: ["keyhaul device lock old-phone"]),
    Twice(line: "device unlock old-phone", second: "old-phone is already unlocked.", isIdleAtOnce: true),
    Twice(
      line: "device passcode change old-phone --passcode-file .pin --new-passcode-file .pin",
      second: "The passcode of old-phone has not changed.", isIdleAtOnce: true),
    Twice(
      line: "device create third --from new-phone", second: "a device named third already exists", code: 64),
    Twice(line: "device erase new-phone --yes", second: "Erased new-phone again. It had no items and no passcode."),
    Twice(
      line: "device delete new-phone --confirm new-phone", second: "there is no device named new-phone", code: 10),
    Twice(
      line: "restore folder --to new-phone --yes \(opening)",
      second: "Nothing to restore: all 14 items were already on new-phone; 4 stayed behind."),
    Twice(
      line: "restore folder --to new-phone --existing merge --yes \(opening)",
      second: "Nothing to do: all 14 items are already on new-phone; 4 stayed behind."),
    Twice(
      line: "rekey folder \(opening) --new-password-file .bp",
      second: "Nothing to do: folder already has this password.", isIdleAtOnce: true),
    Twice(
      line: "rekey folder \(opening) --new-password-file .bp --rounds 7",
      second: "Nothing to do: folder already has this password."),
    // The old password opens nothing any more.
    Twice(line: "rekey folder \(opening) --new-password-file .np", second: "the password is wrong", code: 12),
    Twice(
      line: "seal folder \(opening)", second: "folder is already sealed", before: ["rm folder/Keyhaul.seal"]),
    // The same bytes are there: nothing is asked, and nothing written.
    Twice(
      line: "convert folder -o copy.tar", second: "Nothing to do: copy.tar already contains the same files as folder."
    ),
    Twice(line: "convert folder -o copy/", second: "Nothing to do: copy/ already contains the same files as folder."),
    Twice(line: "convert folder -o copy.tar.zst -n", second: "Would copy folder to copy.tar.zst", isIdleAtOnce: true),
    Twice(line: "backup old-phone -o new.tar \(opening) --rounds 1", second: "replacing new.tar", code: 64),
    Twice(line: "export folder -o items.json \(opening)", second: "replacing items.json", code: 64),
    Twice(
      line: "export folder --files out \(opening)",
      second: "Nothing to do: 1 file of folder was already in out, and was not compared again."),
    Twice(line: "device export old-phone -o k.db", second: "replacing k.db must be confirmed", code: 64),
  ]

  @Test("A repeated command reports that there is nothing to do, or why it cannot be done again", arguments: verbs)
  func twice(_ verb: Twice) throws {
    let sandbox = try Self.sandbox()
    for line in verb.before { try sandbox.devices.run(line) }
    let first = try sandbox.keyhaul(verb.line)
    #expect(first.status == 0, "\(first)")
    #expect(unwrapped(first.output + first.errors).contains(verb.second) == verb.isIdleAtOnce, "\(first)")
    let second = try sandbox.keyhaul(verb.line)
    #expect(second.status == verb.code && unwrapped(second.output + second.errors).contains(verb.second), "\(second)")
  }

  @Test(
    "A repeated change of items is reported, on a device and in a backup",
    arguments: ["old-phone", "folder \(opening)"])
  func items(place: String) throws {
    let sandbox = try Self.sandbox()
    let name = place.hasPrefix("folder") ? "in folder" : "on old-phone"
    let add = "item add \(place) \(Self.item) --label one --secret-file .secret"
    try sandbox.succeed(add)
    let again = try sandbox.keyhaul(add)
    #expect(again.status == 1 && again.errors.contains("already has this item"), "\(again)")

    for change in ["--new-label two", "--new-secret-file .np", "--new-label three --new-secret-file .secret"] {
      let update = "item update \(place) \(Self.item) \(change) --yes"
      #expect(try sandbox.succeed(update) == "Changed 1 item \(name).\n")
      let before = try sandbox.devices.files(of: "old-phone")
      #expect(try sandbox.succeed(update) == "Nothing to do: 1 item \(name) already has these values.\n")
      // Keyhaul does not ask about a change that changes nothing.
      #expect(try sandbox.keyhaul(update.replacing(" --yes", with: "")).status == 0)
      #expect(try sandbox.devices.files(of: "old-phone") == before)
      #expect(try sandbox.object(sandbox.succeed("\(update) --json"))["changed"] as? Int == 0)
    }

    let delete = "item delete \(place) \(Self.item) --yes"
    #expect(try sandbox.succeed(delete).hasPrefix("Deleted 1 item"))
    let gone = try sandbox.keyhaul(delete)
    #expect(gone.status == 4 && gone.errors.contains("No item \(name) matches."), "\(gone)")
  }

  @Test(
    "A repeated conversion writes nothing, and asks if the copy would differ",
    arguments: [
      "copy.tar", "copy.zip", "copy.tar.gz", "copy.tar.zst", "copy/",
    ])
  func conversion(copy: String) throws {
    let sandbox = try Self.sandbox()
    // A seal would tell of what is changed below.
    try sandbox.removeSeal("folder")
    let line = "convert folder -o \(copy) --json"
    let first = try sandbox.object(sandbox.succeed(line))
    #expect(first["written"] as? Bool == true)
    try sandbox.devices.run("touch -d @1000000000 \(copy)")
    let again = try sandbox.object(sandbox.succeed(line))
    #expect(again["written"] as? Bool == false)
    for member in ["digest", "files", "bytes", "archive"] {
      #expect("\(again[member] ?? "")" == "\(first[member] ?? "-")", "\(member)")
    }
    #expect(try sandbox.object(sandbox.succeed("\(line) -n"))["written"] as? Bool == false)
    #expect(try sandbox.devices.run("stat -c %Y \(copy)").output == "1000000000\n")
    #expect(try sandbox.keyhaul("convert folder -o \(copy) -q").status == 0)

    // Another byte in a file that no digest tells of, and a file more.
    let changes = [
      "printf x >> folder/Info.plist", "mkdir -p folder/00; cp folder/Manifest.plist folder/00/$(printf %040d 0)",
    ]
    for change in changes {
      try sandbox.devices.run(change)
      let other = try sandbox.keyhaul("convert folder -o \(copy)")
      #expect(other.status == 64 && other.errors.contains("must be confirmed"), "\(change): \(other)")
      #expect(try sandbox.object(sandbox.succeed("\(line) --yes"))["written"] as? Bool == true)
      #expect(try sandbox.object(sandbox.succeed(line))["written"] as? Bool == false)
    }
  }

  @Test("A repeated rekey writes nothing")
  func rekey() throws {
    let sandbox = try Self.sandbox()
    let line = "rekey folder \(Self.opening) --new-password-file .bp --json"
    let before = try sandbox.read("folder/Manifest.plist")
    #expect(try sandbox.object(sandbox.succeed(line))["written"] as? Bool == false)
    #expect(try sandbox.read("folder/Manifest.plist") == before)
    #expect(try sandbox.object(sandbox.succeed("\(line) --rounds 9"))["written"] as? Bool == true)
    #expect(try sandbox.read("folder/Manifest.plist") != before)
  }

  @Test("A repeated command deletes leftovers of killed runs, even if there is nothing else to do")
  func leftovers() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("item add folder \(Self.opening) \(Self.item) --label one --secret-file .secret")
    for line in [
      "rekey folder \(Self.opening) --new-password-file .bp",
      "item update folder \(Self.opening) \(Self.item) --new-label one --yes",
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
