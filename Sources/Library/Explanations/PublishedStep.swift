import KeyhaulKit

/// A published step for moving to a new phone, or a fact about such a step, with its source.
///
/// Checklists, `explain` and docs/Rules.md all take their sentences from these steps.
package enum PublishedStep: String, CaseIterable {
  case mac
  case windows
  case linux
  case earlierBackups = "earlier backups"
  case forgottenPassword = "forgotten password"
  case resetKeeps = "what the reset keeps"
  case resetCosts = "what the reset costs"
  case quickStart = "Quick Start"
  case iCloudKeychain = "iCloud Keychain"
  case wallet = "Wallet"

  /// The step, in one or more sentences.
  package var text: String {
    switch self {
    case .mac:
      "Mac: select the iPhone in Finder (iTunes up to macOS Mojave) and turn on \"Encrypt local backup\"."
    case .windows: "Windows: turn on \"Encrypt local backup\" in Apple Devices, or in iTunes."
    case .linux: "Linux: run \"idevicebackup2 -i encryption on\", then \"idevicebackup2 backup FOLDER\"."
    case .earlierBackups:
      "When you turn it on, Finder, Apple Devices and iTunes make a new backup at once, and overwrite and encrypt the "
        + "earlier ones. If you need an earlier backup as it is, copy its folder first."
    case .forgottenPassword:
      "If you forgot the password: on the iPhone (iOS 11 or later), open Settings > General > Transfer or Reset > Reset > "
        + "Reset All Settings, and enter the passcode. This removes the backup password, so you can set a new one. "
        + "Earlier encrypted backups still need the old password."
    case .resetKeeps: "Reset All Settings keeps your data and your saved passwords."
    case .resetCosts:
      "Reset All Settings resets settings such as the display brightness, the Home Screen layout and the wallpaper."
    case .quickStart:
      "Quick Start moves items straight from the source device to the new one, if they do not sync and are not bound to "
        + "the source device."
    case .iCloudKeychain:
      "iCloud Keychain brings items that sync to every device on which it is turned on: Settings > your name > iCloud > "
        + "Passwords."
    case .wallet: "Backups do not contain the cards in Wallet. Add them again on the new device."
    }
  }

  /// The publication of the step.
  package var source: String {
    switch self {
    case .mac, .windows, .earlierBackups, .forgottenPassword, .resetKeeps, .resetCosts:
      "Apple Support 108353, \"About encrypted backups on your iPhone, iPad, or iPod touch\""
    case .linux: "idevicebackup2(1), of libimobiledevice"
    case .quickStart: "Apple DTS, Developer Forums thread 788360"
    case .iCloudKeychain: "Apple Support 109016, \"Set up iCloud Keychain\"; Apple, kSecAttrSynchronizable"
    case .wallet: "Apple Support, \"Backup methods for iPhone, iPad, and iPod touch\" (Apple Pay information)"
    }
  }

  /// The steps for turning on the backup password, by computer.
  package static let passwordSteps: [PublishedStep] = [.mac, .windows, .linux]

  /// The steps for turning on the backup password in short, with a command that explains more.
  package static let shortPasswordSteps = [
    "Turn on \"Encrypt local backup\" in Finder (Mac), or in Apple Devices or iTunes (Windows). Linux: idevicebackup2 -i "
      + "encryption on",
    "Forgotten password, earlier backups: \(SuggestedCommands.explaining("backup-password"))",
  ]

  private static func joinedText(_ steps: [PublishedStep]) -> String { steps.map(\.text).joined(separator: " ") }

  private static func sources(_ steps: [PublishedStep]) -> String {
    var sources: [String] = []
    for step in steps where !sources.contains(step.source) { sources.append(step.source) }
    return sources.joined(separator: "; ")
  }

  /// The page of `explain` about the backup password.
  static let backupPassword = Explanation(
    id: "backup-password", headline: "how to give an iPhone's backups a password, or a new one",
    rule: "Without a backup password, no keychain item of a backup moves to another device. Finder, Apple Devices and "
      + "iTunes call this password \"Encrypt local backup\".",
    effect: joinedText([.earlierBackups, .forgottenPassword, .resetKeeps, .resetCosts]),
    action: joinedText(passwordSteps),
    source: sources(passwordSteps + [.forgottenPassword]))

  /// The page of `explain` about other ways to move items to a new phone.
  package static let newPhone = Explanation(
    id: "new-phone", headline: "what else brings passwords to a new phone, and what nothing brings",
    rule: joinedText([.quickStart, .iCloudKeychain]),
    effect: "Neither brings items that are bound to the source device. \(PublishedStep.wallet.text)",
    action: "Keep the source device until every app that you need works on the new one.",
    source: sources([.quickStart, .iCloudKeychain, .wallet]))
}
