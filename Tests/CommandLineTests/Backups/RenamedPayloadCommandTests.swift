import Foundation
import Testing

@testable import keyhaul

@Suite("Backups with renamed payloads")
struct RenamedPayloadCommandTests {
  /// Shell commands that rename the payloads in the working directory. The first uses capital letters; the second moves
  /// the payloads out of their folders.
  private static let renamings = [
    "for d in ??; do mv $d x; for f in $(ls x); do mv x/$f x/$(echo $f | tr a-f A-F); done; "
      + "mv x $(echo $d | tr a-f A-F); done",
    "for d in ??; do mv $d/* .; rmdir $d; done",
  ]

  /// Returns a sandbox with a backup (`original`), and its copies with renamed payloads, `b` and `b-renamed.tar`.
  private func sandbox(_ renaming: String) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("convert b.tar -o original/ -q")
    try sandbox.succeed("convert b.tar -o b/ -q")
    try sandbox.devices.run("cd b; \(renaming); tar cf ../b-renamed.tar *")
    #expect(try sandbox.files(in: "b") != sandbox.files(in: "original"))
    return sandbox
  }

  @Test(
    "Every command reads a folder or tar with renamed payloads completely, with a note", arguments: renamings,
    ["b", "b-renamed.tar"])
  func read(renaming: String, backup: String) throws {
    let sandbox = try sandbox(renaming)
    let password = "--password-file .bp"
    for line in [
      "inspect \(backup) \(password)", "inspect \(backup)", "inspect \(backup) --tree \(password)",
      "verify \(backup) \(password)", "verify \(backup) --quick", "export \(backup) --files out \(password)",
      "export \(backup) --format json --reveal -o items.json \(password)",
      "plan \(backup) --to new-phone \(password)", "diff \(backup) original \(password)", "convert \(backup) -o copy/",
      "convert \(backup) --decrypted -o clear/ \(password)", "restore \(backup) --to new-phone --yes \(password)",
    ] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == 0, "\(line): \(outcome)")
      #expect(unwrapped(outcome.errors).contains("a name that no device uses: "), "\(line): \(outcome)")
    }
    #expect(try sandbox.fileContents(in: "copy") == sandbox.fileContents(in: "original"))
    let renamed = try sandbox.object(sandbox.succeed("inspect \(backup) \(password) --json"))
    let original = try sandbox.object(sandbox.succeed("inspect original \(password) --json"))
    #expect(try #require(renamed["findings"] as? [[String: Any]]).map { $0["id"] as? String } == ["payloads-renamed"])
    #expect(renamed["digest"] as? String == original["digest"] as? String)
  }

  @Test(
    "A backup with renamed payloads stays intact when its password is changed and removed", arguments: renamings,
    ["b", "b-renamed.tar"])
  func changed(renaming: String, backup: String) throws {
    let sandbox = try sandbox(renaming)
    try sandbox.devices.run("echo other > .np; chmod 600 .np")
    try sandbox.succeed("rekey \(backup) --password-file .bp --new-password-file .np --rounds 1 -q")
    #expect(try sandbox.succeed("verify \(backup) --password-file .np").contains("is intact"))
    try sandbox.succeed("rekey \(backup) --password-file .np --no-password --yes -q")
    let verified = try sandbox.keyhaul("verify \(backup)")
    #expect(verified.status == 0 && verified.output.contains("is intact"), "\(verified)")
    #expect(
      !unwrapped(verified.errors).contains("a name that no device uses"),
      "every file has its usual path again: \(verified)")
  }

  @Test("A backup in which a payload exists at two paths is not changed")
  func repeatedPayload() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("convert b.tar -o b/ -q")
    let keychain = PhoneSandbox.keychainPath
    // The same name in capital letters and directly in the backup's folder also names the keychain's payload.
    let secondName = keychain.dropFirst("51/".count).uppercased()
    try sandbox.devices.run("cp b/\(keychain) b/\(secondName)")
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(
      verified.status == 0 && unwrapped(verified.errors).contains("1 file repeats a payload under a second name"),
      "\(verified)")
    let outcome = try sandbox.keyhaul("rekey b --password-file .bp --no-password --yes")
    #expect(outcome.status != 0 && outcome.errors.contains(secondName), "\(outcome)")
    let copied = try sandbox.keyhaul("convert b -o c.tar")
    #expect(copied.errors.contains("warning: 1 file not copied"), "\(copied)")
  }
}
