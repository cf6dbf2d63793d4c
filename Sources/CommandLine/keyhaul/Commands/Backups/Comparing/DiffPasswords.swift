import KeyhaulKit

/// The passwords of two backups that are compared, and the given hardware key. Most users have one password for all
/// backups, so the first backup's password is tried on the second. Keyhaul asks for another only if it is wrong.
struct DiffPasswords {
  let first: PasswordFlags
  let second: OtherPasswordFlags
  /// The password that was already read or typed.
  private var readSecret: ReusablePassword?
  /// The second backup's own password, if it was read before the first backup was opened.
  private var otherSecret: ReusablePassword?
  /// The backup that is opened second. Its key is derived in parallel with the first one's.
  private var next: LoadedBackup?
  private var nextKey: BackgroundThread?
  /// The given hardware key, kept because a descriptor can be read only once.
  private var given: HardwareKey?

  /// The names of backups whose unusually high iteration count was accepted.
  private var accepted: Set<String> = []

  init(first: PasswordFlags, second: OtherPasswordFlags) {
    self.first = first
    self.second = second
  }

  /// Rejects a password that neither backup needs, before a key is derived. Warns if only one of them needs it.
  ///
  /// - Parameter backups: The first and the second backup; `nil` if the side is a device.
  func check(_ backups: [LoadedBackup?], in session: Session) throws(CommandError) {
    if let other = backups.last ?? nil, !other.archive.isEncrypted,
      let source = try second.origin(environment: session.environment)
    {
      throw other.unexpectedPassword(source)
    }
    guard let source = try first.origin(environment: session.environment) else { return }
    let plain = backups.compactMap(\.self).filter { !$0.archive.isEncrypted }
    let isNeeded = backups.enumerated().contains { index, loaded in
      loaded?.archive.isEncrypted == true && !(index == 1 && second.isGiven)
    }
    for loaded in plain {
      guard isNeeded else { throw loaded.unexpectedPassword(source) }
      session.warn(
        "\(loaded.name) has no password", why: "it is not encrypted; the password is used only for the other backup",
        try: "make sure that this is the right backup")
    }
  }

  /// Decrypts a backup.
  ///
  /// - Parameters:
  ///   - loaded: The backup.
  ///   - isSecond: Whether it is the second backup, to which `--other-password-file` applies.
  ///   - decryption: The decryption options.
  ///   - device: The key of the device that the backup is compared with; `nil` if it is not compared with a device.
  mutating func unlock(
    _ loaded: LoadedBackup, isSecond: Bool, _ decryption: DecryptionOptions, comparedWith device: HardwareKey?,
    in session: Session
  ) throws(CommandError) -> UnlockedBackup {
    let unlocker = BackupUnlocker(loaded, decryption, in: session)
    // If both arguments are the same backup, the user is asked once.
    unlocker.isIterationCountAccepted = accepted.contains(loaded.name)
    try unlocker.checkRounds()
    if unlocker.isIterationCountAccepted { accepted.insert(loaded.name) }
    let hardware: HardwareKey?
    if let given {
      let other = if let device { device } else { try unlocker.sourceDeviceKey() }
      hardware = HardwareKey(.given, given.key, fallback: other)
    } else {
      hardware = try unlocker.hardwareKey(comparedWith: device)
      if hardware?.isGuess == false { given = hardware }
    }
    func open(_ password: ReusablePassword?) throws(CommandError) -> UnlockedBackup {
      let key = try unlocker.key(password: password?.secret(), remembering: password?.keys)
      return try unlocker.open(with: key, hardware, for: .exporting)
    }
    if isSecond, let otherSecret { return try open(otherSecret) }
    if isSecond, second.isGiven {
      return try unlocker.open(with: try unlocker.key(second), hardware, for: .exporting)
    }
    guard loaded.archive.isEncrypted else { return try open(nil) }
    guard let readSecret else {
      return try session.withPassword(first, of: loaded.name) { (password) throws(CommandError) in
        let read = ReusablePassword(password, from: loaded.name)
        readSecret = read
        if !isSecond { try deriveNextKey(with: read, acceptingAtMost: decryption.maximumIterations, in: session) }
        return try open(read)
      }
    }
    do throws(CommandError) {
      return try open(readSecret)
    } catch {
      guard error.status == .wrongPassword else { throw error }
      guard try first.source(environment: session.environment) == .prompt else {
        var failure = error
        failure.advice = "\(SecretKind.otherPassword.flags), if it differs"
        throw failure
      }
    }
    return try session.withPassword(second, of: loaded.name) { (password) throws(CommandError) in
      try open(ReusablePassword(password, from: loaded.name))
    }
  }

  /// Sets the backup that is opened after the first one.
  mutating func setNext(_ loaded: LoadedBackup?) { next = loaded }

  /// Starts to derive the second backup's key if a password for it is available.
  private mutating func deriveNextKey(
    with password: ReusablePassword, acceptingAtMost limit: Int, in session: Session
  ) throws(CommandError) {
    guard let next, next.archive.isEncrypted else { return }
    if second.isGiven, otherSecret == nil, try second.source(environment: session.environment) != .prompt {
      otherSecret = ReusablePassword(try session.password(second, of: next.name), from: next.name)
    }
    guard let password = second.isGiven ? otherSecret : password else { return }
    nextKey = password.keys.prefetchKey(
      of: next.archive.keybag, password: password.box, acceptingAtMost: limit
    ) { Interruption.pending == nil }
  }
}
