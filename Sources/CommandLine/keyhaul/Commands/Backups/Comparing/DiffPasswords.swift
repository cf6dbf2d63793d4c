import KeyhaulKit

/// The passwords for two backups that are compared, and the device key that the user gave.
///
/// Most users have one password for all backups, so the first backup's password is tried on the second backup. Keyhaul
/// asks for the second backup's password only if the first password is wrong.
struct DiffPasswords {
  let firstFlags: PasswordFlags
  let secondFlags: OtherPasswordFlags
  /// The first backup's password, once it was read.
  private var firstPassword: ReusablePassword?
  /// The second backup's own password, if it was read before the first backup was opened.
  private var secondPassword: ReusablePassword?
  /// The backup that is opened second. Its key is derived in parallel with the first backup's key.
  var secondBackup: LoadedBackup?
  /// The thread that derives the second backup's key. It is kept, because releasing it stops the derivation.
  private var secondKeyDerivation: BackgroundThread?
  /// The device key that the user gave. It is kept, because a file descriptor can be read only once.
  private var givenKey: DeviceKeyCandidate?

  /// The names of backups whose unusually high iteration count was accepted.
  private var namesWithAcceptedIterations: Set<String> = []

  init(first: PasswordFlags, second: OtherPasswordFlags) {
    firstFlags = first
    secondFlags = second
  }

  /// Rejects a password that neither backup needs, before a key is derived. Warns if only one backup needs the password.
  ///
  /// - Parameter backups: The first and the second backup; `nil` if a side is not a backup.
  func check(_ backups: [LoadedBackup?], in session: Session) throws(CommandError) {
    if let second = backups.last ?? nil, !second.archive.isEncrypted,
      let source = try secondFlags.origin(environment: session.environment)
    {
      throw second.unexpectedPassword(source)
    }
    guard let source = try firstFlags.origin(environment: session.environment) else { return }
    let unencrypted = backups.compactMap(\.self).filter { !$0.archive.isEncrypted }
    let isNeeded = backups.enumerated().contains { index, loaded in
      loaded?.archive.isEncrypted == true && !(index == 1 && secondFlags.isGiven)
    }
    for loaded in unencrypted {
      guard isNeeded else { throw loaded.unexpectedPassword(source) }
      session.warn(
        "\(loaded.name) has no password", why: "it is not encrypted; the password is used only for the other backup",
        try: "make sure that this is the right backup")
    }
  }

  /// Decrypts a backup.
  ///
  /// - Parameters:
  ///   - loaded: The backup to decrypt.
  ///   - isSecond: Whether this is the second backup, to which `--other-password-file` applies.
  ///   - decryption: The options that provide a device key and limit the iterations.
  ///   - deviceKey: The key of the device that the backup is compared with; `nil` if the other side is not a device.
  mutating func unlock(
    _ loaded: LoadedBackup, isSecond: Bool, _ decryption: DecryptionOptions,
    comparedWith deviceKey: DeviceKeyCandidate?,
    in session: Session
  ) throws(CommandError) -> UnlockedBackup {
    let unlocker = BackupUnlocker(loaded, decryption, in: session)
    try checkIterations(of: unlocker)
    let backup = UnopenedBackup(
      unlocker: unlocker, deviceKey: try keyToTry(for: unlocker, comparedWith: deviceKey))
    if isSecond, let secondPassword { return try backup.open(with: secondPassword) }
    if isSecond, secondFlags.isGiven { return try backup.open(with: unlocker.key(secondFlags)) }
    guard loaded.archive.isEncrypted else { return try backup.open(with: nil) }
    if let firstPassword {
      return try openSecond(backup, tryingFirst: firstPassword, in: session)
    }
    return try session.withPassword(firstFlags, of: loaded.name) { (secret) throws(CommandError) in
      let password = ReusablePassword(secret, from: loaded.name)
      firstPassword = password
      if !isSecond { try deriveSecondKey(with: password, acceptingAtMost: decryption.maximumIterations, in: session) }
      return try backup.open(with: password)
    }
  }

  /// A backup that is not decrypted yet, with the device key to try.
  private struct UnopenedBackup {
    let unlocker: BackupUnlocker
    let deviceKey: DeviceKeyCandidate?

    /// Opens the backup.
    ///
    /// - Parameter password: The password; `nil` if the backup is not encrypted.
    func open(with password: ReusablePassword?) throws(CommandError) -> UnlockedBackup {
      try open(with: unlocker.key(password: password?.secret(), remembering: password?.keys))
    }

    func open(with key: BackupKey) throws(CommandError) -> UnlockedBackup {
      try unlocker.open(with: key, deviceKey: deviceKey, for: .exporting)
    }
  }

  /// Opens the second backup with the first backup's password. If that password was typed and is wrong for the second
  /// backup, asks for the second backup's password.
  private func openSecond(
    _ backup: UnopenedBackup, tryingFirst firstPassword: ReusablePassword, in session: Session
  ) throws(CommandError) -> UnlockedBackup {
    do throws(CommandError) {
      return try backup.open(with: firstPassword)
    } catch {
      guard error.status == .wrongPassword else { throw error }
      // If the first password was not typed, Keyhaul does not ask for the second password either.
      guard try firstFlags.source(environment: session.environment) == .prompt else {
        var failure = error
        failure.advice = "\(SecretKind.otherPassword.flags), if it differs"
        throw failure
      }
    }
    let name = backup.unlocker.name
    return try session.withPassword(secondFlags, of: name) { (password) throws(CommandError) in
      try backup.open(with: ReusablePassword(password, from: name))
    }
  }

  /// Checks a backup's iteration count. If both arguments name the same backup, asks about the count only once.
  private mutating func checkIterations(of unlocker: BackupUnlocker) throws(CommandError) {
    unlocker.isIterationCountAccepted = namesWithAcceptedIterations.contains(unlocker.name)
    try unlocker.checkIterationCount()
    if unlocker.isIterationCountAccepted { namesWithAcceptedIterations.insert(unlocker.name) }
  }

  /// Returns the device key to try first when decrypting a backup, with its fallbacks. The order is the key that the user
  /// gave, the compared device's key, and the key of the backup's source device.
  private mutating func keyToTry(
    for unlocker: BackupUnlocker, comparedWith deviceKey: DeviceKeyCandidate?
  ) throws(CommandError) -> DeviceKeyCandidate? {
    if let givenKey {
      let fallback = if let deviceKey { deviceKey } else { try unlocker.sourceDeviceKey() }
      return DeviceKeyCandidate(.given, givenKey.key, fallback: fallback)
    }
    let key = try unlocker.deviceKey(comparedDeviceKey: deviceKey)
    if key?.isGuess == false { givenKey = key }
    return key
  }

  /// Starts to derive the second backup's key if a password for it is available.
  private mutating func deriveSecondKey(
    with password: ReusablePassword, acceptingAtMost limit: Int, in session: Session
  ) throws(CommandError) {
    guard let secondBackup, secondBackup.archive.isEncrypted else { return }
    if secondFlags.isGiven, secondPassword == nil, try secondFlags.source(environment: session.environment) != .prompt {
      secondPassword = ReusablePassword(
        try session.password(secondFlags, of: secondBackup.name), from: secondBackup.name)
    }
    guard let password = secondFlags.isGiven ? secondPassword : password else { return }
    secondKeyDerivation = password.keys.prefetchKey(
      of: secondBackup.archive.keybag, password: password.box, acceptingAtMost: limit
    ) { Interruption.pending == nil }
  }
}
