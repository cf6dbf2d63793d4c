import KeyhaulKit
import Reports

/// Decrypts one backup, in the same way for every command. A command derives the password's key once, and passes the key
/// to `open`, `reader` and `classKeys`.
final class BackupUnlocker {
  let loaded: LoadedBackup
  let options: DecryptionOptions
  let session: Session
  /// Whether the user has accepted an unusually high iteration count.
  var isIterationCountAccepted = false
  /// The time that the last key derivation took; `nil` before the first.
  private(set) var derivationTime: Duration?
  /// Whether the device key that the user gave belongs to another device: it decrypts no item that needs a device key.
  var isGivenKeyOfOtherDevice = false

  init(_ loaded: LoadedBackup, _ options: DecryptionOptions, in session: Session) {
    self.loaded = loaded
    self.options = options
    self.session = session
  }

  var name: String { loaded.name }
  var archive: BackupArchive { loaded.archive }

  // MARK: The password's key

  /// Checks the iteration count, gets the password if the backup has one, and derives its key.
  ///
  /// - Parameters:
  ///   - flags: The flags that name the source of the password.
  ///   - advice: The advice to give if a flag provides a password but the backup has none.
  /// - Returns: The key. Its `keybagFault` is set if the keybag is only partly usable.
  /// - Throws: `.refused` if the iteration count exceeds the limit (before asking for a password), or if a password is
  ///   given for a backup without one; `.wrongPassword`; `.damaged` if the keybag cannot be used at all.
  func key<Tag>(_ flags: SecretFlags<Tag>, unexpectedPassword advice: String? = nil) throws(CommandError)
    -> BackupKey
  {
    try checkIterationCount()
    if !archive.isEncrypted {
      guard let source = try flags.origin(environment: session.environment) else { return try key(password: nil) }
      // The manifest may claim encryption although the stored content is unencrypted. The keybag may then still need the
      // password.
      guard archive.hasFalseClaim, !unlocksWithoutPassword() else {
        throw loaded.unexpectedPassword(source, try: advice)
      }
    }
    if let key = try keyOfAvailablePassword() { return key }
    return try session.withPassword(flags, of: name) { (password) throws(CommandError) in
      try key(password: password)
    }
  }

  /// Returns whether the empty password unlocks the keybag, as in a backup without a password.
  private func unlocksWithoutPassword() -> Bool {
    do throws(KeyhaulError) {
      return try archive.unlock(password: nil, acceptingAtMost: options.maximumIterations).keybagFault == nil
    } catch {
      return false
    }
  }

  /// Tries the passwords that are available for a backup in a batch, and returns the key of the first right password.
  ///
  /// - Returns: `nil` if no password is available.
  /// - Throws: `.wrongPassword` if all of them are wrong.
  private func keyOfAvailablePassword() throws(CommandError) -> BackupKey? {
    let passwords = session.availablePasswords
    var lastError: CommandError?
    for password in passwords {
      do throws(CommandError) {
        let key = try key(password: password.secret(), remembering: password.keys)
        if key.keybagFault == nil { session.matchedPassword = password }
        return key
      } catch {
        guard error.status == .wrongPassword else { throw error }
        lastError = error
      }
    }
    guard var failure = lastError else { return nil }
    if passwords.count > 1 {
      failure.message = "cannot open \(name): none of \(HumanReadable.count(passwords.count, "password")) is right"
      failure.why = HumanReadable.list(passwords.map(\.origin))
    }
    throw failure
  }

  /// Derives the key from a password.
  ///
  /// - Parameters:
  ///   - password: The password; `nil` if the backup has none.
  ///   - keys: The keys that were derived from this password before.
  func key(
    password: consuming Secret?, remembering keys: DerivedKeyCache? = nil
  ) throws(CommandError) -> BackupKey {
    let start = ContinuousClock.now
    let key = try deriving(iterationCount: archive.keybag.totalIterations) { (progress) throws(KeyhaulError) in
      try archive.unlock(
        password: password, acceptingAtMost: options.maximumIterations, remembering: keys, progress: progress)
    }
    derivationTime = start.duration(to: .now)
    reportNormalization(key.passwordForm)
    session.debug("\(UntrustedText.escaped(name)): key derived in \(Self.milliseconds(since: start)) ms", level: 2)
    return key
  }

