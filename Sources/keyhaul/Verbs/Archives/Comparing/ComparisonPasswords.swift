import ArchivedKeychain
import BackupArchive
import CommandArguments
import CommandSession
import DataProtection

/// The passwords of two archives that are compared, and the hardware key that the user gave for them. A person's backups
/// mostly share one, so that the first archive's is tried on the second, and another is asked for only where it does not
/// fit.
struct ComparisonPasswords {
  let first: PasswordFlags
  let second: OtherPasswordFlags
  /// The password that was read or typed before.
  private var readSecret: Held?
  /// The hardware key that the user gave, once it was read: a descriptor gives it once.
  private var given: HardwareKey?

  /// The archives whose keybags may have more work done than is usual: somebody agreed to it.
  private var accepted: Set<String> = []

  private final class Held {
    let secret: Secret

    init(_ secret: consuming Secret) { self.secret = secret }
  }

  init(first: PasswordFlags, second: OtherPasswordFlags) {
    self.first = first
    self.second = second
  }

  /// Refuses a password that none of the archives takes, before anything is derived. Where one of them takes it and the
  /// other has none, that is said.
  ///
  /// - Parameter archives: By their places, the first and the second; `nil` for a device.
  func check(_ archives: [NamedArchive?], in session: Session) throws(CommandFailure) {
    if let other = archives.last ?? nil, !other.archive.isEncrypted,
      let source = try second.givenSource(environment: session.environment)
    {
      throw other.needlessPassword(source)
    }
    guard let source = try first.givenSource(environment: session.environment) else { return }
    let plain = archives.compactMap(\.self).filter { !$0.archive.isEncrypted }
    let isTaken = archives.enumerated().contains { index, named in
      named?.archive.isEncrypted == true && !(index == 1 && second.isGiven)
    }
    for named in plain {
      guard isTaken else { throw named.needlessPassword(source) }
      session.warn(
        "\(named.name) has no password", why: "it is not encrypted; the password is used for the other backup alone",
        try: "make sure that it is the backup which is meant")
    }
  }

  /// - Parameters:
  ///   - isSecond: Whether it is the archive that `--other-password-…` is about.
  ///   - device: That the archive is compared with.
  mutating func unlock(
    _ named: NamedArchive, isSecond: Bool, _ opening: OpeningOptions, comparedWith device: HardwareKey?,
    in session: Session
  ) throws(CommandFailure) -> OpenedArchive {
    let unlocker = ArchiveUnlocker(named, opening, in: session)
    // One archive that is both is asked about once.
    unlocker.isWorkAccepted = accepted.contains(named.name)
    try unlocker.checkRounds()
    if unlocker.isWorkAccepted { accepted.insert(named.name) }
    let hardware: HardwareKey?
    if let given {
      hardware = HardwareKey(.given, given.key(), otherwise: device ?? unlocker.makersKey())
    } else {
      hardware = try unlocker.hardwareKey(comparedWith: device)
      if hardware?.isGuess == false { given = hardware }
    }
    func open(_ password: consuming Secret?) throws(CommandFailure) -> OpenedArchive {
      try unlocker.open(with: try unlocker.key(password: password), hardware, for: .exporting)
    }
    if isSecond, second.isGiven {
      return try unlocker.open(with: try unlocker.key(second), hardware, for: .exporting)
    }
    guard named.archive.isEncrypted else { return try open(nil) }
    guard let readSecret else {
      return try session.withPassword(first, of: named.name) { (password) throws(CommandFailure) in
        let read = Held(password)
        readSecret = read
        return try open(read.secret.copy())
      }
    }
    do throws(CommandFailure) {
      return try open(readSecret.secret.copy())
    } catch {
      guard error.status == .wrongPassword else { throw error }
      guard try first.source(environment: session.environment) == .prompt else {
        var failure = error
        failure.advice = "\(SecretFamily.otherPassword.flags), where it has another one"
        throw failure
      }
    }
    return try session.withPassword(second, of: named.name) { (password) throws(CommandFailure) in
      try open(password)
    }
  }
}
