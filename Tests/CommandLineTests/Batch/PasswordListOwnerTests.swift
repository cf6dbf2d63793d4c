import Foundation
import Testing

@testable import keyhaul

@Suite("Ownership of password lists")
struct PasswordListOwnerTests {
  private let tree: BackupTree

  init() throws {
    tree = try BackupTree()
    try tree.sandbox.devices.run("mkdir lists")
    try tree.sandbox.write(Array("* command:touch ran; cat .bp\n".utf8), to: "lists/list")
    try tree.sandbox.devices.run("chmod 755 lists; chmod 600 lists/list")
  }

  /// Checks that Keyhaul refuses a password list and does not run its command.
  ///
  /// - Parameters:
  ///   - preparation: A shell line that changes who can access the list.
  ///   - list: The path of the list.
  ///   - why: A part of the reason in the error.
  private func expectRefusal(after preparation: String, list: String = "lists/list", _ why: String) throws {
    let outcome = try tree.sandbox.devices.run("\(preparation); keyhaul verify shelf --passwords \(list)")
    #expect(outcome.status == 14 && outcome.output.isEmpty, "\(preparation): \(outcome)")
    #expect(unwrapped(outcome.errors).contains(why), "\(preparation): \(outcome)")
    #expect(try !tree.sandbox.names().contains("ran"), "\(preparation)")
  }

  @Test("A password list in a folder that others can write to is refused, and its commands are not run")
  func folder() throws {
    for mode in ["775", "757", "777"] {
      try expectRefusal(after: "chmod \(mode) lists", "other users can write to the folder ")
    }
    let accepted = try tree.sandbox.devices.run("chmod go-w lists; keyhaul verify shelf --passwords lists/list")
    #expect(accepted.status == 0, "\(accepted)")
  }

  @Test("A shell's process substitution is refused as a password list, because it is not a regular file")
  func pipe() throws {
    let outcome = try tree.sandbox.devices.run("bash -c 'keyhaul verify shelf --passwords <(cat lists/list)'")
    #expect(outcome.status == 64 && outcome.errors.contains("is not a regular file"), "\(outcome)")
  }

  @Test("A password list is refused if the folder of a link to it, or of the link's target, is writable for others")
  func links() throws {
    try expectRefusal(
      after: "mkdir private; chmod 755 private; ln -s ../lists/list private/list; chmod 777 lists",
      list: "private/list", "other users can write to the folder ")
    try expectRefusal(
      after: "chmod 755 lists; mv lists/list private/real; ln -s ../private/real lists/list; chmod 777 lists",
      "other users can write to the folder ")
  }

  @Test("A password list of this user is accepted in a folder with the sticky bit")
  func sticky() throws {
    let outcome = try tree.sandbox.devices.run("chmod 1777 lists; keyhaul verify shelf --passwords lists/list")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(try tree.sandbox.names().contains("ran"))
  }

  @Test(
    "A password list is refused if it or its folder belongs to another user",
    .enabled(if: geteuid() == 0, "SKIPPED, NOT SHOWN: files of another user, since only root can make them"))
  func otherUser() throws {
    try expectRefusal(after: "chown 12345 lists/list", " belongs to another user, ")
    try expectRefusal(after: "chmod 1777 lists", " belongs to another user, ")
    try expectRefusal(after: "chmod 755 lists; chown 0 lists/list; chown 12345 lists", " belongs to another user, ")
    let accepted = try tree.sandbox.devices.run("chown 0 lists; keyhaul verify shelf --passwords lists/list")
    #expect(accepted.status == 0, "\(accepted)")
  }
}
