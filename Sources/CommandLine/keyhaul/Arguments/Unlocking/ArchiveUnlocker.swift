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
  /// Whether the given device key failed to decrypt every item that needs one.
  private(set) var isGivenKeyForeign = false

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
    -> BackupKey
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
    do throws(KeyhaulError) {
      return try archive.unlock(password: nil, acceptingAtMost: options.rounds).keybagFault == nil
    } catch {
      return false
    }
  }

  /// The key of the first password that fits, of those that are available for one of many backups; `nil` if none is.
  private func offeredKey() throws(CommandFailure) -> BackupKey? {
    let offered = session.offeredPasswords
    var wrong: CommandFailure?
    for password in offered {
      do throws(CommandFailure) {
        let key = try key(password: password.secret(), remembering: password.keys)
        if key.keybagFault == nil { session.openingPassword = password }
        return key
      } catch {
        guard error.status == .wrongPassword else { throw error }
        wrong = error
      }
    }
    guard var failure = wrong else { return nil }
    if offered.count > 1 {
      failure.message = "cannot open \(name): none of \(HumanReadable.count(offered.count, "password")) is right"
      failure.why = HumanReadable.list(offered.map(\.origin))
    }
    throw failure
  }

  /// The same with a password that is available.
  ///
  /// - Parameter keys: Those of this password that were derived before.
  func key(
    password: consuming Secret?, remembering keys: DerivedKeyCache? = nil
  ) throws(CommandFailure) -> BackupKey {
    let start = ContinuousClock.now
    let key = try deriving(rounds: archive.keybag.totalRounds) { (progress) throws(KeyhaulError) in
      try archive.unlock(
        password: password, acceptingAtMost: options.rounds, remembering: keys, progress: progress)
    }
    derivationTime = start.duration(to: .now)
    tell(key.passwordForm)
    session.detail("\(UntrustedText.escaped(name)): key derived in \(Self.milliseconds(since: start)) ms", level: 2)
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
    with password: PasswordFlags, for use: BackupPurpose = .reading
  ) throws(CommandFailure) -> UnlockedBackup {
    let hardware = try hardwareKey()
    return try open(with: try key(password), hardware, for: use)
  }

  /// The same with a key that is available.
  ///
  /// - Parameter use: What it is opened for; all but a look at it needs a keychain.
  func open(
    with key: BackupKey, _ hardware: HardwareKey?, for use: BackupPurpose = .reading
  ) throws(CommandFailure) -> UnlockedBackup {
    let hardware = fitting(hardware, with: key)
    let opened = try tried { () throws(KeyhaulError) in
      try session.computing { () throws(KeyhaulError) in
        try archive.open(with: key, deviceKey: hardware?.key, for: use)
      }
    }
    if !opened.hardware.proven.isEmpty { tell(ofProven: hardware) }
    return opened
  }

  /// Opens the archive for a caller that goes through the items and keeps none of them.
  func reader(
    with key: BackupKey, _ hardware: HardwareKey?, for use: BackupPurpose
  ) throws(CommandFailure) -> BackupItemReader {
    let hardware = fitting(hardware, with: key)
    let reader = try explained { () throws(KeyhaulError) in
      try archive.reader(with: key, deviceKey: hardware?.key, for: use)
    }
    for note in reader.notes { tell(note) }
    if !reader.hardware.proven.isEmpty { tell(ofProven: hardware) }
    return reader
  }

  /// An archive opened for a device, and the device that made it, where its key was available.
  struct OpenedForDevice {
    let archive: UnlockedBackup
    let sourceDevice: String?
  }

  /// Opens the archive with the target's hardware key. The source device's key, if it is available, gives the names of
  /// the items that the target's key cannot decrypt.
  ///
  /// - Parameters:
  ///   - key: The key of the password.
  ///   - hardware: A key that may be the source device's.
  ///   - target: The target's key; `nil` if the target is a Simulator, which has none.
  ///   - use: A plan of a restore, or the restore.
  func open(
    with key: BackupKey, _ hardware: HardwareKey?, onto target: HardwareKey?, for use: BackupPurpose
  ) throws(CommandFailure) -> OpenedForDevice {
    let sourceDevice = fitting(hardware, with: key)
    let opened = try tried { () throws(KeyhaulError) in
      try archive.open(with: key, deviceKey: target?.key, sourceKey: sourceDevice?.key, for: use)
    }
    return OpenedForDevice(archive: opened, sourceDevice: sourceDevice?.homeDevice)
  }

  /// The class keys of the archive, for its files.
  func classKeys(with key: BackupKey, _ hardware: HardwareKey? = nil) throws(CommandFailure)
    -> ClassKeys
  {
    do throws(KeyhaulError) {
      return try key.classKeys(deviceKey: hardware?.key)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  private func tried(
    _ open: () throws(KeyhaulError) -> UnlockedBackup
  ) throws(CommandFailure) -> UnlockedBackup {
    let start = ContinuousClock.now
    let opened = try explained(open)
    for note in opened.notes { tell(note) }
    var details = OpeningDetails(of: named, in: session)
    details.take(opened.items)
    details.say(tryingTook: start.duration(to: .now))
    return opened
  }

  private func explained<Value: ~Copyable>(
    _ open: () throws(KeyhaulError) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(KeyhaulError) {
      return try open()
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: name)
    }
  }

  // MARK: What is said

  /// A password that fitted in another form than it was given in was given in the wrong one.
  private func tell(_ form: PasswordNormalization) {
    switch form {
    case .asTyped: return
    case .withoutMark:
      session.note("\(UntrustedText.escaped(name)): the password was accepted without its byte order mark")
    case .composed:
      session.note(
        "\(UntrustedText.escaped(name)): the password was accepted with composed accents (Unicode form NFC)")
    case .decomposed:
      session.note(
        "\(UntrustedText.escaped(name)): the password was accepted with decomposed accents (Unicode form NFD)")
    }
  }

  /// Said before a restore: what nobody could see. Of a backup without a password a seal would show no attack either.
  func tellOfMissingSeal() {
    guard archive.isEncrypted, archive.seal == nil else { return }
    session.note(
      "\(UntrustedText.escaped(name)) has no seal: an older keychain or manifest of the same backup would go unnoticed."
    )
  }

  private func tell(_ note: BackupAnomaly) {
    switch note {
    case .digestDiffers:
      session.warn(
        "\(name)'s keychain file is not what was written", why: note.description,
        try: "verify shows the damage; items that can be decrypted are unchanged, but others may be missing")
    // Said when the archive was opened.
    case .unfinished, .propertyListUnreadable, .encryptionClaimed, .listJournalRead: return
    case .finding(let finding): if !archive.findings.contains(finding) { named.warn(of: finding, in: session) }
    case .statusMissing, .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .sizeDiffers:
      session.detail("\(UntrustedText.escaped(name)): \(note)")
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
    + "Manifest.plist of another copy, and provide its password"

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
        .refused, "\(name) has no keybag to try a password on", why: BackupFinding.manifestMissing.description,
        try: "if you do mean this copy, \(source.withoutIt)")
    }
    return CommandFailure(
      .refused, "\(name) has no password, but \(source.name) provides one",
      why: "it is not encrypted: it may be the wrong backup, and anyone may have made it",
      try: (source.isFlag ? advice : nil) ?? "if it is the right backup, \(source.withoutIt)")
  }
}

