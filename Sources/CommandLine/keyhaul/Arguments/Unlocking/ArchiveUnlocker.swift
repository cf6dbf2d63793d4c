import KeyhaulKit
import Reports

/// Opens one archive, the same way for every verb: its password's key is derived once, and everything else follows from
/// that key.
final class ArchiveUnlocker {
  let named: NamedArchive
  let options: OpeningOptions
  let session: Session
  /// Whether somebody has agreed to the work that its keybag asks for.
  var isWorkAccepted = false
  /// How long deriving the last key took; `nil` before one was derived.
  private(set) var derivationTime: Duration?

  init(_ named: NamedArchive, _ options: OpeningOptions, in session: Session) {
    self.named = named
    self.options = options
    self.session = session
  }

  var name: String { named.name }
  var archive: BackupArchive { named.archive }

  // MARK: The password's key

  /// Refuses too much work, gets the password where the archive has one, and derives its key.
  ///
  /// - Parameter advice: What to do instead of a flag that gives a password for an archive without one.
  /// - Throws: `.refused` over the limit of rounds, before anybody is asked, and where a password is given for an archive
  ///   without one; `.wrongPassword`; `.damaged` where the keybag cannot be used at all.
  func key<Name>(_ flags: SecretFlags<Name>, needlessPassword advice: String? = nil) throws(CommandFailure)
    -> ArchiveKey
  {
    try checkRounds()
    guard archive.isEncrypted else {
      guard let source = try flags.givenSource(environment: session.environment) else { return try key(password: nil) }
      // What says that it is encrypted and is not may have a keybag that is.
      guard archive.hasFalseClaim, !opensWithoutPassword() else { throw named.needlessPassword(source, try: advice) }
      if let key = try offeredKey() { return key }
      return try session.withPassword(flags, of: name) { (password) throws(CommandFailure) in
        try key(password: password)
      }
    }
    if let key = try offeredKey() { return key }
    return try session.withPassword(flags, of: name) { (password) throws(CommandFailure) in
      try key(password: password)
    }
  }

  /// Whether the keybag opens with the empty password, as that of a backup without one does.
  private func opensWithoutPassword() -> Bool {
    do throws(ArchivedKeychainError) {
      return try ArchiveKey(of: archive, password: nil, acceptingAtMost: options.rounds).keybagFault == nil
    } catch {
      return false
    }
  }

  /// The key of the first password that fits, of those that are available for one of many backups; `nil` where none is.
  private func offeredKey() throws(CommandFailure) -> ArchiveKey? {
    let offered = session.offeredPasswords
    var wrong: CommandFailure?
    for password in offered {
      do throws(CommandFailure) {
        return try key(password: password.secret(), remembering: password.keys)
      } catch {
        guard error.status == .wrongPassword else { throw error }
        wrong = error
      }
    }
    guard var failure = wrong else { return nil }
    if offered.count > 1 {
      failure.message = "cannot open \(name): none of \(Amounts.count(offered.count, "password")) is right"
      failure.why = Amounts.list(offered.map(\.origin))
    }
    throw failure
  }

  /// The same with a password that is available.
  ///
  /// - Parameter keys: Those of this password that were derived before.
  func key(
    password: consuming Secret?, remembering keys: DerivedKeys? = nil
  ) throws(CommandFailure) -> ArchiveKey {
    let start = ContinuousClock.now
    let key = try deriving(rounds: archive.keybag.totalRounds) { (progress) throws(ArchivedKeychainError) in
      try ArchiveKey(
        of: archive, password: password, acceptingAtMost: options.rounds, remembering: keys, progress: progress)
    }
    derivationTime = start.duration(to: .now)
    tell(key.passwordForm)
    session.detail("\(HostileText.shown(name)): key derived in \(Self.milliseconds(since: start)) ms", level: 2)
    return key
  }

