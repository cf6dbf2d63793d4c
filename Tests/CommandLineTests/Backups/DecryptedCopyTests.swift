import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Decrypted copies of backups")
struct DecryptedCopyTests {
  private func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "b.tar") }

  @Test("SQLite and property list readers can open the decrypted copy", arguments: ["clear/", "clear.tar"])
  func copied(to target: String) throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul("convert b.tar --decrypted -o \(target) --password-file .bp")
    #expect(outcome.status == 0 && outcome.output.hasPrefix("Copied b.tar unencrypted to \(target) ("))
    #expect(
      outcome.errors.hasPrefix(
        "Anyone can read the copy's files. Its keychain items are still encrypted with the password.\n"))
    let files = try target == "clear/" ? sandbox.files(in: "clear").map { "clear/\($0)" } : [target]
    let byteCount = try files.reduce(0) { try $0 + sandbox.read($1).count }
    #expect(outcome.output.contains(", \(HumanReadable.bytes(Int64(byteCount))))."), "\(byteCount): \(outcome.output)")
    try sandbox.devices.run("mkdir -p clear && (tar -xf clear.tar -C clear --strip-components=1 2> /dev/null; true)")
    #expect(try sandbox.read("clear/Manifest.db").prefix(15) == Array("SQLite format 3".utf8)[...])
    let manifest = try PropertyListSerialization.propertyList(
      from: Data(sandbox.read("clear/Manifest.plist")), format: nil)
    let root = try #require(manifest as? [String: Any])
    #expect(root["IsEncrypted"] as? Bool == false && root["ManifestKey"] == nil && root["BackupKeyBag"] != nil)
    #expect(try sandbox.read("clear/\(PhoneSandbox.keychainPath)").prefix(8) == Array("bplist00".utf8)[...])
  }

  @Test("In a decrypted copy, the items stay encrypted with the password, but exporting files needs no password")
  func items() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("convert b.tar --decrypted -o clear/ --password-file .bp -q")
    let inspected = try sandbox.keyhaul("inspect clear --home elsewhere")
    #expect(inspected.status == 0)
    #expect(inspected.output.contains("unencrypted files, password-protected items"))
    #expect(
      inspected.errors.contains(
        "clear is a decrypted copy: anyone can read its files, but its items need the password."))
    func exportedItems(of name: String) throws -> String {
      try sandbox.succeed("export \(name) -o - --reveal --format json -q --password-file .bp --home elsewhere")
        .replacing("\"\(name)\"", with: "")
    }
    #expect(try exportedItems(of: "clear") == exportedItems(of: "b.tar"))
    try sandbox.write(Array("wrong\n".utf8), to: ".wrong")
    #expect(try sandbox.keyhaul("export clear -o - --reveal --password-file .wrong").status == 12)
    // An export of files needs no password.
    try sandbox.succeed("export clear --files out -q")
    try sandbox.succeed("export b.tar --files same --password-file .bp -q")
    #expect(try sandbox.devices.run("diff -r -x 'keyhaul-files*' out same").status == 0)
  }

  @Test("Without the password, verify checks everything except the items of a decrypted copy")
  func verifiedWithoutPassword() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("convert b.tar --decrypted -o clear/ --password-file .bp -q")
    let outcome = try sandbox.keyhaul("verify clear --home elsewhere --no-input")
    #expect(outcome.status == 0, "\(outcome)")
    let text = unwrapped(outcome.output)
    #expect(text.contains("ok database integrity check"))
    #expect(text.contains("ok keychain 18 items in ") && text.contains("none of them checked"))
    #expect(text.contains("- items not checked: needs the password"))
    #expect(
      text.hasSuffix(
        "as far as Keyhaul can check without the password; verify checks the rest with the backup's password."))
    try sandbox.flipMiddleBit(of: "clear/\(PhoneSandbox.keychainPath)")
    #expect(try sandbox.keyhaul("verify clear --home elsewhere --no-input").status == 13)
  }

  @Test("With --reveal, the items are written in plain text next to the copy")
  func revealed() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("convert b.tar --decrypted --reveal -o clear/ --password-file .bp -q --home elsewhere")
    try sandbox.succeed("export b.tar --reveal -o items.json --password-file .bp -q --home elsewhere")
    #expect(try sandbox.read("clear.keychain.json") == sandbox.read("items.json"))
    #expect(try sandbox.devices.permissions(of: "clear.keychain.json") == 0o600)
    #expect(try sandbox.files(in: "clear").allSatisfy { !$0.hasSuffix(".json") })
  }

  @Test("--decrypted is rejected if it has no effect, and commands that change a backup reject the copy")
  func refused() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("convert b.tar --decrypted -o clear/ --password-file .bp -q")
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    let cases: [(line: String, status: Int32, message: String)] = [
      ("convert plain --decrypted -o x/", 64, "plain is not encrypted"),
      ("convert clear --decrypted -o x/", 64, "clear is not encrypted"),
      ("convert b.tar -o x/ --reveal", 64, "--reveal applies only to a decrypted copy"),
      ("convert b.tar -o x/ --password-file .bp", 64, "a password applies only to a decrypted copy"),
      (
        "restore clear --to new-phone --password-file .bp --yes", 14,
        "clear is a decrypted copy, which can only be read"
      ),
      (
        "rekey clear --password-file .bp --new-password-file .bp", 14,
        "clear is a decrypted copy, which can only be read"
      ),
    ]
    for (line, status, message) in cases {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome.status)")
      #expect(outcome.errors.contains("error: \(message)"), "\(line): \(outcome.errors)")
    }
    // A conversion that fails leaves no copy.
    let failure = try sandbox.keyhaul("convert b.tar --decrypted -o x/ --password-file .none")
    #expect(failure.status != 0 && failure.errors.contains("error: "), "\(failure)")
    #expect(try !sandbox.names().contains("x"))
  }

  @Test("A decrypted copy is planned like its original, and every report says that it cannot be restored")
  func planned() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("convert b.tar --decrypted -o clear/ --password-file .bp -q")
    let plan = try sandbox.keyhaul("plan clear --to new-phone --password-file .bp -o p")
    #expect(plan.status == 0 && plan.errors.contains("warning: restore refuses clear in its current state\n"))
    #expect(
      unwrapped(plan.output).contains(
        "it cannot be restored as it is (Manifest.plist: it says that this is a decrypted copy"))
    #expect(plan.output.hasSuffix("Saved to p. This backup cannot be restored as it is.\n"), "\(plan.output)")
    let savedPlan = try sandbox.object(String(decoding: sandbox.read("p"), as: UTF8.self))
    let findings = try #require(savedPlan["findings"] as? [[String: Any]])
    #expect(findings.count == 1 && findings.first?["id"] as? String == "decrypted-copy")
    #expect(findings.first?["restorable"] as? Bool == false && findings.first?["lost"] as? Bool == false)
    let page = try sandbox.succeed("plan clear --to new-phone --password-file .bp --format html -q")
    #expect(page.contains("Plan with the backup that this decrypted copy was made from: the copy cannot be restored."))
    #expect(!page.contains("keyhaul restore"))
    let overview = try sandbox.succeed("inspect clear -q")
    #expect(unwrapped(overview).contains("A decrypted copy cannot be restored; use the backup that it was made from."))
    let inspection = try sandbox.succeed("inspect clear --format html -q")
    #expect(
      inspection.contains(
        "This decrypted copy cannot be restored: use the backup that it was made from"))
    #expect(!inspection.contains("without a password"))
    // The plan without a target, the comparison and the report by app also say so, in text and JSON.
    let obstacle = "cannot be restored as it is (Manifest.plist: it says that this is a decrypted copy"
    for view in ["", "--to new-phone --compare", "--to new-phone --by-app"] {
      let line = "plan clear \(view) --password-file .bp -q"
      #expect(unwrapped(try sandbox.succeed(line)).contains(obstacle), "\(view)")
      let document = try sandbox.object(sandbox.succeed("\(line) --json"))
      #expect((document["findings"] as? [[String: Any]])?.first?["restorable"] as? Bool == false, "\(view)")
    }
    let outlook = try sandbox.succeed("plan clear --password-file .bp --format html -q --redact")
    #expect(
      outlook.contains("; such a backup cannot be restored.")
        && outlook.contains("A decrypted copy cannot be restored: plan with the backup that it was made from.")
        && outlook.contains("Plan with the backup that this decrypted copy was made from"))
    #expect(!outlook.contains("Check that the backup is intact."))
    // The copy is complete and not damaged.
    #expect(try sandbox.keyhaul("verify clear --password-file .bp -q").status == 0)
  }
}
