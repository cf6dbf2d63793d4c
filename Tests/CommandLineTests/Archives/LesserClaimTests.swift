import Foundation
import KeyhaulKit
import Testing

@testable import KeychainCrypto
@testable import keyhaul

/// What anybody can write into a copy who has no password for it.
@Suite("A backup that claims less protection than its parts show")
struct LesserClaimTests {
  struct Claim: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Made in a world with `b/`, which has a password and no seal, and `plain/`, which has neither.
    let make: @Sendable (MoveWorld) throws -> Void
    var backup = "b/"
    /// What `plan` and `restore` say, whatever is typed.
    let says: String
    /// What `restore` ends with before it asks for a password; `nil` if it asks.
    let refusal: Int32?
  }

  /// Changes the manifest of a backup as whoever has its files can.
  private static func edit(
    _ backup: String, of world: MoveWorld, _ body: (inout [String: Any]) throws -> Void
  ) throws {
    let path = "\(backup)/Manifest.plist"
    var manifest = try #require(
      try PropertyListSerialization.propertyList(from: Data(world.read(path)), format: nil) as? [String: Any])
    try body(&manifest)
    let bytes = try PropertyListSerialization.data(fromPropertyList: manifest, format: .binary, options: 0)
    try world.write(Array(bytes), to: path)
  }

  private static func keybag(
    _ backup: String, of world: MoveWorld, _ body: (inout Keybag) throws -> Void
  ) throws {
    try edit(backup, of: world) { manifest in
      var keybag = try Keybag(parsing: Array(try #require(manifest["BackupKeyBag"] as? Data)))
      try body(&keybag)
      manifest["BackupKeyBag"] = Data(keybag.serialized())
    }
  }

  private static func wrap(_ numbers: [UInt32], _ wrap: Keybag.WrapFlags, cutTo count: Int = 40) -> Claim.Make {
    { world in
      try keybag("b", of: world) { keybag in
        for number in numbers {
          let index = try #require(keybag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
          keybag.classKeys[index].wrap = wrap
          keybag.classKeys[index].wrappedKey = keybag.classKeys[index].wrappedKey.map { Array($0.prefix(count)) }
        }
      }
    }
  }

  static let claims = [
    Claim(
      testDescription: "IsEncrypted false, over a keybag and a list that are under a password",
      make: { world in try edit("b", of: world) { $0["IsEncrypted"] = false } },
      says:
        "it says that it is not encrypted, but contains the key of an encrypted manifest (ManifestKey) and a keybag "
        + "with "
        + "a password's iteration count (DPIC)", refusal: 14),
    Claim(
      testDescription: "the keybag of a password in a backup without a password",
      make: { world in
        var keybag: Any?
        try edit("b", of: world) { keybag = $0["BackupKeyBag"] }
        try edit("plain", of: world) { $0["BackupKeyBag"] = keybag }
      },
      backup: "plain/",
      says: "it says that it is not encrypted, but contains a keybag with a password's iteration count "
        + "(DPIC)", refusal: 14),
    Claim(
      testDescription: "IsEncrypted true, over unencrypted files",
      make: { world in try edit("plain", of: world) { $0["IsEncrypted"] = true } }, backup: "plain/",
      says: "says that it is encrypted, but it is not", refusal: 14),
    Claim(
      testDescription: "WRAP 2 to 3 of a class that moves", make: wrap([7], [.device, .password]),
      says:
        "the key of class 7 in its keybag is wrapped with a device's hardware key. No device does this in a backup "
        + "with a password, and it makes migratable items appear to stay behind", refusal: 13),
    Claim(
      testDescription: "WRAP 2 to 3 of all classes that move", make: wrap([6, 7, 8], [.device, .password]),
      says: "the keys of classes 6, 7 and 8 in its keybag are wrapped with a device's hardware key", refusal: 13),
    Claim(
      testDescription: "WRAP 3 to 1: a key without the password's layer", make: wrap([9], .device, cutTo: 32),
      says: "the key of class 9 in its keybag is not wrapped with the password, although every device "
        + "does this", refusal: 13
    ),
    Claim(
      testDescription: "WRAP 3 to 2: a key without the hardware's layer", make: wrap([5, 9, 10, 11], .password),
      says: "the keys of classes 5, 9, 10 and 11 in its keybag are not wrapped with a device's hardware key",
      refusal: nil),
    Claim(
      testDescription: "DPIC lowered", make: { world in try world.ask(for: 40, in: "DPIC", of: "b") },
      says: "asks for 40 iterations to derive the key from its password; a device asks for 10,000,000", refusal: nil),
    Claim(
      testDescription: "DPIC by one lower than any device's",
      make: { world in try world.ask(for: 9_999_999, in: "DPIC", of: "b") },
      says: "asks for 9,999,999 iterations to derive the key from its password", refusal: nil),
    Claim(
      testDescription: "DPIC raised, by less than is asked about",
      make: { world in try world.ask(for: 12_000_000, in: "DPIC", of: "b") },
      says: "asks for 12,000,000 iterations to derive the key from its password", refusal: nil),
    Claim(
      testDescription: "DPIC and DPSL taken out",
      make: { world in try keybag("b", of: world) { $0.secondRound = nil } },
      says: "skips the slow iterations to derive the key from its password; a device asks for 10,000,000", refusal: nil),
    Claim(
      testDescription: "ITER lowered, beside rounds as they should be",
      make: { world in
        try world.ask(for: 10_000_000, in: "DPIC", of: "b")
        try world.ask(for: 9_999, in: "ITER", of: "b")
      },
      says: "asks for 9,999 iterations to derive the key from its password; a device asks for 10,000", refusal: nil),
    Claim(
      testDescription: "a seal that anyone can make, on a backup with a password",
      make: { world in
        try world.backUp(to: "sealed/")
        let text = String(decoding: try world.read("sealed/Keyhaul.seal"), as: UTF8.self)
        let lines = text.replacing("hmac-sha256", with: "sha256").split(separator: "\n").dropLast()
        let listed = lines.joined(separator: "\n") + "\n"
        let code = try Digest.sha256(Array(listed.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try world.write(Array((listed + code + "\n").utf8), to: "sealed/Keyhaul.seal", keepingSeal: true)
      },
      backup: "sealed/",
      says: "it is a plain list of digests, which anyone can write, although the backup has a password",
      refusal: 13),
  ]

  private func world(_ claim: Claim) throws -> MoveWorld {
    let world = try MoveWorld(named: "b/ and plain/, unsealed") { world in
      try world.backUp(to: "b/")
      try world.succeed("backup old-phone -o plain/ --no-password -q")
      for name in ["b", "plain"] { try world.unseal(name) }
    }
    try claim.make(world)
    return world
  }

  /// The text on one line, without colors.
  private func words(_ text: some StringProtocol) -> String {
    String(text).replacing(/\u{1B}\[[0-9;]*m/, with: "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  @Test(
    "is said by plan and by restore before anything is asked, and restored by nobody where it is refused",
    arguments: claims)
  func said(claim: Claim) throws {
    let world = try world(claim)
    let before = try world.contents(of: "new-phone")
    for verb in ["plan", "restore"] {
      // An empty line ends the question.
      let shown = try world.devices.runOnTerminal([verb, claim.backup, "--to", "new-phone"], typed: [""])
      let said = shown.terminal.split(separator: "Password of", maxSplits: 1, omittingEmptySubsequences: false)
      // That nothing guards the items, as the keybag shows, comes before what the manifest claims.
      let says = [claim.says] + (claim.refusal == 14 ? ["anyone can decrypt them"] : [])
      #expect(says.contains { words(said[0]).contains($0) }, "\(verb): \(shown)")
      // Also with -q, and where nobody can be asked.
      let quiet = try world.keyhaul("\(verb) \(claim.backup) --to new-phone -q --no-input --yes")
      #expect(says.contains { words(quiet.errors).contains($0) }, "\(verb): \(quiet)")
      guard verb == "restore" else { continue }
      #expect((said.count == 1) == (claim.refusal != nil), "\(shown)")
      #expect(shown.status == claim.refusal ?? 12 && quiet.status == claim.refusal ?? 12, "\(shown) \(quiet)")
      if claim.refusal != nil, claim.backup == "b/" {
        let given = try world.keyhaul("restore b/ --to new-phone --password-file .bp --yes -q")
        #expect(given.status == claim.refusal, "\(given)")
      }
    }
    #expect(try world.contents(of: "new-phone") == before)
  }

  @Test(
    "where no restore takes it, is found by verify and inspect too, and not given another password",
    arguments: claims.filter { $0.refusal != nil && $0.backup == "b/" })
  func found(claim: Claim) throws {
    let world = try world(claim)
    for flags in ["--password-file .bp", "--quick"] {
      let outcome = try world.keyhaul("verify b/ \(flags)")
      #expect([13, 14].contains(outcome.status), "\(flags): \(outcome)")
      #expect(!outcome.output.contains("b/ is intact"), "\(outcome)")
    }
    let document = try world.object(world.keyhaul("inspect b/ --json -q").output)
    let findings = try #require(document["findings"] as? [[String: Any]])
    let details = findings.compactMap { $0["detail"] as? String }
    #expect(details.contains { words($0).contains(claim.says) }, "\(findings)")
    #expect(findings.contains { $0["restorable"] as? Bool == false })
    let rekeyed = try world.keyhaul("rekey b/ --password-file .bp --new-password-file .bp --yes")
    #expect(rekeyed.status == claim.refusal, "\(rekeyed)")
  }

  @Test("is not said of what a device writes, nor of few rounds that were chosen here and sealed")
  func asDevicesWrite() throws {
    let world = try MoveWorld(backedUpTo: "b/")
    #expect(try !world.keyhaul("plan b/ --to new-phone --password-file .bp").errors.contains("warning"))
    try world.ask(for: 10_000_000, in: "DPIC", of: "b")
    let outcome = try world.keyhaul("plan b/ --to new-phone --no-input")
    #expect(outcome.status == 12 && !outcome.errors.contains("warning"), "\(outcome)")
  }
}

extension LesserClaimTests.Claim {
  typealias Make = @Sendable (MoveWorld) throws -> Void
}
