import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

/// Plans for damaged backups, in text, as documents and as pages.
@Suite("The plan of a damaged backup")
struct DamagedBackupPlanTests {
  private static let passwordFlag = "--password-file .bp"

  /// A kind of damage, and the verdict that it leads to.
  struct Damage: Sendable, CustomTestStringConvertible {
    let name: String
    let verdict: String
    let apply: @Sendable (_ sandbox: PhoneSandbox, _ backup: String) throws -> Void
    var testDescription: String { name }

    /// Returns a change of a property list in the backup.
    static func changing(
      _ file: String, _ change: @escaping @Sendable (inout [String: Any]) -> Void
    ) -> @Sendable (PhoneSandbox, String) throws -> Void {
      { sandbox, backup in try sandbox.editPropertyList("\(backup)/\(file)", change) }
    }
  }

  static let damages = [
    Damage(
      name: "Status.plist has no state",
      verdict: "The backup may be incomplete: make a new one while Santas-Phone still works.",
      apply: Damage.changing("Status.plist") { $0["SnapshotState"] = nil }),
    Damage(
      name: "Status.plist is missing",
      verdict: "The backup may be incomplete: make a new one while Santas-Phone still works.",
      apply: { sandbox, backup in try sandbox.devices.run("rm \(backup)/Status.plist") }),
    Damage(
      name: "bytes follow the manifest",
      verdict: "The backup is damaged: make a new one while Santas-Phone still works.",
      apply: { sandbox, backup in try sandbox.devices.run("echo more >> \(backup)/Manifest.db") }),
    Damage(
      name: "the manifest has no version",
      verdict: "The backup is damaged: make a new one while Santas-Phone still works.",
      apply: Damage.changing("Manifest.plist") { $0["Version"] = nil }),
  ]

  private func sandbox(with damage: Damage) throws -> PhoneSandbox {
    let sandbox = try IPhoneBackups.sandbox()
    try damage.apply(sandbox, "encrypted")
    return sandbox
  }

