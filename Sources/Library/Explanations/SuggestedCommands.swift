import KeyhaulKit

/// The commands and flags that pages and explanations suggest to the user.
///
/// Outside this module, only the program and the results of Reports may name commands and flags.
/// Tests/Support/check_sources.py enforces this.
package enum SuggestedCommands {
  /// The flag that keeps the existing items of a target.
  package static let keepingExisting = "--existing merge"
  /// The flag that replaces the existing items of a target, as iOS does.
  package static let replacingExisting = "--existing replace"
  /// The command that compares all four restores.
  package static let comparing = "plan --compare"
  /// The flag that lets a restore skip damaged items.
  static let acceptingDamage = "--accept-damage"
  /// The command that exports items with their secrets.
  static let exportRevealing = "export --reveal"
  package static let deviceKeyFile = "--device-key-file"
  package static let planning = "keyhaul plan"
  package static let verifying = "keyhaul verify"
  /// The command for a complete check, after a quick one.
  package static let verifyingAll = "verify without --quick"
  /// The command that explains what happens to one item.
  package static let why = "why"

  package static func explaining(_ word: String) -> String { "keyhaul explain \(word)" }

  /// Returns the command that backs up a device.
  package static func backup(of device: String, to output: String, withoutPassword: Bool = false) -> String {
    "keyhaul backup \(device) -o \(output)" + (withoutPassword ? " --no-password" : "")
  }

  package static func unlock(_ device: String) -> String { "keyhaul device unlock \(device)" }

  package static func verify(_ archive: String) -> String { "\(verifying) \(archive)" }

  /// Returns the command that plans a restore to a device.
  ///
  /// - Parameters:
  ///   - source: The backup or device.
  ///   - target: The target device.
  ///   - policy: The flag for existing items, such as `keepingExisting`; empty for the default.
  ///   - file: The file to save the plan to; `nil` to only show it.
  package static func plan(
    _ source: String, onto target: String, policy: String = "", savingTo file: String? = nil
  ) -> String {
    "keyhaul plan \(source) --to \(target)" + (policy.isEmpty ? "" : " " + policy) + (file.map { " -o \($0)" } ?? "")
  }

  /// Returns the command that plans for a new device, and for the source device after an erase.
  package static func outlook(of source: String) -> String { "\(planning) \(source)" }

  package static func restore(_ archive: String, onto target: String, plan: String) -> String {
    "keyhaul restore \(archive) --to \(target) --plan \(plan)"
  }

  package static func inspectionPage(of archive: String) -> String {
    "keyhaul inspect \(archive) --format html --password-file PATH -o inspection.html"
  }

  /// Returns the command that exports one-time passwords as QR codes.
  package static func qrCodes(of archive: String) -> String { "keyhaul export \(archive) --reveal -o codes.qr.html" }

  package static func secrets(of archive: String) -> String { "keyhaul export \(archive) --reveal -o secrets.json" }

  package static func diff(_ first: String, _ second: String, deviceKey: String) -> String {
    "keyhaul diff \(first) \(second) \(deviceKeyFile) \(deviceKey)"
  }
}