extension ArchiveUnlocker {
  /// The hardware key to open the archive with: the one that the user gives, or else that of the device which the archive
  /// is compared with, or else that of a virtual device which calls itself the backup's maker. Each has those behind it in
  /// reserve, for a backup of which it opens nothing.
  ///
  /// - Parameter target: The device that the items should go to, whose own key is tried anyway.
  func hardwareKey(
    comparedWith compared: HardwareKey? = nil, excluding target: DeviceSession? = nil
  ) throws(CommandFailure) -> HardwareKey? {
    let guessed = try compared.map { (compared) throws(CommandFailure) in
      HardwareKey(compared.source, compared.key, otherwise: try sourceDeviceKey(excluding: target))
    }
    guard let key = try options.deviceKey(of: name, in: session) else {
      if let guessed { return guessed }
      return try sourceDeviceKey(excluding: target, isNeeded: true)
    }
    if let guessed { return HardwareKey(.given, key, otherwise: guessed) }
    return HardwareKey(.given, key, otherwise: try sourceDeviceKey(excluding: target))
  }

  /// The hardware key to go on with, once the password's key is there to try it: where one opens none of the
  /// items that need it, the key that would be used without it takes its place; of one that the user gave that is said.
  func fitting(_ hardware: HardwareKey?, with key: BackupKey) -> HardwareKey? {
    guard let hardware, !hardware.isGuess || hardware.otherwise != nil else { return hardware }
    // What keeps the archive from being opened at all is told by whoever opens it.
    guard let proof = try? proof(of: hardware, with: key), proof.isSameDevice == false else { return hardware }
    if !hardware.isGuess { warnOfForeignKey() }
    return hardware.otherwise.map { fitting($0, with: key) } ?? hardware
  }