  /// Shows progress while a key is derived, and explains errors with the backup's name.
  func deriving<Value: ~Copyable, Failure: ExplainedError>(
    iterationCount: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(CommandError) -> Value {
    do throws(Failure) {
      return try session.deriving(iterationCount: iterationCount, body)
    } catch {
      try Interruption.check()
      throw CommandError(backup: error, name: name)
    }
  }

  // MARK: Decrypting the backup

  /// Decrypts the backup with the device key that the user gave, or with the key of a virtual device that made the
  /// backup. A backup without a keychain has no items.
  func open(
    with password: PasswordFlags, for purpose: BackupPurpose = .reading
  ) throws(CommandError) -> UnlockedBackup {
    let deviceKey = try deviceKey()
    return try open(with: try key(password), deviceKey: deviceKey, for: purpose)
  }

  /// Decrypts the backup with a key that was already derived.
  ///
  /// - Parameters:
  ///   - key: The key of the password.
  ///   - candidate: The device key to try first; `nil` if there is none.
  ///   - purpose: The purpose. Every purpose except reading requires a keychain.
  func open(
    with key: BackupKey, deviceKey candidate: DeviceKeyCandidate?, for purpose: BackupPurpose = .reading
  ) throws(CommandError) -> UnlockedBackup {
    try openChoosingKey(with: key, deviceKey: candidate, for: purpose).backup
  }

  /// Decrypts the backup like `open(with:deviceKey:for:)`, for a caller that also encrypts with the device key.
  ///
  /// - Returns: The backup, and the key that was used: `candidate` or one of its fallbacks; `nil` if `candidate` is
  ///   `nil`. If all of these keys belong to other devices, the backup's `isSameDevice` is `false`.
  func openChoosingKey(
    with key: BackupKey, deviceKey candidate: DeviceKeyCandidate?, for purpose: BackupPurpose
  ) throws(CommandError) -> (backup: UnlockedBackup, deviceKey: DeviceKeyCandidate?) {
    let deviceKey = usableKey(candidate, with: key)
    let opened = try reportingDetails { () throws(KeyhaulError) in
      try session.computing { () throws(KeyhaulError) in
        try archive.open(with: key, deviceKey: deviceKey?.key, for: purpose)
      }
    }
    let deviceKeyDecryptedItems = !opened.hardware.proven.isEmpty
    if deviceKeyDecryptedItems { reportDeviceKeySource(deviceKey) }
    return (opened, deviceKey)
  }

  /// Decrypts the backup for a caller that processes the items one by one without keeping them.
  func reader(
    with key: BackupKey, deviceKey candidate: DeviceKeyCandidate?, for purpose: BackupPurpose
  ) throws(CommandError) -> BackupItemReader {
    let deviceKey = usableKey(candidate, with: key)
    let reader = try explainingErrors { () throws(KeyhaulError) in
      try archive.reader(with: key, deviceKey: deviceKey?.key, for: purpose)
    }
    for anomaly in reader.anomalies { report(anomaly) }
    let deviceKeyDecryptedItems = !reader.hardware.proven.isEmpty
    if deviceKeyDecryptedItems { reportDeviceKeySource(deviceKey) }
    return reader
  }

  /// A backup that was decrypted for a target device.
  struct BackupForDevice {
    let backup: UnlockedBackup
    /// The name of the virtual device that made the backup; `nil` if Keyhaul did not use such a device's key.
    let sourceDeviceName: String?
  }

  /// Decrypts the backup with the target's device key. The source device's key, if available, adds the names of the
  /// items that the target's key cannot decrypt.
  ///
  /// - Parameters:
  ///   - key: The key of the password.
  ///   - candidate: A key that may be the source device's.
  ///   - target: The target's key; `nil` if the target is a Simulator, which has none.
  ///   - purpose: The purpose: a plan or a restore.
  func open(
    with key: BackupKey, deviceKey candidate: DeviceKeyCandidate?, onto target: DeviceKeyCandidate?,
    for purpose: BackupPurpose
  ) throws(CommandError) -> BackupForDevice {
    let sourceKey = usableKey(candidate, with: key)
    let opened = try reportingDetails { () throws(KeyhaulError) in
      try archive.open(with: key, deviceKey: target?.key, sourceKey: sourceKey?.key, for: purpose)
    }
    return BackupForDevice(backup: opened, sourceDeviceName: sourceKey?.virtualDeviceName)
  }

  /// Returns the class keys, with which the files of the backup can be decrypted.
  func classKeys(with key: BackupKey, deviceKey: DeviceKeyCandidate? = nil) throws(CommandError)
    -> ClassKeys
  {
    do throws(KeyhaulError) {
      return try key.classKeys(deviceKey: deviceKey?.key)
    } catch {
      throw CommandError(backup: error, name: name)
    }
  }

  /// Decrypts the backup, and reports anomalies, the number of readable items and the time.
  private func reportingDetails(
    _ open: () throws(KeyhaulError) -> UnlockedBackup
  ) throws(CommandError) -> UnlockedBackup {
    let start = ContinuousClock.now
    let opened = try explainingErrors(open)
    for anomaly in opened.anomalies { report(anomaly) }
    var details = DecryptionDetails(of: loaded, in: session)
    details.record(opened.items)
    details.report(decryptionTime: start.duration(to: .now))
    return opened
  }

  private func explainingErrors<Value: ~Copyable>(
    _ open: () throws(KeyhaulError) -> Value
  ) throws(CommandError) -> Value {
    do throws(KeyhaulError) {
      return try open()
    } catch {
      try Interruption.check()
      throw CommandError(backup: error, name: name)
    }
  }

  // MARK: Messages

  /// Reports that the password was accepted in a different form than the given one.
  private func reportNormalization(_ form: PasswordNormalization) {
    switch form {
    case .asTyped: return
    case .withoutMark:
      session.info("\(UntrustedText.escaped(name)): the password was accepted without its byte order mark")
    case .composed:
      session.info(
        "\(UntrustedText.escaped(name)): the password was accepted with composed accents (Unicode form NFC)")
    case .decomposed:
      session.info(
        "\(UntrustedText.escaped(name)): the password was accepted with decomposed accents (Unicode form NFD)")
    }
  }

  /// Reports before a restore that the backup has no seal.
  func warnIfUnsealed() {
    // Without a password, an attacker could also replace the seal.
    guard archive.isEncrypted, archive.seal == nil else { return }
    session.info(
      "\(UntrustedText.escaped(name)) has no seal: an older keychain or manifest of the same backup would go unnoticed."
    )
  }

  private func report(_ anomaly: ToleratedAnomaly) {
    switch anomaly {
    case .digestDiffers:
      session.warn(
        "\(name)'s keychain file is not what was written", why: anomaly.description,
        try: "verify shows the damage; items that can be decrypted are unchanged, but others may be missing")
    // These were reported when the backup was opened.
    case .unfinished, .propertyListUnreadable, .encryptionClaimed, .listJournalRead: return
    case .finding(let finding): if !archive.findings.contains(finding) { loaded.warn(about: finding, in: session) }
    case .statusMissing, .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .sizeDiffers:
      session.debug("\(UntrustedText.escaped(name)): \(anomaly)")
    }
  }

  private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
    Int(start.duration(to: .now) / .milliseconds(1))
  }
}
