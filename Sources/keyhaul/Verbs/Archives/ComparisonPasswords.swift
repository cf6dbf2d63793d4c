import ArchivedKeychain
import BackupArchive
import DataProtection

/// The passwords of two archives that are compared. A person's backups mostly share one, so that the first archive's is
/// tried on the second, and another is asked for only where it does not fit.
struct ComparisonPasswords {
  let first: PasswordFlags
  let second: OtherPasswordFlags
  /// The password that was read or typed before.
  private var held: Held?

  private final class Held {
    let secret: Secret

    init(_ secret: consuming Secret) { self.secret = secret }
  }

  init(first: PasswordFlags, second: OtherPasswordFlags) {
    self.first = first
    self.second = second
  }

  /// - Parameter isSecond: Whether it is the archive that `--other-password-…` is about.
  mutating func unlock(
    _ named: Session.NamedArchive, isSecond: Bool, deviceKey: consuming DeviceKey?, _ opening: OpeningOptions,
    in session: Session
  ) throws(CommandFailure) -> OpenedArchive? {
    if isSecond, second.isGiven {
      return try session.unlockIfPresent(named, second, deviceKey: deviceKey, accepting: opening.limit)
    }
    guard named.archive.isEncrypted else {
      return try session.unlock(named, password: nil, deviceKey: deviceKey, limit: opening.limit.rounds)
    }
    try session.checkRounds(of: named, accepting: opening.limit)
    guard let held else {
      let typed = Held(try session.password(first, of: named.name))
      held = typed
      return try session.unlock(
        named, password: typed.secret.copy(), deviceKey: deviceKey, limit: opening.limit.rounds)
    }
    do throws(CommandFailure) {
      return try session.unlock(
        named, password: held.secret.copy(), deviceKey: deviceKey?.copy(), limit: opening.limit.rounds)
    } catch {
      guard error.status == .wrongPassword else { throw error }
      guard try first.source(environment: session.environment) == .prompt else {
        var failure = error
        failure.advice = "\(SecretFamily.otherPassword.flags), where it has another one"
        throw failure
      }
    }
    return try session.unlockIfPresent(named, second, deviceKey: deviceKey, accepting: opening.limit)
  }
}
