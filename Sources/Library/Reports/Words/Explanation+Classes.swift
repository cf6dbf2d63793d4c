public import KeyhaulKit

extension ProtectionClass {
  /// What the class means: when its items can be read, and how far they go.
  public var explanation: Explanation {
    Explanation(
      id: rawValue, headline: "\(phrase): the protection class \(constant)",
      rule: "An item of this class can be read \(readability).", effect: movement, action: advice,
      source: "Apple, \(constant); Apple Platform Security, \"Keychain data protection\"")
  }

  private var movement: String {
    if self == .whenPasscodeSetThisDeviceOnly { return "It is in no backup, and never moves to another device." }
    return isThisDeviceOnly
      ? "It comes back to the source device, with or without a password, and to no other."
      : "It moves to another device with a backup that has a password; without one it comes back only to the source "
        + "device."
  }

  private var advice: String {
    switch self {
    case .whenUnlocked, .afterFirstUnlock: "Give the backup a password."
    case .always: "Give the backup a password. Developers: choose a class that is not deprecated."
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly: Reason.deviceBound.explanation.action
    case .alwaysThisDeviceOnly: Reason.deviceBound.explanation.action
    case .whenPasscodeSetThisDeviceOnly: Reason.passcodeOnly.explanation.action
    }
  }
}

extension Explanation {
  /// The protection classes, by their codes.
  package static let classes = ProtectionClass.allCases.map(\.explanation)
}
