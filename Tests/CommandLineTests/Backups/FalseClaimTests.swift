import Foundation
import Testing

@testable import keyhaul

@Suite("Backups with a false claim of encryption")
struct FalseClaimTests {
  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o p/ --no-password -q")
    try sandbox.editPropertyList("p/Manifest.plist", keepingSeal: true) { $0["IsEncrypted"] = true }
    return sandbox
  }

  @Test("Commands that read a backup with a false claim warn about it, and report it as unencrypted")
  func read() throws {
    let sandbox = try sandbox()
    let cases: [(line: String, status: Int32)] = [
      ("inspect p", 3), ("verify p", 13), ("export p -o x.json", 3), ("plan p --to old-phone", 3),
    ]
    for (line, status) in cases {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("warning: p says that it is encrypted, but it is not"))
    }
    #expect(try sandbox.object(sandbox.keyhaul("inspect p --json").output)["encrypted"] as? Bool == false)
  }

  @Test(
    "A backup with a false claim is neither restored nor changed, even if its device is available",
    arguments: [
      "restore p --to old-phone --yes", "rekey p --new-password-file .bp --rounds 1",
      "rekey p --no-password",
    ])
  func refused(line: String) throws {
    let sandbox = try sandbox()
    let deviceBefore = try sandbox.contents(of: "old-phone")
    let backupBefore = try sandbox.fileContents(in: "p")
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == 14)
    #expect(outcome.errors.contains("p says that it is encrypted, but it is not"))
    #expect(unwrapped(outcome.errors).contains("but its manifest is not, and no file has a key"))
    #expect(try sandbox.contents(of: "old-phone") == deviceBefore)
    #expect(try sandbox.fileContents(in: "p") == backupBefore)
  }
}
