import Foundation
import Testing

@testable import keyhaul

@Suite("Restores to a device and to a Simulator")
struct RestoreTargetTests {
  /// A kind of damage to the backup.
  enum Damage: String, CaseIterable, Sendable {
    case none, noStatus, unfinished, changedKeychain, cutKeychain, noKeychain, cutManifestList, cutManifestDatabase,
      changedClassKey, missingClass7, damagedUnusedClassKey, brokenSeal
  }

  private static let flags = [
    "", "--yes", "--yes --accept-damage", "--yes --accept-damage --existing merge",
    "--yes --accept-damage --existing replace", "--dry-run",
  ]

  private func sandbox(_ damage: Damage) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(named: "device and Simulator") { sandbox in
      try sandbox.backUp(to: "b/")
      try sandbox.succeed("device export new-phone -o sim.db --yes -q")
    }
    // The keychain is the largest payload. Only payloads are in subfolders.
    let keychain = try #require(
      try sandbox.files(in: "b").filter { $0.contains("/") }.max { left, right in
        try sandbox.read("b/\(left)").count < sandbox.read("b/\(right)").count
      })
    func edit(_ name: String, keepingSeal: Bool = false, _ body: (inout [UInt8]) throws -> Void) throws {
      var bytes = try sandbox.read("b/\(name)")
      try body(&bytes)
      try sandbox.write(bytes, to: "b/\(name)", keepingSeal: keepingSeal)
    }
    /// Changes a byte of Manifest.plist. `offset` gets the keybag's fields with this tag and returns the position.
    func editKeybag(
      _ tag: String, at offset: (_ fields: [KeybagFields.Field], _ manifest: [UInt8]) -> Int?
    ) throws {
      try edit("Manifest.plist") { manifest in
        let fields = KeybagFields.all(in: manifest).filter { $0.tag == tag }
        let index = offset(fields, manifest)
        manifest[try #require(index)] ^= 10
      }
    }
    switch damage {
    case .none: break
    case .noStatus: try sandbox.devices.run("rm b/Status.plist b/Keyhaul.seal")
    case .unfinished:
      try edit("Status.plist") { status in
        status.replaceSubrange(
          try #require(status.firstRange(of: Array("finished".utf8))), with: Array("uploaded".utf8))
      }
    case .changedKeychain: try edit(keychain) { $0[$0.count / 2] ^= 1 }
    case .cutKeychain: try edit(keychain) { $0.removeLast($0.count / 2) }
    case .noKeychain: try sandbox.devices.run("rm b/\(keychain) b/Keyhaul.seal")
    case .cutManifestList: try edit("Manifest.plist") { $0.removeLast($0.count / 2) }
    case .cutManifestDatabase: try edit("Manifest.db") { $0.removeLast($0.count / 2) }
    case .changedClassKey: try editKeybag("WPKY") { fields, _ in fields.first?.range.lowerBound }
    case .missingClass7:
      // The number of class 7 becomes 13.
      try editKeybag("CLAS") { fields, manifest in
        fields.first { Array(manifest[$0.range]) == [0, 0, 0, 7] }.map { $0.range.upperBound - 1 }
      }
    case .damagedUnusedClassKey: try editKeybag("WPKY") { fields, _ in fields.last?.range.lowerBound }
    case .brokenSeal: try edit("Info.plist", keepingSeal: true) { $0[$0.count / 2] ^= 1 }
    }
    return sandbox
  }

  /// Returns the digest of every file of a target, except a device's lock, which names its last holder.
  private func bytes(of target: String, in sandbox: PhoneSandbox) throws -> String {
    try sandbox.devices.run("find \(target) -type f ! -name lock | sort | xargs sha256sum").output
  }

  @Test(
    "A restore to a device and one to a Simulator have the same exit code and id, and change nothing if refused",
    arguments: Damage.allCases)
  func same(_ damage: Damage) throws {
    let sandbox = try sandbox(damage)
    let targets = [("new-phone", "devices/new-phone"), ("sim.db", "sim.db*")]
    var refusals = 0
    for flags in Self.flags {
      let results = try targets.map { name, files in
        let before = try bytes(of: files, in: sandbox)
        let outcome = try sandbox.keyhaul("restore b/ --to \(name) --password-file .bp --json --no-input \(flags)")
        let last = outcome.errors.split(separator: "\n").last.map(String.init) ?? ""
        let id = last.contains("\"exit_error\"") ? try sandbox.object(last)["id"] as? String : nil
        let isDone = [0, 3].contains(outcome.status) && !flags.contains("--dry-run")
        #expect(try isDone || bytes(of: files, in: sandbox) == before, "\(damage) \(flags) \(name): \(outcome)")
        return (status: outcome.status, id: id, errors: outcome.errors)
      }
      let (device, simulator) = (results[0], results[1])
      if device.status == 13 { refusals += 1 }
      #expect(
        device.status == simulator.status && device.id == simulator.id,
        "\(damage) \(flags): \(device) on the device, \(simulator) in the Simulator")
    }
    // Every kind of damage is refused with some flags, except damage to a class key that no item uses.
    #expect((refusals > 0) == ![.none, .damagedUnusedClassKey].contains(damage), "\(refusals)")
  }

  @Test("Restore asks the same question about a damaged backup for both targets, and stops after a no")
  func asked() throws {
    let sandbox = try sandbox(.noStatus)
    for target in ["new-phone", "sim.db"] {
      let no = try sandbox.keyhaul("restore b/ --to \(target) --password-file .bp --yes", typed: ["n"])
      #expect(no.status == 1 && unwrapped(no.errors).contains("stopped: the answer was not yes"), "\(no)")
      #expect(unwrapped(no.terminal).contains("b/ may not be complete: there is no Status.plist"), "\(no.terminal)")
      #expect(unwrapped(no.terminal).hasSuffix("Restore the rest to \(target)? [y/N] n"), "\(no.terminal)")
    }
    let yes = try sandbox.keyhaul("restore b/ --to sim.db --password-file .bp --yes", typed: ["y"])
    #expect(yes.status == 3 && yes.output.contains(" items to sim.db in one step"), "\(yes)")
  }
}
