import KeyhaulKit

/// The options for decrypting a backup.
///
/// Commands declare the two groups of flags separately and combine them here. If the groups were nested, the argument
/// parser would check them several times in debug builds.
struct BackupAccessOptions {
  let password: PasswordFlags
  let decryption: DecryptionOptions

  init(password: PasswordFlags, decryption: DecryptionOptions) {
    self.password = password
    self.decryption = decryption
  }

  /// The storage for a large manifest or keychain while it is read.
  var storage: ManifestStorage { decryption.storage }

  /// The files with secrets, which no output may replace.
  var files: [String?] { [password.file, decryption.deviceKeyFile] }

  /// Whether any of the flags was given.
  var isGiven: Bool { password.isGiven || decryption.firstGivenFlag != nil }

  /// Rejects the flags for a device, which is not decrypted.
  func reject(for device: String) throws(CommandError) {
    try password.reject(for: device)
    try decryption.reject(for: device)
  }
}

/// A command with the options for decrypting a backup.
protocol DecryptingCommand {
  var password: PasswordFlags { get }
  var decryption: DecryptionOptions { get }
}

extension DecryptingCommand {
  var accessOptions: BackupAccessOptions { BackupAccessOptions(password: password, decryption: decryption) }
}
