/// The passwords of a call that is about many backups.
struct SharedPasswords: PasswordOffers {
  /// The one that a flag or the environment names; for every backup.
  let named: SharedPassword?
  /// Those of a list, for the backups that their patterns mean.
  let list: PasswordList?

  init(named: SharedPassword?, list: PasswordList?) {
    self.named = named
    self.list = list
  }

  var areListed: Bool { list != nil }

  func passwords(for path: String, of identifier: String?) -> [SharedPassword] {
    if let named { return [named] }
    return list?.passwords(for: path, of: identifier) ?? []
  }
}

extension Session {
  /// The password that a call about many backups names for all of them, read once; `nil` where a prompt would ask: there
  /// is nobody to answer for each.
  func sharedPassword(_ flags: PasswordFlags) throws(CommandFailure) -> SharedPassword? {
    guard try flags.source(environment: environment) != .prompt else { return nil }
    return SharedPassword(try password(flags, of: "the backups"), from: "the password")
  }
}
