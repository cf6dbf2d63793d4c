import Foundation
import TestSupport
import Testing

@Suite("Seals on the command line")
struct SealCommandTests {
  private static let forgedCodeMessage =
    "its authentication code does not match: it was made for another backup, or has changed since"

  /// Returns a sandbox with an encrypted backup without a seal, as another program leaves it.
  private func sandboxWithoutSeal() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.removeSeal("b")
    return sandbox
  }

  @Test("Seal adds a seal to another program's backup once, and verify compares every file with it")
  func added() throws {
    let sandbox = try sandboxWithoutSeal()
    let filesBefore = try sandbox.files(in: "b")
    let unsealed = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(unsealed.output.contains("-    seal         not checked: there is none\n"), "\(unsealed)")
    let dryRun = try sandbox.keyhaul("seal b --password-file .bp -n")
    #expect(dryRun.output == "Would seal b.\n" && dryRun.status == 0)
    #expect(try sandbox.files(in: "b") == filesBefore)
    let sealed = try sandbox.succeed("seal b --password-file .bp")
    #expect(unwrapped(sealed).hasPrefix("Sealed b: 5 files. The seal detects later changes,"), "\(sealed)")
    #expect(try sandbox.files(in: "b") == (filesBefore + ["Keyhaul.seal"]).sorted())
    let seal = try sandbox.read("b/Keyhaul.seal")
    let repeated = try sandbox.succeed("seal b --password-file .bp")
    #expect(repeated.hasPrefix("b is already sealed. "))
    #expect(try sandbox.read("b/Keyhaul.seal") == seal)
    let verified = try sandbox.succeed("verify b --password-file .bp")
    #expect(
      unwrapped(verified).contains(
        "ok seal 5 files match the seal, which was made with the backup's password A backup"),
      "\(verified)")
    #expect(try sandbox.keyhaul("seal b --password-command 'echo wrong'").status == 12)
  }

  @Test("Restore reports a missing seal once, but not after the backup is sealed")
  func restoreWithoutSeal() throws {
    let sandbox = try sandboxWithoutSeal()
    let note = "b has no seal: an older keychain or manifest of the same backup would go unnoticed."
    let restore = "restore b --to new-phone --password-file .bp -n"
    #expect(unwrapped(try sandbox.keyhaul(restore).errors).ranges(of: note).count == 1)
    try sandbox.succeed("seal b --password-file .bp -q")
    #expect(try !unwrapped(sandbox.keyhaul(restore).errors).contains(note))
  }

  @Test("Seal reports its result as JSON", arguments: ["b", "b.tar.zst", "b.zip"])
  func json(name: String) throws {
    let sandbox = try sandboxWithoutSeal()
    if name != "b" { try sandbox.succeed("convert b -o \(name) -q") }
    let line = "seal \(name) --password-file .bp --json"
    let dryRun = try sandbox.object(sandbox.succeed("\(line) -n"))
    #expect(dryRun["written"] as? Bool == false && dryRun["files"] is NSNull)
    let document = try sandbox.object(sandbox.succeed(line))
    #expect(document["written"] as? Bool == true && document["files"] as? Int == 5)
    #expect(document["keyed"] as? Bool == true)
    let repeated = try sandbox.object(sandbox.succeed(line))
    #expect(repeated["written"] as? Bool == false && repeated["files"] as? Int == 5)
    #expect(repeated["digest"] as? String == document["digest"] as? String)
    #expect(try sandbox.keyhaul("verify \(name) --password-file .bp").status == 0)
  }

  @Test("For a backup without a password, seal says that the seal detects only accidents")
  func withoutPassword() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.removeSeal("plain")
    let sealed = try sandbox.succeed("seal plain")
    #expect(
      unwrapped(sealed).contains(
        "The seal detects later accidental changes, but not attacks, because no password protects it."))
    let verified = unwrapped(try sandbox.keyhaul("verify plain").output)
    #expect(
      verified.contains("match the seal, which was made without a password: it detects accidents, but not attacks"),
      "\(verified)")
    #expect(try sandbox.keyhaul("seal plain --password-file .bp").status == 14)
  }

  /// Returns a sandbox with the backups `all/sealed` and `all/unsealed`, which has no seal.
  private func sandboxWithSealedAndUnsealed() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.devices.run("mkdir all; cp -R b all/sealed; cp -R b all/unsealed; rm all/unsealed/Keyhaul.seal")
    return sandbox
  }

  @Test("Verify --sealed exits with 3 if there is no seal, and with 13 if the backup is damaged too")
  func missing() throws {
    let sandbox = try sandboxWithSealedAndUnsealed()
    let line = "verify all/unsealed --password-file .bp"
    #expect(try sandbox.keyhaul(line).status == 0)
    let missing = try sandbox.keyhaul("\(line) --sealed")
    #expect(missing.status == 3)
    #expect(unwrapped(missing.output).hasSuffix("It has no seal, so a removed seal would go unnoticed."), "\(missing)")
    #expect(try sandbox.keyhaul("verify all/sealed --password-file .bp --sealed").status == 0)
    #expect(try sandbox.keyhaul("verify all/unsealed --quick --sealed").status == 3)
    #expect(try sandbox.object(sandbox.keyhaul("\(line) --json").output)["seal"] as? String == "missing")
    try sandbox.write([0], to: "all/unsealed/Manifest.db", keepingSeal: true)
    #expect(try sandbox.keyhaul("\(line) --sealed").status == 13)
  }

  @Test("Results of several backups show which of them have a seal")
  func severalBackups() throws {
    let sandbox = try sandboxWithSealedAndUnsealed()
    for (flags, sealColumn) in [
      ("--password-file .bp", ["intact", "missing"]), ("--quick", ["unchecked", "missing"]),
    ] {
      let csv = try sandbox.keyhaul("verify all \(flags) --format csv").output.split(separator: "\r\n")
      let rows = csv.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
      func column(_ name: String) throws -> [String] {
        let index = try #require(rows[0].firstIndex(of: name))
        return rows[1...2].map { $0[index] }
      }
      #expect(try column("has_seal") == ["true", "false"])
      #expect(try column("seal") == sealColumn)
    }
    let chosenFields = try sandbox.keyhaul("verify all --password-file .bp --sealed --fields name,code,has_seal")
    #expect(chosenFields.status == 3)
    #expect(
      chosenFields.output.filter { !$0.isWhitespace }
        == #"[{"name":"sealed","code":0,"has_seal":true},{"name":"unsealed","code":3,"has_seal":false}]"#)
    for line in ["inspect all", "plan all"] {
      let results = try sandbox.keyhaul("\(line) --password-file .bp --format ndjson").output
      #expect(results.contains(#""has_seal":true"#) && results.contains(#""has_seal":false"#), "\(line): \(results)")
    }
  }

  @Test("Verify --sealed accepts an older sealed backup of the same phone with the same password")
  func replayed() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "old/")
    try sandbox.devices.run("echo x | keyhaul item add old-phone --service later --account later --secret-file - -q")
    try sandbox.backUp(to: "b/")
    try sandbox.devices.run("rm -r b; mv old b")
    let verified = try sandbox.keyhaul("verify b --password-file .bp --sealed")
    #expect(verified.status == 0 && unwrapped(verified.output).hasSuffix("b is intact."), "\(verified)")
  }

  @Test("A keychain from an older backup with the same password is detected and not restored")
  func olderKeychain() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.write(Array("battery staple".utf8), to: ".np")
    try sandbox.succeed("backup old-phone -o old/ --password-file .bp --rounds 1 -q")
    for name in try sandbox.files(in: "old") where name != "Keyhaul.seal" && name != "Info.plist" {
      try sandbox.write(try sandbox.read("old/\(name)"), to: "b/\(name)", keepingSeal: true)
    }
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(verified.status == 13)
    for name in ["Manifest.plist", "Manifest.db", "Status.plist", PhoneSandbox.keychainPath] {
      #expect(
        unwrapped(verified.output).contains("\(name): it has changed since the backup was sealed"),
        "\(name): \(verified)")
    }
    #expect(!verified.output.contains("Info.plist: it has changed"))
    for line in [
      "restore b --to new-phone --yes", "restore b --to new-phone -n", "rekey b --new-password-file .np", "seal b",
    ] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(
        outcome.status == 13 && unwrapped(outcome.errors).contains("it has changed since the backup was sealed"),
        "\(line): \(outcome)")
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    // Commands that only read the backup work, but warn even with -q, and exit with 3.
    for line in [
      "plan b --to new-phone -q", "export b -o - -q --reveal --format csv", "inspect b --list -q",
      "inspect b -q",
      "export b --files out -q", "why b --item 0 -q", "convert b -o copy.tar -q", "item find b -q",
      "diff b b -q",
    ] {
      let password = line.hasPrefix("convert") ? "" : " --password-file .bp"
      let outcome = try sandbox.keyhaul(line + password)
      #expect(unwrapped(outcome.errors).contains("warning: b has changed since it was sealed"), "\(line): \(outcome)")
      #expect(outcome.status == 3, "\(line): \(outcome)")
    }
  }

  @Test("Every command that decrypts the backup detects a seal made without the password")
  func forged() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try forgeStatus(in: sandbox)
    // Without the password nothing looks wrong, and the output states what was not checked.
    let quick = try sandbox.keyhaul("verify b --quick")
    #expect(unwrapped(quick.output).contains("the password is needed to check whether the seal is genuine"), "\(quick)")
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(
      verified.status == 13 && unwrapped(verified.output).contains(Self.forgedCodeMessage), "\(verified)")
    // The list of faults is complete, so it does not end with "... 2 more".
    #expect(!verified.output.contains("more"), "\(verified)")
    // Every command that reads with the password detects the seal, even a dry run of a decrypted copy.
    for line in [
      "export b --files out -q", "export b --domain KeychainDomain --path keychain-backup.plist -o one.plist -q",
      "convert b --decrypted -o clear/ --dry-run -q", "convert b --decrypted -o clear/ -q", "inspect b -q",
    ] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(
        outcome.status == 3 && unwrapped(outcome.errors).contains(Self.forgedCodeMessage), "\(line): \(outcome)")
    }
    // A table of backups does not call the backup complete either.
    let listed = try sandbox.keyhaul("verify b b --quick --format csv")
    #expect(listed.output.contains("unproven") && !listed.output.contains(",whole"), "\(listed)")
    let restored = try sandbox.keyhaul("restore b --to new-phone --yes --password-file .bp")
    #expect(
      restored.status == 13 && unwrapped(restored.errors).contains(Self.forgedCodeMessage), "\(restored)")
  }

  /// Changes `Status.plist` and its digest in the seal, without the password that the seal's code needs.
  private func forgeStatus(in sandbox: PhoneSandbox) throws {
    var status = try sandbox.read("b/Status.plist")
    let stateIndex = try #require(status.indices.last { status[$0...].starts(with: Array("finished".utf8)) })
    // Changes a byte before the state. The file stays readable, so without the password nothing looks wrong.
    status[stateIndex - 20] ^= 1
    try sandbox.write(status, to: "b/Status.plist", keepingSeal: true)
    let seal = String(decoding: try sandbox.read("b/Keyhaul.seal"), as: UTF8.self)
    let digest = try sandbox.devices.run("sha256sum b/Status.plist | cut -d ' ' -f 1").output.prefix(64)
    // The line of a file is its digest, size and path.
    let forgedLine = "\(digest) \(status.count) Status.plist"
    let lines = seal.split(separator: "\n").map { $0.hasSuffix(" Status.plist") ? forgedLine : String($0) }
    try sandbox.write(Array((lines.joined(separator: "\n") + "\n").utf8), to: "b/Keyhaul.seal", keepingSeal: true)
  }

  @Test("A changed seal is reported first, then each file that does not match it; each is reported once")
  func changedSeal() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var seal = try sandbox.read("b/Keyhaul.seal")
    let lines = seal.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // Changes a digit of the digest of Manifest.db.
    let line = try #require(lines.first { $0.suffix(12).elementsEqual(" Manifest.db".utf8) })
    seal[line.startIndex] = seal[line.startIndex] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
    try sandbox.write(seal, to: "b/Keyhaul.seal", keepingSeal: true)
    let verified = try sandbox.keyhaul("verify b --password-file .bp")
    #expect(verified.status == 13)
    let text = unwrapped(verified.output)
    let sealRange = try #require(text.range(of: "Keyhaul.seal: "), "\(verified)")
    let manifestRange = try #require(
      text.range(of: "Manifest.db: it has changed since the backup was sealed"), "\(verified)")
    #expect(sealRange.lowerBound < manifestRange.lowerBound && !text.contains("more"), "\(verified)")
  }

  @Test("Every changed bit in a sealed backup is found (24 bits per file, 3 in a quick run)")
  func sealedBits() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var random = SeededRandom(seed: 47)
    for file in try sandbox.files(in: "b") {
      let count = Cases.count(24, quick: 3)
      try sandbox.flipBits(count, of: "b/\(file)", using: &random, keepingSeal: true) { offset in
        let outcome = try sandbox.keyhaul("verify b/ --password-file .bp")
        #expect([12, 13, 14].contains(outcome.status), "\(file), byte \(offset): \(outcome)")
      }
    }
  }

  @Test("If Manifest.plist is cut off, inspect does not say that a seal made with a password contradicts it")
  func unreadableManifest() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.write(Array(sandbox.read("b/Manifest.plist").prefix(900)), to: "b/Manifest.plist", keepingSeal: true)
    let inspected = try sandbox.keyhaul("inspect b")
    #expect(
      inspected.status == 3 && inspected.output.contains("Manifest.plist: it has changed since the backup was sealed"),
      "\(inspected)")
    #expect(!unwrapped(inspected.output + inspected.errors).contains("says that it has none"), "\(inspected)")
  }
}
