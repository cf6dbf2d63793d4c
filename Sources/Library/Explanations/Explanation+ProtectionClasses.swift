public import KeyhaulKit

extension ProtectionClass {
  /// The explanation of the class: when its items can be read, and which devices they can be restored to.
  public var explanation: Explanation {
    Explanation(
      id: rawValue, headline: "\(phrase): the protection class \(constant)",
      rule: "An item of this class can be read \(readability).", effect: movement, action: advice,
      source: "Apple, \(constant); Apple Platform Security, \"Keychain data protection\"")
  }

  private var movement: String {
    if self == .whenPasscodeSetThisDeviceOnly { return "It is never in a backup, and never moves to another device." }
    return isThisDeviceOnly
      ? "It can be restored only to the source device, with or without a password."
      : "If the backup has a password, it moves to another device. Otherwise it can be restored only to the source "
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
  /// The pages of the protection classes.
  package static let classes = ProtectionClass.allCases.map(\.explanation)
}