  @Test(
    "The plan of a damaged backup starts with the damage, and only says what could move", arguments: damages)
  func verdict(damage: Damage) throws {
    let sandbox = try sandbox(with: damage)
    let outcome = try sandbox.keyhaul("plan encrypted/ \(Self.passwordFlag)")
    #expect(outcome.status == 3 && outcome.output.hasPrefix(damage.verdict + "\n\n"), "\(outcome)")
    // Only bytes after the manifest show that something changed after the device wrote the backup.
    #expect(!outcome.errors.contains("has changed since") || damage.name == "bytes follow the manifest", "\(outcome)")
    let text = unwrapped(outcome.output)
    #expect(text.contains("14 of the 18 items in it could move to a new iPhone; others may be missing."), "\(text)")
    #expect(text.contains("[ ] Make a new backup with a password while Santas-Phone still works."), "\(text)")
    #expect(text.contains("[ ] See what is wrong with this backup. keyhaul verify encrypted/"), "\(text)")
    #expect(!text.contains("Encrypt local backup") && !text.contains("Check that the backup is intact"), "\(text)")
    #expect(!text.contains("14 move") && !text.contains(" reach a new iPhone"), "\(text)")
    // At most 25 lines. The last part is empty, because the text ends with a line break.
    #expect(outcome.output.split(separator: "\n", omittingEmptySubsequences: false).count <= 26, "\(outcome.output)")
    let verbose = unwrapped(try sandbox.keyhaul("plan encrypted/ \(Self.passwordFlag) -v").output)
    #expect(
      !verbose.contains("14 move") && verbose.contains("If this backup could be restored as it is: ITEMS"), "\(verbose)"
    )
    let document = try sandbox.devices.document("keyhaul plan encrypted/ \(Self.passwordFlag) --json")
    #expect(document["verdict"]?.stringValue == damage.verdict)
    let page = try sandbox.keyhaul("plan encrypted/ \(Self.passwordFlag) --format html -o -").output
    #expect(page.contains("<p class=\"verdict\">\(damage.verdict)</p>"))
    #expect(page.contains("<p>If this backup could be restored as it is:</p>"))
  }

  @Test("The plan of a damaged backup for a device starts with the damage, and names the command that shows it")
  func target() throws {
    let damage = Self.damages[0]
    let sandbox = try sandbox(with: damage)
    let outcome = try sandbox.keyhaul("plan encrypted/ --to new-phone \(Self.passwordFlag)")
    #expect(outcome.status == 3 && outcome.output.hasPrefix(damage.verdict + "\n\n"), "\(outcome)")
    let text = unwrapped(outcome.output)
    #expect(
      text.contains(
        "14 of the 18 items in it could move to new-phone; others may be missing. What is wrong with it: keyhaul verify "
          + "encrypted/ Plan:"), "\(text)")
    #expect(text.contains("Could move (14)") && !text.contains("ill move"), "\(text)")
    let page = try sandbox.keyhaul("plan encrypted/ --to new-phone \(Self.passwordFlag) --format html -o -").output
    #expect(page.contains("<p class=\"verdict\">\(damage.verdict) 14 of the 18 items"))
    #expect(!page.replacing(/<[^>]*>/, with: "").contains("keyhaul restore"))
  }

  @Test("A table of backups does not say how many items of a damaged backup would move")
  func table() throws {
    let sandbox = try sandbox(with: Self.damages[0])
    let rows = try sandbox.keyhaul("plan encrypted old \(Self.passwordFlag)").output.split(separator: "\n")
    let damagedRow = try #require(rows.first { $0.hasSuffix("  encrypted") })
    let olderRow = try #require(rows.first { $0.hasSuffix("  old") })
    #expect(damagedRow.hasPrefix("   3  partial            -  "), "\(damagedRow)")
    // The old backup has no password, so a password for it is refused.
    #expect(olderRow.hasPrefix("  14  refused            -  "), "\(olderRow)")
  }

  @Test("For a backup without a readable keychain, the error suggests a new backup and verify")
  func unreadable() throws {
    let sandbox = try IPhoneBackups.sandbox()
    try sandbox.devices.run("rm encrypted/\(PhoneSandbox.keychainPath); rm -f encrypted/Keyhaul.seal")
    for target in ["", "--to new-phone"] {
      let outcome = try sandbox.keyhaul("plan encrypted/ \(target) \(Self.passwordFlag)")
      #expect(outcome.status == 13 && outcome.output.isEmpty, "\(outcome)")
      #expect(
        unwrapped(outcome.errors).contains(
          "try: make a new backup while the source device still works, or use another copy; keyhaul verify encrypted/ "
            + "shows what is damaged"), "\(outcome.errors)")
    }
  }

  @Test("The plan of a damaged backup without a password tells how to make a new backup with a password")
  func withoutPassword() throws {
    let sandbox = try IPhoneBackups.sandbox()
    try sandbox.devices.run("rm plain/Status.plist")
    let text = unwrapped(try sandbox.keyhaul("plan plain/").output)
    #expect(
      text.contains(
        "[ ] Make a new backup with a password while Santas-Phone still works. 14 of these items would then move. "
          + "Turn on \"Encrypt local backup\""), "\(text)")
    #expect(
      text.contains(
        "None of the 18 items in it could move to a new iPhone, because it has no password; others may be missing."),
      "\(text)")
  }

  @Test(
    "The reason why a backup is unfinished names its file once",
    arguments: ["verify encrypted", "verify encrypted old"])
  func unfinished(command: String) throws {
    let sandbox = try IPhoneBackups.sandbox()
    try Damage.changing("Status.plist") { $0["SnapshotState"] = "uploading" }(sandbox, "encrypted")
    let outcome = try sandbox.keyhaul("\(command) \(Self.passwordFlag)")
    let reason = "Status.plist: it says \"uploading\", not \"finished\", so the device never finished the backup"
    #expect(unwrapped(outcome.output).components(separatedBy: reason).count == 2, "\(outcome)")
    #expect(!outcome.output.contains("Status.plist says"), "\(outcome)")
  }
}