  private func proof(
    of hardware: HardwareKey, with key: BackupKey
  ) throws(KeyhaulError) -> DeviceKeyEvidence {
    try archive.reader(with: key, deviceKey: hardware.key, for: .reading).hardware
  }

  func warnOfForeignKey() {
    isGivenKeyForeign = true
    session.warn(
      "the given device key does not belong to the source device of \(name)",
      why: "it decrypts none of the items that need a device key", try: "the 0x835 key of that device")
  }

  /// Says whose key opened items, where the user did not name it.
  func tell(ofProven hardware: HardwareKey?) {
    guard let device = hardware?.homeDevice else { return }
    // Without a password the hardware binds every class.
    let items = archive.isEncrypted ? "this-device-only items" : "its items"
    session.note("\(UntrustedText.escaped(name)): \(items) were decrypted with the key of \(device)")
  }

  /// The key of the device of the home directory that calls itself the backup's maker.
  ///
  /// - Parameter isNeeded: Whether there is no other key, so that one which cannot be read is missed, and this is said.
  func sourceDeviceKey(
    excluding target: DeviceSession? = nil, isNeeded: Bool = false
  ) throws(CommandFailure) -> HardwareKey? {
    let told: (VirtualDevice, KeyhaulError) -> Void = isNeeded ? warn : { _, _ in }
    guard let openDevice = try sourceDevice(excluding: target, passedOver: told) else { return nil }
    defer { openDevice.invalidate() }
    guard let key = try? openDevice.deviceKey() else { return nil }
    let isPublished = (try? openDevice.isHardwareKeyPublished(knownSeeds: PublishedSeeds.all)) == true
    return HardwareKey(.homeDirectory(name: openDevice.name, isPublished: isPublished), key)
  }

  private func warn(ofUnreadable device: VirtualDevice, _ error: KeyhaulError) {
    session.warn(
      "the key of \(device.name) cannot be read: this-device-only items in \(name) cannot be decrypted",
      why: "\(error.summary): \(error.reason)",
      try: error.code == .deviceBusy ? "run it again when no other process uses \(device.name)" : error.call,
      of: error.errno)
  }

  /// The device of the home directory that calls itself the backup's maker, held for reading; the caller ends it.
  func sourceDevice(
    excluding target: DeviceSession? = nil,
    passedOver: (VirtualDevice, KeyhaulError) -> Void = { _, _ in }
  ) throws(CommandFailure) -> DeviceSession? {
    guard let home = try? DeviceSet(of: session) else { return nil }
    do throws(KeyhaulError) {
      return try archive.sourceDevice(in: home, excluding: target, verb: session.verb, passedOver: passedOver)
    } catch {
      throw CommandFailure(error, doing: "cannot look for the source device of \(name)")
    }
  }
}

extension ArchiveUnlocker {
  /// The device that made the archive, as far as it is available.
  struct Maker {
    let name: String
    /// The archive, opened with the device's hardware key.
    let returning: UnlockedBackup
    /// `nil` if its items could not be read.
    let items: SourceDeviceItems?
  }

