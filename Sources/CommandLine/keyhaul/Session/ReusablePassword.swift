import KeyhaulKit

/// A password that was read once and may decrypt many backups, with the keys derived from it.
final class ReusablePassword: Sendable {
  /// The source of the password, for messages: "line 3 of the list".
  let origin: String
  let keys = DerivedKeyCache()
  let box: SecretBox
  /// A random name under which a `--resume` file mentions the password in the results of this run. It reveals nothing
  /// about the password.
  let identifier = String(UInt64.random(in: .min ... .max), radix: 16)
  /// The password's names in earlier runs.
  private let earlierIdentifiers = Locked<Set<String>>([])

  init(_ secret: consuming Secret, from origin: String) {
    self.origin = origin
    box = SecretBox(secret)
  }

  /// Returns whether this is known to be the password with the given name.
  func isKnown(as identifier: String) -> Bool {
    self.identifier == identifier || earlierIdentifiers.withLock { $0.contains(identifier) }
  }

  /// Records that this password decrypted a backup that the password with the given name had decrypted.
  func addIdentifier(_ identifier: String) { _ = earlierIdentifiers.withLock { $0.insert(identifier) } }

  /// Returns a copy of the password.
  func secret() -> Secret { box.secret.copy() }
}

/// Provides the passwords for the backups of a batch.
protocol PasswordProvider: Sendable {
  /// Returns the passwords for one backup, in the order in which to try them.
  ///
  /// - Parameters:
  ///   - path: The backup's path, as the user typed it or as it was found.
  ///   - identifier: The identifier of the source device, as the backup states it; `nil` if it states none.
  func passwords(for path: String, of identifier: String?) -> [ReusablePassword]
  /// Whether the passwords come from a list, in which case a backup may have none.
  var usesPasswordList: Bool { get }
}

extension Session {
  /// The passwords for this session's backup, in the order in which to try them.
  var availablePasswords: [ReusablePassword] {
    passwordProvider?.passwords(for: backupPath, of: backupMetadata?.identifier) ?? []
  }

  /// Whether a list has a password for the backup, which is then decrypted even if the command does not require it.
  var hasListedPassword: Bool { passwordProvider?.usesPasswordList == true && !availablePasswords.isEmpty }
}
