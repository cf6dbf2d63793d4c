import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("What is said beforehand, and of what was done")
struct TrueWordsTests {
  private static func world() throws -> MoveWorld { try MoveWorld(backedUpTo: "b/") }

  @Test(
    "a trial of a conversion is refused where the conversion is, by the same words",
    arguments: ["dangling", "link", "pipe", "none/x.tar", "device"])
  func trial(destination: String) throws {
    let world = try Self.world()
    try world.devices.run(
      "ln -s nowhere dangling; echo other > file; ln -s file link; mkfifo pipe; ln -s /dev/full device")
    let tried = try world.keyhaul("convert b -o \(destination) -n --json")
    let done = try world.keyhaul("convert b -o \(destination) --yes --json")
    #expect(tried.status == done.status && [1, 64].contains(done.status), "\(tried) \(done)")
    #expect(tried.errors == done.errors)
    #expect(tried.output.isEmpty)
    // Nobody is told to say yes to what is refused afterwards.
    #expect(try !world.keyhaul("convert b -o \(destination)").errors.contains("--yes"))
  }

  @Test("a copy in a folder has as many bytes as its files")
  func bytes() throws {
    let world = try Self.world()
    try world.succeed("convert b -o b.zip")
    for source in ["b", "b.zip"] {
      let copied = try world.keyhaul("convert \(source) -o copy/ --yes --json")
      let files = try world.devices.run("find copy -type f -printf '%s '").output
        .split(separator: " ").compactMap { Int($0) }
      #expect(try world.object(copied.output)["bytes"] as? Int == files.reduce(0, +))
    }
  }

  @Test("a file that is not part of a backup is named the second time too")
  func foreignFile() throws {
    let world = try Self.world()
    try world.succeed("convert b -o x.tar")
    try world.devices.run("echo mine > diary.txt; tar -rf x.tar diary.txt")
    for written in [true, false] {
      let outcome = try world.keyhaul("convert x.tar -o y.tar")
      #expect(outcome.output.hasPrefix("Nothing to do") == !written, "\(outcome)")
      #expect(outcome.status == 0 && outcome.errors.contains("1 file not copied"), "\(outcome)")
    }
  }

  @Test("what a locked device cannot tell is said by classes, and how to unlock it")
  func locked() throws {
    let world = try Self.world()
    try world.succeed("device export old-phone -o sim.db")
    try world.succeed("device lock old-phone")
    for line in ["device export old-phone -o x.db", "simulator seed sim.db --from old-phone --yes"] {
      let refused = try world.keyhaul(line)
      #expect(refused.status == 15)
      #expect(refused.errors.contains("items are in the class "), "\(refused)")
      #expect(refused.errors.contains("keyhaul device unlock old-phone") && !refused.errors.contains("rawValue"))
    }
  }

  @Test("a device at a path is called by it")
  func path() throws {
    let world = try Self.world()
    #expect(
      try world.succeed("device create ./elsewhere/phone --from new-phone").hasPrefix("Created ./elsewhere/phone ("))
    #expect(try !world.succeed("device list").contains("phone\n"))
  }

  @Test("a secret that is replaced by an empty one is said")
  func emptySecret() throws {
    let world = try Self.world()
    let changed = try world.keyhaul(
      "item update old-phone --service chat.example --account anna --new-secret-file /dev/null --yes -q")
    #expect(changed.status == 0 && changed.errors.contains("the new secret is empty"), "\(changed)")
  }

  @Test("two items that would become one are no question")
  func collision() throws {
    let world = try Self.world()
    let outcome = try world.keyhaul("item update old-phone --service chat.example --new-account bob")
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("would make an item a duplicate of another item on old-phone"), "\(outcome)")
  }

  @Test("a file of a backup, whatever its bytes do to a terminal, is not shown on one")
  func terminal() throws {
    let world = try Self.world()
    let outcome = try world.devices.runOnTerminal([
      "export", "b", "--domain", "KeychainDomain", "--path", "keychain-backup.plist", "-o", "-",
    ])
    #expect(outcome.status == 64 && outcome.terminal.contains("a file of a backup is not shown on a terminal"))
    #expect(!outcome.terminal.contains("Password"))
  }

  @Test("names of fields in a word of their own are shown where they belong")
  func fields() throws {
    let refused = try Self.world().keyhaul("device list --json name,items")
    #expect(refused.status == 64 && refused.errors.contains("--json=name,items"), "\(refused)")
  }
}
