import Foundation
import Testing

@testable import keyhaul

/// The keychain file is not a keychain, or is listed but missing. Its contents are unknown, so no report may say that it
/// was empty.
@Suite("Unreadable keychains")
struct HiddenKeychainTests {
  private static let keychain = "b/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  private func sandbox(isPresent: Bool) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    if isPresent {
      try sandbox.write([], to: Self.keychain)
    } else {
      try FileManager.default.removeItem(at: sandbox.home.appending(path: Self.keychain))
    }
    return sandbox
  }

  @Test(
    "Commands that need all items do not treat an unreadable keychain as empty", arguments: [true, false],
    [
      "export b -o z.json --reveal --password-file .bp", "export b -o z.csv --format csv --reveal --password-file .bp",
      "diff b b --password-file .bp --exit-code", "plan b --password-file .bp",
      "plan b --to new-phone --password-file .bp",
      "plan b --password-file .bp --format html -o z.html", "restore b --to new-phone --password-file .bp --yes",
      "why b --account anna --password-file .bp",
    ])
  func refused(isPresent: Bool, line: String) throws {
    let sandbox = try sandbox(isPresent: isPresent)
    let before = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == 13 && outcome.output == "", "\(outcome)")
    #expect(!FileManager.default.fileExists(atPath: sandbox.home.appending(path: "z.json").path))
    #expect(!FileManager.default.fileExists(atPath: sandbox.home.appending(path: "z.html").path))
    #expect(try sandbox.contents(of: "new-phone") == before)
  }

  @Test("Inspect shows an unreadable keychain and everything else in the backup", arguments: [true, false])
  func shown(isPresent: Bool) throws {
    let sandbox = try sandbox(isPresent: isPresent)
    let line = "inspect b --password-file .bp"
    let text = try sandbox.keyhaul(line)
    #expect(text.status == 3 && text.output.contains("cannot be read: "), "\(text)")
    #expect(!text.output.contains("items none"), "\(text.output)")
    let list = try sandbox.keyhaul("\(line) --list")
    #expect(list.output.contains("Its keychain cannot be read: "), "\(list)")
    let keychain = try #require(
      try sandbox.object(sandbox.keyhaul("\(line) --json").output)["keychain"] as? [String: Any])
    #expect(keychain["items"] is NSNull)
    let page = try sandbox.keyhaul("\(line) --format html -o -").output
    #expect(page.contains("The keychain in this backup cannot be read, so its contents are not known."))
    #expect(!page.contains("is empty"))
  }
}

@Suite("Rewriting damaged backups")
struct DamageRewritingTests {
  @Test("Rekey sets no password on a backup with a changed keychain, because the new digest would hide it")
  func firstPassword() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    let keychain = "plain/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"
    var bytes = try sandbox.read(keychain)
    bytes[bytes.count - 41] ^= 1
    try sandbox.write(bytes, to: keychain)
    let verified = try sandbox.keyhaul("verify plain")
    #expect(verified.status == 13, "\(verified)")
    let before = try sandbox.files(in: "plain").map { try sandbox.read("plain/\($0)") }
    let outcome = try sandbox.keyhaul("rekey plain --in-place --new-password-file .bp --rounds 1")
    #expect(outcome.status == 13 && outcome.errors.contains("plain is damaged"), "\(outcome)")
    #expect(try sandbox.files(in: "plain").map { try sandbox.read("plain/\($0)") } == before)
  }

  @Test("Copies and exports report a manifest with bytes after its end")
  func trailingBytes() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.write(try sandbox.read("b/Manifest.db") + [1, 2, 3, 4, 5, 6, 7], to: "b/Manifest.db")
    let copy = try sandbox.keyhaul("convert b --decrypted -o clear/ --password-file .bp")
    #expect(
      copy.status == 3
        && copy.errors.contains(
          "is damaged, and a decrypted copy would hide the damage"),
      "\(copy)")
    let files = try sandbox.keyhaul("export b --files out --password-file .bp")
    #expect(files.status == 3 && files.errors.contains("follow its last page"), "\(files)")
  }
}
