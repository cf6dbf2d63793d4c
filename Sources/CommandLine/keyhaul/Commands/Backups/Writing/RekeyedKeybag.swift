import KeyhaulKit

/// A keybag with new salts for a new password. If the password is available early, its key is derived in parallel with
/// the old one's.
final class RekeyedKeybag {
  private let keybag: Keybag
  private let name: String
  private let limit: Int
  /// The new password once it was read.
  private var newPassword: ReusablePassword?
  private var keyDerivation: BackgroundThread?

  /// Creates the keybag.
  ///
  /// - Parameters:
  ///   - loaded: The backup.
  ///   - rounds: The iterations of the second, slow derivation; `nil` keeps the keybag's count.
  ///   - limit: The maximum number of iterations.
  init(of loaded: LoadedBackup, rounds: Int?, acceptingAtMost limit: Int) throws(CommandError) {
    name = loaded.name
    self.limit = limit
    do throws(DataProtectionError) {
      keybag = try BackupKeybag.resalted(loaded.archive.keybag, rounds: rounds)
    } catch {
      throw CommandError(backup: error, name: name)
    }
  }

  /// Starts to derive the new password's key, unless this has already begun.
  func prefetch(_ read: () throws(CommandError) -> Secret) throws(CommandError) {
    guard newPassword == nil else { return }
    let password = try password(read)
    keyDerivation = password.keys.prefetchKey(of: keybag, password: password.box, acceptingAtMost: limit) {
      Interruption.pending == nil
    }
  }

  /// Returns the new password, which is read at most once.
  func password(_ read: () throws(CommandError) -> Secret) throws(CommandError) -> ReusablePassword {
    if let newPassword { return newPassword }
    let password = ReusablePassword(try read(), from: name)
    newPassword = password
    return password
  }

  /// Returns the keybag with its class keys wrapped for the new password.
  func rewrapped(
    fromPasscodeKey old: borrowing Secret, to new: ReusablePassword, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag {
    try BackupKeybag.rewrap(
      keybag, fromPasscodeKey: old, to: new.box.secret, acceptingAtMost: limit, remembering: new.keys,
      progress: progress)
  }
}
