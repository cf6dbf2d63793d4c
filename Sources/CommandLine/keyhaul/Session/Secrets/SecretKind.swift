import KeyhaulKit

/// A kind of secret that a command may need. A device's passcode is not a backup's password, so each kind has its own
/// flags, and every prompt names the kind and its owner.
enum SecretKind: String, CaseIterable, Sendable {
  case password
  /// The password of the second of two backups.
  case otherPassword = "other-password"
  case newPassword = "new-password"
  case passcode
  case newPasscode = "new-passcode"
  case secret
  case newSecret = "new-secret"
  case deviceKey = "device-key"
  /// The class keys of a keychain database.
  case classKeys = "class-keys"

  /// The start of the flags' names, after the two hyphens.
  var flagPrefix: String { rawValue }

  /// The name in prompts and errors: "new password".
  var noun: String { self == .otherPassword ? "password" : rawValue.replacing("-", with: " ") }

  /// Whether environment variables may name a source. Only the password of a backup has them.
  var hasEnvironmentVariables: Bool { self == .password }

  /// Whether the bytes are used unchanged. Other secrets are text, whose trailing newline is removed.
  var isReadVerbatim: Bool { [.secret, .newSecret, .deviceKey, .classKeys].contains(self) }

  /// Returns whether a byte order mark before the text is removed immediately.
  ///
  /// A new password must be something that a user can type, and a device counts failed passcodes. An existing backup
  /// password is first tried with the mark, which may be part of it.
  ///
  /// - Parameter isNew: Whether the secret is being set.
  func dropsByteOrderMark(isNew: Bool) -> Bool {
    switch self {
    case .newPassword, .passcode, .newPasscode: true
    case .password, .otherPassword: isNew
    case .secret, .newSecret, .deviceKey, .classKeys: false
    }
  }

  /// The flags as a list: "--password-file, --password-fd or --password-command".
  var flags: String {
    let endings =
      switch self {
      case .classKeys: ["file"]
      case .deviceKey: ["file", "fd"]
      default: ["file", "fd", "command"]
      }
    return HumanReadable.list(endings.map { "--\(flagPrefix)-\($0)" }, conjunction: "or")
  }
}
