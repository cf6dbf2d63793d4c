import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Backups without Manifest.plist")
struct MissingManifestCommandTests {
  private static let finding =
    "Manifest.plist: it is missing; the manifest database was read as an unencrypted manifest"

  @Test("Every command names the missing Manifest.plist, and only some commands that read still show the contents")
  func commands() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    let keychain = try sandbox.read("b/\(PhoneSandbox.keychainPath)")
    try sandbox.devices.run("rm b/Manifest.plist b/Keyhaul.seal")
    let cases: [(line: String, status: Int32)] = [
      ("inspect b", 3), ("inspect b --tree", 3), ("inspect b --list", 3), ("inspect b --json", 3),
      ("inspect b --format html -o page.html", 3), ("export b --files out", 3), ("verify b", 13),
      ("verify b --quick", 13),
      ("plan b", 13), ("plan b --to new-phone", 13), ("restore b --to new-phone --yes", 13),
      ("export b --format json -o items.json", 13), ("diff b b", 13), ("seal b", 13), ("convert b -o c.tar", 13),
      ("convert b --decrypted -o clear/", 13), ("rekey b --new-password-file .bp", 13),
      ("item find b", 3), ("item delete b --service x --yes", 13), ("inspect b --password-file .bp", 14),
    ]
    for (line, status) in cases {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      let printed = unwrapped(outcome.errors + outcome.output)
      #expect(printed.contains(Self.finding), "\(line): \(printed)")
      for claim in ["b is intact", "No fault was found", "no password", "No password"] {
        #expect(!printed.contains(claim), "\(line): \(printed)")
      }
    }
    #expect(try sandbox.read("out/KeychainDomain/keychain-backup.plist") == keychain)
    #expect(try !sandbox.names().contains { ["c.tar", "clear", "items.json"].contains($0) })
    let document = try sandbox.devices.document("keyhaul inspect b --json")
    #expect(document["listed"]?["files"]?.integerValue == 1)
    #expect(document["findings"]?.arrayValue?.first?["id"]?.stringValue == "manifest-missing")
  }
}
