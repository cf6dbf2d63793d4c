import KeyhaulKit
import Reports

/// Decrypts one backup, in the same way for every command: the password's key is derived once, and everything else
/// depends on it.
final class BackupUnlocker {
  let loaded: LoadedBackup
  let options: DecryptionOptions
  let session: Session
  /// Whether the user has accepted an unusually high iteration count.
  var isIterationCountAccepted = false
  /// The time that the last key derivation took; `nil` before the first.
  private(set) var derivationTime: Duration?
  /// Whether the given device key failed to decrypt every item that needs one.
  private(set) var isGivenKeyOfOtherDevice = false

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
    try checkRounds()
    if !archive.isEncrypted {
      guard let source = try flags.origin(environment: session.environment) else { return try key(password: nil) }
      // A backup with a false claim of encryption may still have an encrypted keybag.
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

  /// Tries the passwords that are available for one of many backups, and returns the key of the first that is right.
  ///
  /// - Returns: `nil` if no password is available.
  /// - Throws: `.wrongPassword` if all of them are wrong.
  private func keyOfAvailablePassword() throws(CommandError) -> BackupKey? {
    let passwords = session.availablePasswords
    var wrongPassword: CommandError?
    for password in passwords {
      do throws(CommandError) {
        let key = try key(password: password.secret(), remembering: password.keys)
        if key.keybagFault == nil { session.matchedPassword = password }
        return key
      } catch {
        guard error.status == .wrongPassword else { throw error }
        wrongPassword = error
      }
    }
    guard var failure = wrongPassword else { return nil }
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
    let key = try deriving(rounds: archive.keybag.totalIterations) { (progress) throws(KeyhaulError) in
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
    rounds: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(CommandError) -> Value {
    do throws(Failure) {
      return try session.deriving(rounds: rounds, body)
    } catch {
      try Interruption.check()
      throw CommandError(backup: error, name: name)
    }
  }

  // MARK: Decrypting the backup

  /// Decrypts the backup for reading, with the given hardware key or that of a virtual device that made the backup. A
  /// backup without a keychain has no items.
  func open(
    with password: PasswordFlags, for use: BackupPurpose = .reading
  ) throws(CommandError) -> UnlockedBackup {
    let hardware = try hardwareKey()
    return try open(with: try key(password), hardware, for: use)
  }

  /// Decrypts the backup with a key that was already derived.
  ///
  /// - Parameters:
  ///   - key: The key of the password.
  ///   - hardware: The hardware key; `nil` if there is none.
  ///   - use: The purpose. Every purpose except reading requires a keychain.
  func open(
    with key: BackupKey, _ hardware: HardwareKey?, for use: BackupPurpose = .reading
  ) throws(CommandError) -> UnlockedBackup {
    let hardware = usableKey(hardware, with: key)
    let opened = try reportingDetails { () throws(KeyhaulError) in
      try session.computing { () throws(KeyhaulError) in
        try archive.open(with: key, deviceKey: hardware?.key, for: use)
      }
    }
    if !opened.hardware.proven.isEmpty { reportDeviceKeySource(hardware) }
    return opened
  }

  /// Decrypts the backup for a caller that processes the items one by one without keeping them.
  func reader(
    with key: BackupKey, _ hardware: HardwareKey?, for use: BackupPurpose
  ) throws(CommandError) -> BackupItemReader {
    let hardware = usableKey(hardware, with: key)
    let reader = try explainingErrors { () throws(KeyhaulError) in
      try archive.reader(with: key, deviceKey: hardware?.key, for: use)
    }
    for note in reader.anomalies { report(note) }
    if !reader.hardware.proven.isEmpty { reportDeviceKeySource(hardware) }
    return reader
  }

  /// A backup that was decrypted for a target device. Names the source device if its key was available.
  struct BackupForDevice {
    let backup: UnlockedBackup
    let sourceDevice: String?
  }

  /// Decrypts the backup with the target's hardware key. The source device's key, if available, adds the names of the
  /// items that the target's key cannot decrypt.
  ///
  /// - Parameters:
  ///   - key: The key of the password.
  ///   - hardware: A key that may be the source device's.
  ///   - target: The target's key; `nil` if the target is a Simulator, which has none.
  ///   - use: The purpose: a plan or a restore.
  func open(
    with key: BackupKey, _ hardware: HardwareKey?, onto target: HardwareKey?, for use: BackupPurpose
  ) throws(CommandError) -> BackupForDevice {
    let sourceDevice = usableKey(hardware, with: key)
    let opened = try reportingDetails { () throws(KeyhaulError) in
      try archive.open(with: key, deviceKey: target?.key, sourceKey: sourceDevice?.key, for: use)
    }
    return BackupForDevice(backup: opened, sourceDevice: sourceDevice?.homeDevice)
  }

  /// Returns the class keys of the backup, for its files.
  func classKeys(with key: BackupKey, _ hardware: HardwareKey? = nil) throws(CommandError)
    -> ClassKeys
  {
    do throws(KeyhaulError) {
      return try key.classKeys(deviceKey: hardware?.key)
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
    for note in opened.anomalies { report(note) }
    var details = DecryptionDetails(of: loaded, in: session)
    details.record(opened.items)
    details.report(tryingTook: start.duration(to: .now))
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

  /// Reports that the password was accepted in another form than it was given.
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

  /// Reports before a restore that the backup has no seal. A seal on a backup without a password would not reveal an
  /// attack.
  func warnIfUnsealed() {
    guard archive.isEncrypted, archive.seal == nil else { return }
    session.info(
      "\(UntrustedText.escaped(name)) has no seal: an older keychain or manifest of the same backup would go unnoticed."
    )
  }

  private func report(_ note: BackupAnomaly) {
    switch note {
    case .digestDiffers:
      session.warn(
        "\(name)'s keychain file is not what was written", why: note.description,
        try: "verify shows the damage; items that can be decrypted are unchanged, but others may be missing")
    // These were reported when the backup was opened.
    case .unfinished, .propertyListUnreadable, .encryptionClaimed, .listJournalRead: return
    case .finding(let finding): if !archive.findings.contains(finding) { loaded.warn(about: finding, in: session) }
    case .statusMissing, .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .sizeDiffers:
      session.debug("\(UntrustedText.escaped(name)): \(note)")
    }
  }

  private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
    Int(start.duration(to: .now) / .milliseconds(1))
  }
}

extension LoadedBackup {
  /// The advice for a backup whose manifest falsely states that it has no password.
  static let adviceForDeniedPassword =
    "don't trust this copy; use the source device's own copy. If there is none, set IsEncrypted to true in the "
    + "Manifest.plist of another copy, and provide its password"

  /// Returns the error if a password is given for a backup without one. The user probably expects another backup, and
  /// anyone could have created this one.
  func unexpectedPassword(_ source: SecretSource.Origin, try advice: String? = nil) -> CommandError {
    if let denied = archive.findings.first(where: { $0.kind == .passwordDenied }) {
      return CommandError(
        .refused, "\(name) says that it has no password, but it was made with one", why: denied.description,
        try: Self.adviceForDeniedPassword)
    }
    if archive.isManifestMissing {
      return CommandError(
        .refused, "\(name) has no keybag to try a password on", why: BackupFinding.manifestMissing.description,
        try: "if you do mean this copy, \(source.removalAdvice)")
    }
    return CommandError(
      .refused, "\(name) has no password, but \(source.name) provides one",
      why: "it is not encrypted: it may be the wrong backup, and anyone may have made it",
      try: (source.isFlag ? advice : nil) ?? "if it is the right backup, \(source.removalAdvice)")
  }
}

extension BackupUnlocker {
  /// Returns the hardware key for decrypting the backup. If it decrypts nothing, the next one is its fallback:
  ///
  /// 1. the key that the user gave
  /// 2. the key of the device with which the backup is compared
  /// 3. the key of the virtual device that claims to be the backup's source
  ///
  /// - Parameters:
  ///   - compared: The key of the device with which the backup is compared.
  ///   - target: The target of a restore, whose key is tried anyway.
  func hardwareKey(
    comparedWith compared: HardwareKey? = nil, excluding target: DeviceSession? = nil
  ) throws(CommandError) -> HardwareKey? {
    let guessed = try compared.map { (compared) throws(CommandError) in
      HardwareKey(compared.source, compared.key, fallback: try sourceDeviceKey(excluding: target))
    }
    guard let key = try options.deviceKey(of: name, in: session) else {
      if let guessed { return guessed }
      return try sourceDeviceKey(excluding: target, isNeeded: true)
    }
    if let guessed { return HardwareKey(.given, key, fallback: guessed) }
    return HardwareKey(.given, key, fallback: try sourceDeviceKey(excluding: target))
  }

  /// Returns the hardware key to use: the given one, or a fallback if it decrypts none of the items that need a key.
  /// Warns if the user gave the wrong key.
  func usableKey(_ hardware: HardwareKey?, with key: BackupKey) -> HardwareKey? {
    guard let hardware, !hardware.isGuess || hardware.fallback != nil else { return hardware }
    // If the backup cannot be read at all, the caller reports that.
    guard let proof = try? proof(of: hardware, with: key), proof.isSameDevice == false else { return hardware }
    if !hardware.isGuess { warnThatKeyIsOfOtherDevice() }
    return hardware.fallback.map { usableKey($0, with: key) } ?? hardware
  }

  private func proof(
    of hardware: HardwareKey, with key: BackupKey
  ) throws(KeyhaulError) -> DeviceKeyEvidence {
    try archive.reader(with: key, deviceKey: hardware.key, for: .reading).hardware
  }

  func warnThatKeyIsOfOtherDevice() {
    isGivenKeyOfOtherDevice = true
    session.warn(
      "the given device key does not belong to the source device of \(name)",
      why: "it decrypts none of the items that need a device key", try: "the 0x835 key of that device")
  }

  /// Reports whose key decrypted items, if the user did not name it.
  func reportDeviceKeySource(_ hardware: HardwareKey?) {
    guard let device = hardware?.homeDevice else { return }
    // Without a password, every class needs the hardware key.
    let items = archive.isEncrypted ? "this-device-only items" : "its items"
    session.info("\(UntrustedText.escaped(name)): \(items) were decrypted with the key of \(device)")
  }

  /// Returns the key of the virtual device that claims to be the backup's source.
  ///
  /// - Parameters:
  ///   - target: The target of a restore, which is not considered.
  ///   - isNeeded: Whether no other key is available, so that an unreadable key causes a warning.
  func sourceDeviceKey(
    excluding target: DeviceSession? = nil, isNeeded: Bool = false
  ) throws(CommandError) -> HardwareKey? {
    let reportUnreadable: (VirtualDevice, KeyhaulError) -> Void = isNeeded ? warn : { _, _ in }
    guard let openDevice = try sourceDevice(excluding: target, onUnreadable: reportUnreadable) else { return nil }
    defer { openDevice.invalidate() }
    guard let key = try? openDevice.deviceKey() else { return nil }
    let isPublished = (try? openDevice.isHardwareKeyPublished(knownSeeds: WellKnownSeeds.all)) == true
    return HardwareKey(.homeDirectory(name: openDevice.name, isPublished: isPublished), key)
  }

  private func warn(aboutUnreadable device: VirtualDevice, _ error: KeyhaulError) {
    session.warn(
      "the key of \(device.name) cannot be read: this-device-only items in \(name) cannot be decrypted",
      why: "\(error.summary): \(error.reason)",
      try: error.code == .deviceBusy ? "run it again when no other process uses \(device.name)" : error.call,
      of: error.errno)
  }

  /// Returns an open session of the virtual device that claims to be the backup's source. The caller closes it.
  ///
  /// - Parameters:
  ///   - target: The target of a restore, which is not considered.
  ///   - onUnreadable: Called with each device that may be the source but cannot be read.
  func sourceDevice(
    excluding target: DeviceSession? = nil,
    onUnreadable: (VirtualDevice, KeyhaulError) -> Void = { _, _ in }
  ) throws(CommandError) -> DeviceSession? {
    guard let home = try? DeviceSet(of: session) else { return nil }
    do throws(KeyhaulError) {
      return try archive.sourceDevice(in: home, excluding: target, verb: session.commandName, onSkip: onUnreadable)
    } catch {
      throw CommandError(error, doing: "cannot look for the source device of \(name)")
    }
  }
}

extension BackupUnlocker {
  /// A source device that is available, with the items that could be read.
  struct AvailableSourceDevice {
    let name: String
    /// The backup, decrypted with the device's hardware key.
    let unlockedBackup: UnlockedBackup
    /// `nil` if the items could not be read.
    let items: SourceDeviceItems?
  }

  /// Returns the source device with its items: the one that the user named, or the target or a virtual device with the
  /// identifier that the backup states.
  ///
  /// - Parameters:
  ///   - opened: The backup, decrypted with the same key.
  ///   - named: The device that the user named; `nil` if none.
  ///   - target: The target of a restore; `nil` if there is none.
  ///   - key: The key of the password.
  /// - Returns: `nil` if the source device is not available.
  /// - Throws: An error if the named device cannot be read, or `.usage` if it did not make the backup.
  func sourceDevice(
    of opened: UnlockedBackup, named: DeviceSession?, orTarget target: DeviceSession?, with key: BackupKey
  ) throws -> AvailableSourceDevice? {
    ProcessMemory.releaseFreeMemory()
    if let named { return try confirmed(named, opened, with: key) }
    let target = target.flatMap { isClaimed(by: $0) ? $0 : nil }
    guard let device = try target ?? sourceDevice() else { return nil }
    defer { if target == nil { device.invalidate() } }
    let unlockedBackup = try openedAgain(opened, with: key, on: device)
    // Another device with the same identifier has nothing to do with the backup.
    guard unlockedBackup.isSameDevice != false else { return nil }
    do throws(KeyhaulError) {
      return AvailableSourceDevice(
        name: device.name, unlockedBackup: unlockedBackup, items: try SourceDeviceItems(of: unlockedBackup, on: device))
    } catch {
      session.info(
        UntrustedText.escaped(
          "Items that are on \(device.name) but not in \(name) cannot be listed: \(error.reason). Try: \(error.call)."))
      return AvailableSourceDevice(name: device.name, unlockedBackup: unlockedBackup, items: nil)
    }
  }

  private func isClaimed(by device: DeviceSession) -> Bool {
    device.record.udid.lowercased() == archive.device.identifier?.lowercased()
  }

  /// Decrypts the backup again with a device's hardware key. Items that are already decrypted are reused.
  private func openedAgain(
    _ opened: UnlockedBackup, with key: BackupKey, on device: DeviceSession
  ) throws -> UnlockedBackup {
    let deviceKey: DeviceKey? = try device.deviceKey()
    do throws(KeyhaulError) {
      return try archive.open(with: key, deviceKey: deviceKey, for: .reading, reusing: opened)
    } catch {
      throw CommandError(backup: error, name: name)
    }
  }

  /// Returns the device that the user named, if it made the backup. Its key proves this, or its identifier if no item
  /// needs a key.
  private func confirmed(
    _ device: DeviceSession, _ opened: UnlockedBackup, with key: BackupKey
  ) throws -> AvailableSourceDevice {
    let unlockedBackup = try openedAgain(opened, with: key, on: device)
    let isClaimed = isClaimed(by: device)
    guard unlockedBackup.isSameDevice ?? isClaimed else {
      let reason =
        unlockedBackup.isSameDevice == false
        ? "its key decrypts none of the items that need a device's hardware key"
        : "its identifier is \(device.record.udid); the backup names \(archive.device.identifier ?? "none")"
      throw CommandError.usage(
        "\(device.name) did not make \(name)", why: reason, try: "the source device, or leave --source out")
    }
    do throws(KeyhaulError) {
      return AvailableSourceDevice(
        name: device.name, unlockedBackup: unlockedBackup, items: try SourceDeviceItems(of: unlockedBackup, on: device))
    } catch {
      throw CommandError(error, using: device.name)
    }
  }
}

extension BackupUnlocker {
  /// Checks the keybag's iteration count before asking for a password. Rejects a count over the limit, and asks about
  /// an unusually high one.
  func checkRounds() throws(CommandError) {
    do throws(KeyhaulError) {
      try BackupKey.checkRounds(of: archive, acceptingAtMost: options.maximumIterations)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    try confirmIterations()
  }

  /// Asks before deriving a key with far more iterations than any real keybag has. Does not ask if the user set the
  /// limit.
  ///
  /// - Throws: `.refused` if Keyhaul cannot ask; `.failed` if the user does not agree.
  private func confirmIterations() throws(CommandError) {
    guard !options.hasIterationLimit, let parameters = try? archive.keybag.derivationParameters(),
      let unusual = parameters.excessiveIterations
    else { return }
    guard !isIterationCountAccepted else { return }
    let warning = Self.iterationWarning(unusual, duration: try? parameters.estimatedDuration())
    guard let terminal = session.terminal() else {
      throw CommandError(
        .refused, "refused to open \(name)", why: "it \(warning); \(session.missingTerminal)",
        try: "don't trust this file; --max-rounds \(parameters.totalRounds) accepts this many iterations")
    }
    if session.common.yes {
      session.warn("\(name) \(warning)", try: "don't trust this file")
    } else {
      try session.ask("\(name) \(warning). Go on?", on: terminal)
    }
    isIterationCountAccepted = true
  }

  /// Returns a clause such as "asks for 4,000,000 iterations of key derivation, 400 times the usual 10,000; about 12 s
  /// on this machine".
  private static func iterationWarning(_ unusual: ExcessiveIterationCount, duration: Duration?) -> String {
    let time = duration.map { "; \(HumanReadable.estimate($0)) on this machine" } ?? ""
    return "asks for \(HumanReadable.grouped(Int(unusual.rounds))) iterations of key derivation, "
      + "\(HumanReadable.grouped(Int(unusual.multiple))) times the usual \(HumanReadable.grouped(Int(unusual.usual)))\(time)"
  }
}

extension Keybag {
  /// The iterations of both derivations.
  var totalIterations: Int { Int(iterations ?? 0) + Int(secondRound?.rounds ?? 0) }
}
