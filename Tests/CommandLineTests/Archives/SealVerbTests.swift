import Foundation
import TestSupport
import Testing

@Suite("keyhaul seal, and what a seal shows on the command line")
struct SealVerbTests {
  /// A backup with a password as another program leaves it.
  private func foreign() throws -> MoveWorld {
    let world = try MoveWorld(backedUpTo: "b/")
    try world.unseal("b")
    return world
  }

  @Test("adds a seal to another program's backup, once, and verify holds every file against it")
  func added() throws {
    let world = try foreign()
    let before = try world.files(in: "b")
    let unsealed = try world.keyhaul("verify b --password-file .bp")
    #expect(unsealed.output.contains("-    seal         not checked: there is none\n"), "\(unsealed)")
    let dry = try world.keyhaul("seal b --password-file .bp -n")
    #expect(dry.output == "Would seal b.\n" && dry.status == 0)
    #expect(try world.files(in: "b") == before)
    let sealed = try world.succeed("seal b --password-file .bp")
    #expect(flat(sealed).hasPrefix("Sealed b: 5 files. The seal detects later changes,"), "\(sealed)")
    #expect(try world.files(in: "b") == (before + ["Keyhaul.seal"]).sorted())
    let seal = try world.read("b/Keyhaul.seal")
    let again = try world.succeed("seal b --password-file .bp")
    #expect(again.hasPrefix("b is already sealed. "))
    #expect(try world.read("b/Keyhaul.seal") == seal)
    let verified = try world.succeed("verify b --password-file .bp")
    #expect(
      flat(verified).contains("ok seal 5 files match the seal, which was made with the backup's password A backup"),
      "\(verified)")
    #expect(try world.keyhaul("seal b --password-command 'echo wrong'").status == 12)
  }

  @Test("is missed once before a restore, which a backup without a seal cannot show everything to")
  func missed() throws {
    let world = try foreign()
    let note = "b has no seal: an older keychain or manifest of the same backup would go unnoticed."
    let restore = "restore b --to new-phone --password-file .bp -n"
    #expect(flat(try world.keyhaul(restore).errors).ranges(of: note).count == 1)
    try world.succeed("seal b --password-file .bp -q")
    #expect(flat(try world.keyhaul(restore).errors).contains("is not sealed") == false)
  }

  @Test("tells what it did as JSON", arguments: ["b", "b.tar.zst", "b.zip"])
  func json(name: String) throws {
    let world = try foreign()
    if name != "b" { try world.succeed("convert b -o \(name) -q") }
    let dry = try world.object(try world.succeed("seal \(name) --password-file .bp --json -n"))
    #expect(dry["written"] as? Bool == false && dry["files"] is NSNull)
    let document = try world.object(try world.succeed("seal \(name) --password-file .bp --json"))
    #expect(document["written"] as? Bool == true && document["files"] as? Int == 5)
    #expect(document["keyed"] as? Bool == true)
    let again = try world.object(try world.succeed("seal \(name) --password-file .bp --json"))
    #expect(again["written"] as? Bool == false && again["files"] as? Int == 5)
    #expect(again["digest"] as? String == document["digest"] as? String)
    #expect(try world.keyhaul("verify \(name) --password-file .bp").status == 0)
  }

  @Test("of a backup without a password says that it shows accidents alone")
  func withoutPassword() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    try world.unseal("plain")
    let sealed = try world.succeed("seal plain")
    #expect(
      flat(sealed).contains(
        "The seal detects later accidental changes, but not attacks, because no password protects it."))
    let verified = flat(try world.keyhaul("verify plain").output)
    #expect(
      verified.contains(
        "match the seal, which was made without a password: it detects accidents, but not "
          + "attacks"), "\(verified)")
    #expect(try world.keyhaul("seal plain --password-file .bp").status == 14)
  }

  @Test("Verify --sealed exits with 3 if there is no seal, and results of many backups show the missing seal")
  func missing() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    try world.devices.run("mkdir all; cp -R b all/sealed; cp -R b all/without; rm all/without/Keyhaul.seal")
    let line = "verify all/without --password-file .bp"
    #expect(try world.keyhaul(line).status == 0)
    let missing = try world.keyhaul("\(line) --sealed")
    #expect(missing.status == 3)
    #expect(flat(missing.output).hasSuffix("It has no seal, so a removed seal would go unnoticed."), "\(missing)")
    #expect(try world.keyhaul("verify all/sealed --password-file .bp --sealed").status == 0)
    #expect(try world.keyhaul("verify all/without --quick --sealed").status == 3)
    #expect(try world.object(world.keyhaul("\(line) --json").output)["seal"] as? String == "missing")
    for (flags, seals) in [("--password-file .bp", ["intact", "missing"]), ("--quick", ["unchecked", "missing"])] {
      let csv = try world.keyhaul("verify all \(flags) --format csv").output.split(separator: "\r\n")
      let rows = csv.map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
      let columns = ["has_seal", "seal"].compactMap { rows[0].firstIndex(of: $0) }
      #expect(columns.map { rows[1][$0] } == ["true", seals[0]] && columns.map { rows[2][$0] } == ["false", seals[1]])
    }
    let many = try world.keyhaul("verify all --password-file .bp --sealed --fields name,code,has_seal")
    #expect(many.status == 3)
    #expect(
      many.output.filter { !$0.isWhitespace }
        == #"[{"name":"sealed","code":0,"has_seal":true},{"name":"without","code":3,"has_seal":false}]"#)
    for line in ["inspect all", "plan all"] {
      let rows = try world.keyhaul("\(line) --password-file .bp --format ndjson").output
      #expect(rows.contains(#""has_seal":true"#) && rows.contains(#""has_seal":false"#), "\(line): \(rows)")
    }
    // Damage takes precedence over a missing seal.
    try world.write([0], to: "all/without/Manifest.db", keepingSeal: true)
    #expect(try world.keyhaul("\(line) --sealed").status == 13)
  }

  @Test("Verify --sealed accepts an older sealed backup of the same phone with the same password")
  func replayed() throws {
    let world = try MoveWorld(backedUpTo: "old/")
    try world.devices.run("echo x | keyhaul item add old-phone --service later --account later --secret-file - -q")
    try world.backUp(to: "b/")
    try world.devices.run("rm -r b; mv old b")
    let verified = try world.keyhaul("verify b --password-file .bp --sealed")
    #expect(verified.status == 0 && flat(verified.output).hasSuffix("b is intact."), "\(verified)")
  }

  @Test("a keychain of an older backup of the same phone and password is seen, and restores nothing")
  func olderKeychain() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    try world.write(Array("later".utf8), to: ".later")
    try world.succeed("backup old-phone -o old/ --password-file .bp --rounds 1 -q")
    for name in try world.files(in: "old") where name != "Keyhaul.seal" && name != "Info.plist" {
      try world.write(try world.read("old/\(name)"), to: "b/\(name)", keepingSeal: true)
    }
    let before = try world.contents(of: "new-phone")
    let verified = try world.keyhaul("verify b --password-file .bp")
    #expect(verified.status == 13)
    for name in ["Manifest.plist", "Manifest.db", "Status.plist", "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"] {
      #expect(
        flat(verified.output).contains("\(name): it has changed since the backup was sealed"), "\(name): \(verified)")
    }
    #expect(!verified.output.contains("Info.plist: it has changed"))
    for line in [
      "restore b --to new-phone --yes", "restore b --to new-phone -n", "rekey b --new-password-file .later",
      "seal b",
    ] {
      let outcome = try world.keyhaul("\(line) --password-file .bp")
      #expect(
        outcome.status == 13
          && flat(outcome.errors).contains(
            "it has changed since the backup was sealed"),
        "\(line): \(outcome)")
    }
    #expect(try world.contents(of: "new-phone") == before)
    // A look at it is given, with a word of it that no flag silences, and a code that says that not all is well.
    for line in [
      "plan b --to new-phone -q", "export b -o - -q --reveal --format csv", "inspect b --list -q",
      "inspect b -q",
      "export b --files out -q", "why b --item 0 -q", "convert b -o copy.tar -q", "item find b -q",
      "diff b b -q",
    ] {
      let password = line.hasPrefix("convert") ? "" : " --password-file .bp"
      let outcome = try world.keyhaul(line + password)
      #expect(flat(outcome.errors).contains("warning: b has changed since it was sealed"), "\(line): \(outcome)")
      #expect(outcome.status == 3, "\(line): \(outcome)")
    }
  }

  @Test("a seal that nobody with the password made is seen by whoever opens the backup")
  func forged() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    var status = try world.read("b/Status.plist")
    let place = try #require(status.indices.last { status[$0...].starts(with: Array("finished".utf8)) })
    status[place - 20] ^= 1
    try world.write(status, to: "b/Status.plist", keepingSeal: true)
    let lines = String(decoding: try world.read("b/Keyhaul.seal"), as: UTF8.self).split(separator: "\n")
    let sum = try world.devices.run("sha256sum b/Status.plist | cut -d ' ' -f 1").output.prefix(64)
    let forged = lines.map { $0.hasSuffix(" Status.plist") ? "\(sum) \(status.count) Status.plist" : String($0) }
    try world.write(Array((forged.joined(separator: "\n") + "\n").utf8), to: "b/Keyhaul.seal", keepingSeal: true)
    // Whoever has no password sees nothing wrong, and is told what was not looked at.
    let quick = try world.keyhaul("verify b --quick")
    #expect(flat(quick.output).contains("the password is needed to check whether the seal is genuine"), "\(quick)")
    let verified = try world.keyhaul("verify b --password-file .bp")
    #expect(
      verified.status == 13
        && flat(verified.output).contains(
          "its authentication code does not match: it was "
            + "made for another backup, or has changed since"),
      "\(verified)")
    #expect(!verified.output.contains("more"), "\(verified)")
    // Whatever reads with the password finds it out, and so does a look at what a decrypted copy would be.
    for line in [
      "export b --files out -q", "export b --domain KeychainDomain --path keychain-backup.plist -o one.plist -q",
      "convert b --decrypted -o clear/ --dry-run -q", "convert b --decrypted -o clear/ -q", "inspect b -q",
    ] {
      let outcome = try world.keyhaul("\(line) --password-file .bp")
      #expect(
        outcome.status == 3
          && flat(outcome.errors).contains(
            "its authentication code does not match: it was "
              + "made for another backup, or has changed since"),
        "\(line): \(outcome)")
    }
    // Nor does a list of many call it whole: there the verdict is all that is read.
    let listed = try world.keyhaul("verify b b --quick --format csv")
    #expect(listed.output.contains("unproven") && !listed.output.contains(",whole"), "\(listed)")
    let restored = try world.keyhaul("restore b --to new-phone --yes --password-file .bp")
    #expect(
      restored.status == 13
        && flat(restored.errors).contains(
          "its authentication code does not match: it was "
            + "made for another backup, or has changed since"),
      "\(restored)")
  }

  @Test("a seal that was changed is named before the files that it lists, and each file once")
  func changedSeal() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    var seal = try world.read("b/Keyhaul.seal")
    let lines = seal.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // A digit of the digest of Manifest.db.
    let line = try #require(lines.first { $0.suffix(12).elementsEqual(" Manifest.db".utf8) })
    seal[line.startIndex] = seal[line.startIndex] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
    try world.write(seal, to: "b/Keyhaul.seal", keepingSeal: true)
    let verified = try world.keyhaul("verify b --password-file .bp")
    #expect(verified.status == 13)
    let text = flat(verified.output)
    let own = try #require(text.range(of: "Keyhaul.seal: "), "\(verified)")
    let other = try #require(text.range(of: "Manifest.db: it has changed since the backup was sealed"), "\(verified)")
    #expect(own.lowerBound < other.lowerBound && !text.contains("more"), "\(verified)")
  }

  @Test("any bit that is changed in any file of a sealed backup is found: 24 a file, or 3 in a quick run")
  func sealedBits() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    var numbers = SeededRandom(seed: 47)
    for file in try world.files(in: "b") {
      let whole = try world.read("b/\(file)")
      for _ in 0..<Cases.count(24, quick: 3) {
        var bytes = whole
        let offset = Int.random(in: whole.indices, using: &numbers)
        bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &numbers)
        try world.write(bytes, to: "b/\(file)", keepingSeal: true)
        let outcome = try world.keyhaul("verify b/ --password-file .bp")
        #expect([12, 13, 14].contains(outcome.status), "\(file), byte \(offset): \(outcome)")
      }
      try world.write(whole, to: "b/\(file)", keepingSeal: true)
    }
  }

  @Test("that a password made is not held against a manifest that says nothing")
  func unreadableManifest() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    try world.write(Array(world.read("b/Manifest.plist").prefix(900)), to: "b/Manifest.plist", keepingSeal: true)
    let seen = try world.keyhaul("inspect b")
    #expect(
      seen.status == 3 && seen.output.contains("Manifest.plist: it has changed since the backup was sealed"), "\(seen)")
    #expect(!flat(seen.output + seen.errors).contains("says that it has none"), "\(seen)")
  }
}
