import KeyhaulKit

/// The keybag of a backup with new salts, for a password whose key is derived beside the old one's where it is available by
/// then.
final class RenewedKeybag {
  private let keybag: Keybag
  private let name: String
  private let limit: Int
  private var known: SharedPassword?
  private var key: SideWork?

  /// - Parameters:
  ///   - rounds: Of the slow round; `nil` keeps the keybag's.
  ///   - limit: The most rounds to accept.
  init(of named: NamedArchive, rounds: Int?, acceptingAtMost limit: Int) throws(CommandFailure) {
    name = named.name
    self.limit = limit
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.resalted(named.archive.keybag, rounds: rounds)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// Begins to derive the new password's key; a second time it has begun already.
  func begin(_ read: () throws(CommandFailure) -> Secret) throws(CommandFailure) {
    guard known == nil else { return }
    let password = try password(read)
    key = password.keys.derivingAhead(of: keybag, password: password.held, acceptingAtMost: limit) {
      Interruption.pending == nil
    }
  }

  /// The new password, read where it was not yet.
  func password(_ read: () throws(CommandFailure) -> Secret) throws(CommandFailure) -> SharedPassword {
    if let known { return known }
    let password = SharedPassword(try read(), from: name)
    known = password
    return password
  }

  /// The class keys under the new password.
  func rewrapped(
    fromPasscodeKey old: borrowing Secret, to new: SharedPassword, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag {
    try BackupKeybag.rewrap(
      keybag, fromPasscodeKey: old, to: new.held.secret, acceptingAtMost: limit, remembering: new.keys,
      progress: progress)
  }
}
