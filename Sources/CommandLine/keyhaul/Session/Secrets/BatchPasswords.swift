import KeyhaulKit

/// The passwords for the backups of a batch.
struct BatchPasswords: PasswordProvider {
  /// The password from a flag or the environment, for all backups; `nil` if there is none.
  let common: ReusablePassword?
  /// The password list, for the backups that its patterns match; `nil` if there is none.
  let list: PasswordList?

  var usesPasswordList: Bool { list != nil }

  /// Returns the environment for a command on one of the backups. If there is a list, the environment no longer names a
  /// password, because the list overrides it as a flag does.
  func environment(from environment: [String: String]) -> [String: String] {
    guard list != nil else { return environment }
    return environment.filter { !["KEYHAUL_PASSWORD_FILE", "KEYHAUL_PASSWORD_COMMAND"].contains($0.key) }
  }

  func passwords(for path: String, of identifier: String?) -> [ReusablePassword] {
    if let common { return [common] }
    return list?.passwords(for: path, of: identifier) ?? []
  }
}

extension Session {
  /// Reads a list of passwords. Rejects flags that also name a password.
  func passwords(listedIn path: String, rejecting flags: PasswordFlags) throws(CommandError) -> BatchPasswords {
    guard !flags.isGiven else {
      throw .usage("--passwords and a password cannot be used together", try: "use only one of them")
    }
    return BatchPasswords(common: nil, list: try PasswordList(path, in: self))
  }

  /// Returns the password that the user named for all backups, read once; `nil` if no source is named and Keyhaul would
  /// have to ask.
  func passwordForAllBackups(_ flags: PasswordFlags) throws(CommandError) -> ReusablePassword? {
    guard try flags.source(environment: environment) != .prompt else { return nil }
    return ReusablePassword(try password(flags, of: "the backups"), from: "the password")
  }
}
