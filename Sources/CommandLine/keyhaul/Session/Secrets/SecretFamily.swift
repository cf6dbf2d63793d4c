import KeyhaulKit

/// The kinds of secret that a verb may ask for. A device's passcode is not a backup's password, so each has its own
/// flags, and every prompt says which it wants and whose.
enum SecretFamily: String, CaseIterable, Sendable {
  case password
  /// Of the second of two backups.
  case otherPassword = "other-password"
  case newPassword = "new-password"
  case passcode
  case newPasscode = "new-passcode"
  case secret
  case newSecret = "new-secret"
  case deviceKey = "device-key"
  /// Of a keychain's own database.
  case classKeys = "class-keys"

  /// What flags start with, after the two hyphens.
  var flagPrefix: String { rawValue }

  /// How prompts and errors call it: "new password".
  var noun: String { self == .otherPassword ? "password" : rawValue.replacing("-", with: " ") }

  /// The environment may name a source for the password of a backup alone.
  var hasEnvironment: Bool { self == .password }

  /// Bytes of an item and of keys are kept as they are; what a person types or saves ends in a newline that is not meant.
  var isTakenVerbatim: Bool { [.secret, .newSecret, .deviceKey, .classKeys].contains(self) }

  /// Whether a byte order mark before the text is left out at once.
  ///
  /// What is being set should be what a person can type, and a device counts wrong passcodes. A backup's password is tried
  /// with the mark first, since it may have one.
  ///
  /// - Parameter isNew: Whether it is being set.
  func isTakenWithoutMark(isNew: Bool) -> Bool {
    switch self {
    case .newPassword, .passcode, .newPasscode: true
    case .password, .otherPassword: isNew
    case .secret, .newSecret, .deviceKey, .classKeys: false
    }
  }

  /// "--password-file, --password-fd or --password-command"
  var flags: String {
    let endings =
      switch self {
      case .classKeys: ["file"]
      case .deviceKey: ["file", "fd"]
      default: ["file", "fd", "command"]
      }
    return Amounts.list(endings.map { "--\(flagPrefix)-\($0)" }, conjunction: "or")
  }
}