  /// Asks the device that made the archive for its items: the one that the user names, or else the target or a device of
  /// the home directory that calls itself as the archive calls its maker.
  ///
  /// - Parameter opened: The archive as it was opened with the same key.
  /// - Throws: What keeps the device that the user names from being read, and `.usage` where it is not the maker.
  func sourceDevice(
    of opened: UnlockedBackup, named: DeviceSession?, orTarget target: DeviceSession?, with key: BackupKey
  ) throws -> Maker? {
    ProcessMemory.giveBackFreeMemory()
    if let named { return try proven(named, opened, with: key) }
    let target = target.flatMap { isClaimed(by: $0) ? $0 : nil }
    guard let device = try target ?? sourceDevice() else { return nil }
    defer { if target == nil { device.invalidate() } }
    let returning = try self.opened(opened, with: key, device)
    // Another device under its name: nothing of it has to do with the archive.
    guard returning.isSameDevice != false else { return nil }
    do throws(KeyhaulError) {
      return Maker(name: device.name, returning: returning, items: try SourceDeviceItems(of: returning, on: device))
    } catch {
      session.note(
        UntrustedText.escaped(
          "Items that are on \(device.name) but not in \(name) cannot be listed: \(error.reason). Try: \(error.call)."))
      return Maker(name: device.name, returning: returning, items: nil)
    }
  }

  private func isClaimed(by device: DeviceSession) -> Bool {
    device.record.udid.lowercased() == archive.device.identifier?.lowercased()
  }

  private func opened(
    _ opened: UnlockedBackup, with key: BackupKey, _ device: DeviceSession
  ) throws -> UnlockedBackup {
    let deviceKey: DeviceKey? = try device.deviceKey()
    do throws(KeyhaulError) {
      return try archive.open(with: key, deviceKey: deviceKey, for: .reading, reusing: opened)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// The device that the user says made the archive: its key proves it, or where none of the items needs one, its
  /// identifier says the same as the archive's.
  private func proven(
    _ device: DeviceSession, _ opened: UnlockedBackup, with key: BackupKey
  ) throws -> Maker {
    let returning = try self.opened(opened, with: key, device)
    let isClaimed = isClaimed(by: device)
    guard returning.isSameDevice ?? isClaimed else {
      let fact =
        returning.isSameDevice == false
        ? "its key decrypts none of the items that need a device's hardware key"
        : "its identifier is \(device.record.udid); the backup names \(archive.device.identifier ?? "none")"
      throw CommandFailure.usage(
        "\(device.name) did not make \(name)", why: fact, try: "the source device, or leave --source out")
    }
    do throws(KeyhaulError) {
      return Maker(name: device.name, returning: returning, items: try SourceDeviceItems(of: returning, on: device))
    } catch {
      throw CommandFailure(error, using: device.name)
    }
  }
}

extension ArchiveUnlocker {
  /// Refuses a keybag that asks for too much work, and asks about one that asks for far more than is usual, before anybody
  /// is asked for a password.
  func checkRounds() throws(CommandFailure) {
    do throws(KeyhaulError) {
      try BackupKey.checkRounds(of: archive, acceptingAtMost: options.rounds)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    try confirmRounds()
  }

  /// Asks before a keybag gets more work done than any real one asks for. A user who named a limit has answered.
  ///
  /// - Throws: `.refused` where nobody can be asked; `.failed` after a no.
  private func confirmRounds() throws(CommandFailure) {
    guard !options.namesRounds, let parameters = try? archive.keybag.derivationParameters(),
      let unusual = parameters.excessiveIterations
    else { return }
    guard !isWorkAccepted else { return }
    let demand = Self.demand(unusual, duration: try? parameters.estimatedDuration())
    guard let terminal = session.terminal() else {
      throw CommandFailure(
        .refused, "refused to open \(name)", why: "it \(demand); \(session.missingTerminal)",
        try: "don't trust this file; --max-rounds \(parameters.totalRounds) accepts this many iterations")
    }
    if session.common.yes {
      session.warn("\(name) \(demand)", try: "don't trust this file")
    } else {
      try session.ask("\(name) \(demand). Go on?", on: terminal)
    }
    isWorkAccepted = true
  }

  /// "asks for 4,000,000 rounds of key derivation, 400 times the usual 10,000; about 12 s on this machine".
  private static func demand(_ unusual: ExcessiveIterationCount, duration: Duration?) -> String {
    let time = duration.map { "; \(HumanReadable.estimate($0)) on this machine" } ?? ""
    return "asks for \(HumanReadable.grouped(Int(unusual.rounds))) iterations of key derivation, "
      + "\(HumanReadable.grouped(Int(unusual.multiple))) times the usual \(HumanReadable.grouped(Int(unusual.usual)))\(time)"
  }
}

extension Keybag {
  /// The iterations of both derivations, as the header asks for them.
  var totalRounds: Int { Int(iterations ?? 0) + Int(secondRound?.rounds ?? 0) }
}
