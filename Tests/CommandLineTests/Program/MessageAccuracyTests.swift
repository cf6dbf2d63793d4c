import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Accuracy of messages")
struct MessageAccuracyTests {
  private static func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "b/") }

  @Test(
    "A dry run of a conversion is rejected with the same message as the conversion",
    arguments: ["dangling", "link", "pipe", "none/x.tar", "device"])
  func dryRun(destination: String) throws {
    let sandbox = try Self.sandbox()
    try sandbox.devices.run(
      "ln -s nowhere dangling; echo other > file; ln -s file link; mkfifo pipe; ln -s /dev/full device")
    let dryRun = try sandbox.keyhaul("convert b -o \(destination) -n --json")
    let converted = try sandbox.keyhaul("convert b -o \(destination) --yes --json")
    #expect(dryRun.status == converted.status && [1, 64].contains(converted.status), "\(dryRun) \(converted)")
    #expect(dryRun.errors == converted.errors)
    #expect(dryRun.output.isEmpty)
    // The advice does not mention --yes, because the command would still be rejected.
    #expect(try !sandbox.keyhaul("convert b -o \(destination)").errors.contains("--yes"))
  }

  @Test("The reported size of a copied folder equals the size of its files")
  func bytes() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("convert b -o b.zip")
    for source in ["b", "b.zip"] {
      let copied = try sandbox.keyhaul("convert \(source) -o copy/ --yes --json")
      let files = try sandbox.devices.run("find copy -type f -printf '%s '").output
        .split(separator: " ").compactMap { Int($0) }
      #expect(try sandbox.object(copied.output)["bytes"] as? Int == files.reduce(0, +))
    }
  }

  @Test("A repeated conversion again reports a file that is not part of the backup")
  func unrelatedFile() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("convert b -o x.tar")
    try sandbox.devices.run("echo mine > diary.txt; tar -rf x.tar diary.txt")
    for isFirstRun in [true, false] {
      let outcome = try sandbox.keyhaul("convert x.tar -o y.tar")
      #expect(outcome.output.hasPrefix("Nothing to do") == !isFirstRun, "\(outcome)")
      #expect(outcome.status == 0 && outcome.errors.contains("1 file not copied"), "\(outcome)")
    }
  }

  @Test("For a locked device, unreadable items are reported by class, with advice to unlock it")
  func locked() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("device export old-phone -o sim.db")
    try sandbox.succeed("device lock old-phone")
    for line in ["device export old-phone -o x.db", "simulator seed sim.db --from old-phone --yes"] {
      let refused = try sandbox.keyhaul(line)
      #expect(refused.status == 15)
      #expect(refused.errors.contains("items are in the class "), "\(refused)")
      #expect(refused.errors.contains("keyhaul device unlock old-phone") && !refused.errors.contains("rawValue"))
    }
  }

  @Test("A device at a path is named by its path, and is not in the list of the device folder")
  func path() throws {
    let sandbox = try Self.sandbox()
    #expect(
      try sandbox.succeed("device create ./elsewhere/phone --from new-phone").hasPrefix("Created ./elsewhere/phone ("))
    #expect(try !sandbox.succeed("device list").contains("\nphone "))
  }

  @Test("Replacing a secret with an empty one is reported")
  func emptySecret() throws {
    let sandbox = try Self.sandbox()
    let changed = try sandbox.keyhaul(
      "item update old-phone --service chat.example --account anna --new-secret-file /dev/null --yes -q")
    #expect(changed.status == 0 && changed.errors.contains("the new secret is empty"), "\(changed)")
  }

  @Test("A change that would make two items equal is rejected before the question")
  func collision() throws {
    let sandbox = try Self.sandbox()
    let outcome = try sandbox.keyhaul("item update old-phone --service chat.example --new-account bob")
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("would make an item a duplicate of another item on old-phone"), "\(outcome)")
  }

  @Test("A file of a backup is not shown on a terminal")
  func terminal() throws {
    let sandbox = try Self.sandbox()
    let outcome = try sandbox.devices.runOnTerminal([
      "export", "b", "--domain", "KeychainDomain", "--path", "keychain-backup.plist", "-o", "-",
    ])
    #expect(outcome.status == 64 && outcome.terminal.contains("a file of a backup is not shown on a terminal"))
    #expect(!outcome.terminal.contains("Password"))
  }

  @Test("Field names in a separate argument get advice to use --json=FIELDS")
  func fields() throws {
    let refused = try Self.sandbox().keyhaul("device list --json name,items")
    #expect(refused.status == 64 && refused.errors.contains("--json=name,items"), "\(refused)")
  }
}
