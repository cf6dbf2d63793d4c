import KeyhaulKit

/// The passwords of two archives that are compared, and the hardware key that the user gave for them. A person's backups
/// mostly share one, so that the first archive's is tried on the second, and another is asked for only where it does not
/// fit.
struct ComparisonPasswords {
  let first: PasswordFlags
  let second: OtherPasswordFlags
  /// The password that was read or typed before.
  private var readSecret: SharedPassword?
  /// The second archive's own, where it was read before the first one was opened.
  private var otherSecret: SharedPassword?
  /// The archive that is opened second, whose key is derived beside the first one's.
  private var next: NamedArchive?
  private var nextKey: BackgroundThread?
  /// The hardware key that the user gave, once it was read: a descriptor gives it once.
  private var given: HardwareKey?

  /// The archives whose keybags may have more work done than is usual: somebody agreed to it.
  private var accepted: Set<String> = []

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
        "\(named.name) has no password", why: "it is not encrypted; the password is used only for the other backup",
        try: "make sure that this is the right backup")
    }
  }

  /// - Parameters:
  ///   - isSecond: Whether it is the archive that `--other-password-…` is about.
  ///   - device: That the archive is compared with.
  mutating func unlock(
    _ named: NamedArchive, isSecond: Bool, _ opening: OpeningOptions, comparedWith device: HardwareKey?,
    in session: Session
  ) throws(CommandFailure) -> UnlockedBackup {
    let unlocker = ArchiveUnlocker(named, opening, in: session)
    // One archive that is both is asked about once.
    unlocker.isWorkAccepted = accepted.contains(named.name)
    try unlocker.checkRounds()
    if unlocker.isWorkAccepted { accepted.insert(named.name) }
    let hardware: HardwareKey?
    if let given {
      let other = if let device { device } else { try unlocker.sourceDeviceKey() }
      hardware = HardwareKey(.given, given.key, otherwise: other)
    } else {
      hardware = try unlocker.hardwareKey(comparedWith: device)
      if hardware?.isGuess == false { given = hardware }
    }
    func open(_ password: SharedPassword?) throws(CommandFailure) -> UnlockedBackup {
      let key = try unlocker.key(password: password?.secret(), remembering: password?.keys)
      return try unlocker.open(with: key, hardware, for: .exporting)
    }
    if isSecond, let otherSecret { return try open(otherSecret) }
    if isSecond, second.isGiven {
      return try unlocker.open(with: try unlocker.key(second), hardware, for: .exporting)
    }
    guard named.archive.isEncrypted else { return try open(nil) }
    guard let readSecret else {
      return try session.withPassword(first, of: named.name) { (password) throws(CommandFailure) in
        let read = SharedPassword(password, from: named.name)
        readSecret = read
        if !isSecond { try deriveNextKey(with: read, acceptingAtMost: opening.rounds, in: session) }
        return try open(read)
      }
    }
    do throws(CommandFailure) {
      return try open(readSecret)
    } catch {
      guard error.status == .wrongPassword else { throw error }
      guard try first.source(environment: session.environment) == .prompt else {
        var failure = error
        failure.advice = "\(SecretFamily.otherPassword.flags), if it differs"
        throw failure
      }
    }
    return try session.withPassword(second, of: named.name) { (password) throws(CommandFailure) in
      try open(SharedPassword(password, from: named.name))
    }
  }

  /// Says which archive is opened after the first one.
  mutating func expect(_ named: NamedArchive?) { next = named }

  /// Begins with the second archive's key while the first one's is derived, where a password for it is available.
  private mutating func deriveNextKey(
    with password: SharedPassword, acceptingAtMost limit: Int, in session: Session
  ) throws(CommandFailure) {
    guard let next, next.archive.isEncrypted else { return }
    if second.isGiven, otherSecret == nil, try second.source(environment: session.environment) != .prompt {
      otherSecret = SharedPassword(try session.password(second, of: next.name), from: next.name)
    }
    guard let password = second.isGiven ? otherSecret : password else { return }
    nextKey = password.keys.prefetchKey(
      of: next.archive.keybag, password: password.held, acceptingAtMost: limit
    ) { Interruption.pending == nil }
  }
}
