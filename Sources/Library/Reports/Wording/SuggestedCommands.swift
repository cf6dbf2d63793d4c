import KeyhaulKit

/// The calls and flags that pages and explanations show: what a person types next.
///
/// The one place below the program that knows its verbs and flags; Tests/Support/check_sources.py sees to it.
package enum SuggestedCommands {
  /// The flag that keeps what is on a target.
  package static let keepingExisting = "--existing merge"
  /// The flag that restores as iOS does.
  static let replacingExisting = "--existing replace"
  /// The plan of all four restores.
  static let comparing = "plan --compare"
  static let acceptingDamage = "--accept-damage"
  static let exportRevealing = "export --reveal"
  static let deviceKeyFile = "--device-key-file"
  static let verifying = "keyhaul verify"
  /// A check of everything, where only the quick one was asked for.
  static let verifyingAll = "verify without --quick"
  static let why = "why"

  static func explaining(_ word: String) -> String { "keyhaul explain \(word)" }
  static func backup(of device: String, to output: String, withoutPassword: Bool = false) -> String {
    "keyhaul backup \(device) -o \(output)" + (withoutPassword ? " --no-password" : "")
  }
  static func unlock(_ device: String) -> String { "keyhaul device unlock \(device)" }
  static func verify(_ archive: String) -> String { "\(verifying) \(archive)" }
  static func plan(_ source: String, onto target: String, _ policy: String = "", savingTo file: String? = nil) -> String
  {
    "keyhaul plan \(source) --to \(target)" + (policy.isEmpty ? "" : " " + policy) + (file.map { " -o \($0)" } ?? "")
  }
  /// The plan that answers for a new device and for the same one, erased.
  static func futures(of source: String) -> String { "keyhaul plan \(source)" }
  static func restore(_ archive: String, onto target: String, plan: String) -> String {
    "keyhaul restore \(archive) --to \(target) --plan \(plan)"
  }
  static func inspectionPage(of archive: String) -> String {
    "keyhaul inspect \(archive) --format html --password-file PATH -o inspection.html"
  }
  static func codes(of archive: String) -> String { "keyhaul export \(archive) --reveal -o codes.qr.html" }
  static func secrets(of archive: String) -> String { "keyhaul export \(archive) --reveal -o secrets.json" }
  static func diff(_ first: String, _ second: String, deviceKey: String) -> String {
    "keyhaul diff \(first) \(second) \(deviceKeyFile) \(deviceKey)"
  }
}
