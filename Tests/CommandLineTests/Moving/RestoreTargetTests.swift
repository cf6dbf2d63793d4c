import Foundation
import Testing

@testable import keyhaul

@Suite("Restores to a device and to a Simulator")
struct RestoreTargetTests {
  /// A kind of damage to the backup, or none.
  enum Damage: String, CaseIterable, Sendable {
    case none, noStatus, unfinished, changedKeychain, cutKeychain, noKeychain, cutManifestPlist, cutManifestDatabase,
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
    try apply(damage, in: sandbox)
    return sandbox
  }

  private func apply(_ damage: Damage, in sandbox: PhoneSandbox) throws {
    let keychain = PhoneSandbox.keychainPath
    func edit(_ name: String, keepingSeal: Bool = false, _ change: (inout [UInt8]) throws -> Void) throws {
      var bytes = try sandbox.read("b/\(name)")
      try change(&bytes)
      try sandbox.write(bytes, to: "b/\(name)", keepingSeal: keepingSeal)
    }
    switch damage {
    case .none: break
    case .noStatus: try sandbox.devices.run("rm b/Status.plist b/Keyhaul.seal")
    case .unfinished:
      try edit("Status.plist") { status in
        status.replaceSubrange(
          try #require(status.firstRange(of: Array("finished".utf8))), with: Array("uploaded".utf8))
      }
    case .changedKeychain: try sandbox.flipMiddleBit(of: "b/\(keychain)")
    case .cutKeychain: try edit(keychain) { $0.removeLast($0.count / 2) }
    case .noKeychain: try sandbox.devices.run("rm b/\(keychain) b/Keyhaul.seal")
    case .cutManifestPlist: try edit("Manifest.plist") { $0.removeLast($0.count / 2) }
    case .cutManifestDatabase: try edit("Manifest.db") { $0.removeLast($0.count / 2) }
    case .brokenSeal: try edit("Info.plist", keepingSeal: true) { $0[$0.count / 2] ^= 1 }
    case .changedClassKey: try sandbox.editKeybagField("WPKY", ofClass: 11, in: "b") { $0[0] ^= 1 }
    case .damagedUnusedClassKey: try sandbox.editKeybagField("WPKY", ofClass: 1, in: "b") { $0[0] ^= 1 }
    // Class 13 does not exist.
    case .missingClass7: try sandbox.editKeybagField("CLAS", ofClass: 7, in: "b") { $0[3] = 13 }
    }
  }

  /// Returns the digest of every file of a target, except a device's lock file, which names the last process that used the
  /// device.
  private func digests(of target: String, in sandbox: PhoneSandbox) throws -> String {
    try sandbox.devices.run("find \(target) -type f ! -name lock | sort | xargs sha256sum").output
  }

  @Test(
    "Restores to a device and to a Simulator have the same exit code and id, and change nothing if refused",
    arguments: Damage.allCases)
  func sameResult(_ damage: Damage) throws {
    let sandbox = try sandbox(damage)
    var refusalCount = 0
    for flags in Self.flags {
      let toDevice = try restore(to: "new-phone", files: "devices/new-phone", flags, in: sandbox)
      let toSimulator = try restore(to: "sim.db", files: "sim.db*", flags, in: sandbox)
      if toDevice.status == 13 { refusalCount += 1 }
      #expect(
        toDevice.status == toSimulator.status && toDevice.id == toSimulator.id,
        "\(damage) \(flags): \(toDevice) on the device, \(toSimulator) in the Simulator")
    }
    // Every kind of damage is refused with some flags, except damage to a class key that no item uses.
    #expect((refusalCount > 0) == ![.none, .damagedUnusedClassKey].contains(damage), "\(refusalCount)")
  }

  /// Restores the backup to a target, and checks that a refusal or a dry run changes none of the target's files.
  ///
  /// - Returns: The exit code, and the id and text of the error if there was one.
  private func restore(
    to target: String, files: String, _ flags: String, in sandbox: PhoneSandbox
  ) throws -> (status: Int32, id: String?, errors: String) {
    let digestsBefore = try digests(of: files, in: sandbox)
    let outcome = try sandbox.keyhaul("restore b/ --to \(target) --password-file .bp --json --no-input \(flags)")
    let isRestored = [0, 3].contains(outcome.status) && !flags.contains("--dry-run")
    if !isRestored { #expect(try digests(of: files, in: sandbox) == digestsBefore, "\(flags) \(target): \(outcome)") }
    let lastMessage = outcome.errors.split(separator: "\n").last.map(String.init) ?? ""
    let id = lastMessage.contains("\"exit_error\"") ? try sandbox.object(lastMessage)["id"] as? String : nil
    return (outcome.status, id, outcome.errors)
  }

  @Test("Restore asks the same question about a damaged backup for both targets, and stops after a no")
  func asked() throws {
    let sandbox = try sandbox(.noStatus)
    for target in ["new-phone", "sim.db"] {
      let stopped = try sandbox.keyhaul("restore b/ --to \(target) --password-file .bp --yes", typed: ["n"])
      #expect(stopped.status == 1, "\(stopped)")
      #expect(unwrapped(stopped.errors).contains("stopped: the answer was not yes"), "\(stopped)")
      let terminal = unwrapped(stopped.terminal)
      #expect(terminal.contains("b/ may not be complete: there is no Status.plist"), "\(terminal)")
      #expect(terminal.hasSuffix("Restore the rest to \(target)? [y/N] n"), "\(terminal)")
    }
    let restored = try sandbox.keyhaul("restore b/ --to sim.db --password-file .bp --yes", typed: ["y"])
    #expect(restored.status == 3 && restored.output.contains(" items to sim.db in one step"), "\(restored)")
  }
}
