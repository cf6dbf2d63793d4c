import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Owner and permissions of changed backups")
struct PreservedAccessTests {
  private static let changes = [
    "item add b --service s --account a --access-group g --secret-file .np --password-file .bp",
    "item update b --service s --new-label l --yes --password-file .bp",
    "item delete b --service s --yes --password-file .bp",
    "rekey b --password-file .bp --new-password-file .np",
    "seal b --password-file .np",
  ]

  /// Returns every file and folder of the backup with its permissions, user ID and group ID.
  private func access(in sandbox: PhoneSandbox) throws -> [String] {
    try sandbox.devices.run("find b -printf '%p %m %U:%G\\n' | sort").output.split(separator: "\n").map(String.init)
  }

  /// Checks that commands which change a backup keep its permissions and owners.
  ///
  /// - Parameters:
  ///   - name: The name under which the backup is written, whose ending selects its format.
  ///   - preparation: A shell line that sets the permissions or owners.
  private func expectUnchangedAccess(of name: String, after preparation: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: name)
    try sandbox.devices.run("mv \(name) b; \(preparation)")
    let accessBefore = try access(in: sandbox)
    for line in Self.changes {
      let outcome = try sandbox.devices.run("keyhaul \(line)")
      #expect(outcome.status == 0, "\(name): \(line): \(outcome)")
      #expect(try access(in: sandbox) == accessBefore, "\(name): \(line)")
    }
  }

  @Test("Changes to a backup keep all permissions", arguments: ["b1", "b1.tar", "b1.zip", "b1.tar.gz"])
  func permissions(name: String) throws {
    try expectUnchangedAccess(of: name.contains(".") ? name : name + "/", after: "chmod -R u=rwX,g=rX,o= b")
  }

  @Test(
    "Commands that root runs on another user's backup keep its owner and group",
    .enabled(if: geteuid() == 0, "SKIPPED, NOT SHOWN: files of another user, since only root can make them"),
    arguments: ["b1", "b1.tar", "b1.zip"])
  func owner(name: String) throws {
    try expectUnchangedAccess(
      of: name.contains(".") ? name : name + "/", after: "chmod -R u=rwX,g=rX,o= b; chown -R 12345:23456 b")
  }

  @Test("Only the owner can access the files that rekey --no-password decrypts")
  func decrypted() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.devices.run("chmod -R u=rwX,g=rX,o=rX b")
    let outcome = try sandbox.devices.run("keyhaul rekey b --password-file .bp --no-password --yes")
    #expect(outcome.status == 0, "\(outcome)")
    let accessible = try sandbox.devices.run("find b -type f -perm /077").output
    #expect(accessible.isEmpty, "\(accessible)")
  }
}
