import KeyhaulKit

/// A keybag with new salts for a new password. If the new password is available early, its key is derived in parallel
/// with the old password's key.
final class RekeyedKeybag {
  /// The backup's keybag with new salts, whose class keys are not wrapped for the new password yet.
  private let keybag: Keybag
  /// The backup's name in messages.
  private let name: String
  /// The maximum number of iterations for the new password's key.
  private let limit: Int
  /// The new password once it was read.
  private var newPassword: ReusablePassword?
  /// The thread that derives the new password's key. It is kept, because releasing it stops the derivation.
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

  /// Reads the new password and starts to derive its key. Does nothing if the password was already read.
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
    fromPasscodeKey oldKey: borrowing Secret, to password: ReusablePassword, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag {
    try BackupKeybag.rewrap(
      keybag, fromPasscodeKey: oldKey, to: password.box.secret, acceptingAtMost: limit, remembering: password.keys,
      progress: progress)
  }
}