  /// Shows that a key of the archive is being derived; errors are told in the words of what the user named.
  func deriving<Value: ~Copyable, Failure: ExplainedError>(
    rounds: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(Failure) {
      return try session.deriving(rounds: rounds, body)
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: name)
    }
  }

  // MARK: What it opens

  /// Opens the archive to look at it, with the hardware key that the user gives or that of a virtual device which made
  /// the backup. One in which no keychain was stored has no items.
  func open(
    with password: PasswordFlags, for use: ArchiveUse = .reading
  ) throws(CommandFailure) -> OpenedArchive {
    let hardware = try hardwareKey()
    return try open(with: try key(password), hardware, for: use)
  }

  /// The same with a key that is available.
  ///
  /// - Parameter use: What it is opened for; all but a look at it needs a keychain.
  func open(
    with key: borrowing ArchiveKey, _ hardware: HardwareKey?, for use: ArchiveUse = .reading
  ) throws(CommandFailure) -> OpenedArchive {
    let hardware = fitting(hardware, with: key)
    let opened = try tried { () throws(ArchivedKeychainError) in
      try OpenedArchive(archive, key: key, deviceKey: hardware?.key(), for: use)
    }
    if !opened.hardware.proven.isEmpty { tell(ofProven: hardware) }
    return opened
  }

  /// The same for whoever goes through the items and holds none of them.
  func reader(
    with password: PasswordFlags, for use: ArchiveUse
  ) throws(CommandFailure) -> ArchivedItemReader {
    let hardware = try hardwareKey()
    return try reader(with: try key(password), hardware, for: use)
  }

  /// The same with a key that is available.
  func reader(
    with key: borrowing ArchiveKey, _ hardware: HardwareKey?, for use: ArchiveUse
  ) throws(CommandFailure) -> ArchivedItemReader {
    let hardware = fitting(hardware, with: key)
    let reader = try explained { () throws(ArchivedKeychainError) in
      try ArchivedItemReader(archive, key: key, deviceKey: hardware?.key(), for: use)
    }
    for note in reader.notes { tell(note) }
    if !reader.hardware.proven.isEmpty { tell(ofProven: hardware) }
    return reader
  }

  /// An archive opened for a device, and the device that made it, where its key was available.
  struct OpenedForDevice {
    let archive: OpenedArchive
    let maker: String?
  }

  /// Opens the archive for a device: with the key of its password, with the device's hardware key, and for the names of
  /// what that one does not open with the key of the device that made it.
  ///
  /// - Parameters:
  ///   - key: That of the password.
  ///   - hardware: The key of the device that made it, as far as one is available.
  ///   - device: `nil` where the archive is only looked at: then the maker's key takes its place.
  func open(
    with key: borrowing ArchiveKey, _ hardware: HardwareKey?, onto device: DeviceSession?
  ) throws -> OpenedForDevice {
    guard let device else {
      return OpenedForDevice(archive: try open(with: key, hardware, for: .planning), maker: nil)
    }
    return try open(with: key, hardware, onto: HardwareKey(.named, try device.deviceKey()), for: .planning)
  }

  /// The same for a device that need not be held meanwhile: by its hardware key.
  ///
  /// - Parameters:
  ///   - use: A plan of a restore, or the restore.
  ///   - holdsItems: Whether the items stay in memory: for whoever asks for more than to restore them.
  func open(
    with key: borrowing ArchiveKey, _ hardware: HardwareKey?, onto target: HardwareKey, for use: ArchiveUse,
    holdsItems: Bool = true
  ) throws(CommandFailure) -> OpenedForDevice {
    let maker = fitting(hardware, with: key)
    let opened = try tried { () throws(ArchivedKeychainError) in
      try OpenedArchive(
        archive, key: key, deviceKey: target.key(), makerKey: maker?.key(), for: use, holdsItems: holdsItems)
    }
    return OpenedForDevice(archive: opened, maker: maker?.homeDevice)
  }

  /// The class keys of the archive, for its files.
  func classKeys(with key: borrowing ArchiveKey, _ hardware: HardwareKey? = nil) throws(CommandFailure)
    -> ClassKeys
  {
    do throws(ArchivedKeychainError) {
      return try key.classKeys(deviceKey: hardware?.key())
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  private func tried(
    _ open: () throws(ArchivedKeychainError) -> OpenedArchive
  ) throws(CommandFailure) -> OpenedArchive {
    let start = ContinuousClock.now
    let opened = try explained(open)
    for note in opened.notes { tell(note) }
    var details = OpeningDetails(of: named, in: session)
    details.take(opened.items)
    details.say(tryingTook: start.duration(to: .now))
    return opened
  }

  private func explained<Value: ~Copyable>(
    _ open: () throws(ArchivedKeychainError) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(ArchivedKeychainError) {
      return try open()
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: name)
    }
  }

  // MARK: What is said

  /// A password that fitted in another form than it was given in was given in the wrong one.
  private func tell(_ form: PasswordForm) {
    switch form {
    case .asGiven: return
    case .withoutMark:
      session.note("\(HostileText.shown(name)): the password was accepted without its byte order mark")
    case .composed:
      session.note(
        "\(HostileText.shown(name)): the password was accepted with composed accents (Unicode form NFC)")
    case .decomposed:
      session.note(
        "\(HostileText.shown(name)): the password was accepted with decomposed accents (Unicode form NFD)")
    }
  }

  /// Said before a restore: what nobody could see. Of a backup without a password a seal would show no attack either.
  func tellOfMissingSeal() {
    guard archive.isEncrypted, archive.seal == nil else { return }
    session.note(
      "\(HostileText.shown(name)) has no seal: an older keychain or manifest of the same backup would not be noticed.")
  }

  private func tell(_ note: ArchiveNote) {
    switch note {
    case .digestDiffers:
      session.warn(
        "\(name)'s keychain file is not what was written", why: note.description,
        try: "verify shows the damage; items that can be decrypted are unchanged, but others may be missing")
    // Said when the archive was opened.
    case .unfinished, .propertyListUnreadable, .encryptionClaimed, .listJournalRead: return
    case .finding(let finding): if !archive.findings.contains(finding) { named.warn(of: finding, in: session) }
    case .statusMissing, .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .sizeDiffers:
      session.detail("\(HostileText.shown(name)): \(note)")
    }
  }

  private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
    Int(start.duration(to: .now) / .milliseconds(1))
  }
}

extension NamedArchive {
  /// What to do with a backup whose manifest alone says that it has no password.
  static let adviceForDeniedPassword =
    "don't trust this copy; use the source device's own copy. If there is none, set IsEncrypted to true in the "
    + "Manifest.plist of another copy, and give its password"

  /// A password that is given for an archive without one: whoever gives it expects another archive, and what is not
  /// protected by it anybody can have put in its place.
  func needlessPassword(_ source: SecretSource.Named, try advice: String? = nil) -> CommandFailure {
    if let denied = archive.findings.first(where: { $0.kind == .passwordDenied }) {
      return CommandFailure(
        .refused, "\(name) says that it has no password, but it was made with one", why: denied.description,
        try: Self.adviceForDeniedPassword)
    }
    if archive.isManifestMissing {
      return CommandFailure(
        .refused, "\(name) has no keybag to try a password on", why: ArchiveFinding.manifestMissing.description,
        try: "if this copy is meant, \(source.withoutIt)")
    }
    return CommandFailure(
      .refused, "\(name) has no password, but \(source.name) gives one",
      why: "it is not encrypted: it may be the wrong backup, and anyone may have made it",
      try: (source.isFlag ? advice : nil) ?? "if it is the right backup, \(source.withoutIt)")
  }
}
