import Foundation
import Testing

@testable import keyhaul

@Suite("Rewriting damaged backups")
struct DamageRewritingTests {
  @Test("Rekey sets no password on a backup with a changed keychain, because the new digest would hide the change")
  func firstPassword() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    let keychain = "plain/\(PhoneSandbox.keychainPath)"
    var bytes = try sandbox.read(keychain)
    // A byte of the offset table, which precedes the last 32 bytes of a binary property list.
    bytes[bytes.count - 41] ^= 1
    try sandbox.write(bytes, to: keychain)
    let verified = try sandbox.keyhaul("verify plain")
    #expect(verified.status == 13, "\(verified)")
    let before = try sandbox.fileContents(in: "plain")
    let outcome = try sandbox.keyhaul("rekey plain --in-place --new-password-file .bp --rounds 1")
    #expect(outcome.status == 13 && outcome.errors.contains("plain is damaged"), "\(outcome)")
    #expect(try sandbox.fileContents(in: "plain") == before)
  }

  @Test("Copies and exports report a manifest with bytes after its end")
  func trailingBytes() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.write(try sandbox.read("b/Manifest.db") + [1, 2, 3, 4, 5, 6, 7], to: "b/Manifest.db")
    let copy = try sandbox.keyhaul("convert b --decrypted -o clear/ --password-file .bp")
    #expect(
      copy.status == 3 && copy.errors.contains("is damaged, and a decrypted copy would hide the damage"), "\(copy)")
    let files = try sandbox.keyhaul("export b --files out --password-file .bp")
    #expect(files.status == 3 && files.errors.contains("follow its last page"), "\(files)")
  }
}
