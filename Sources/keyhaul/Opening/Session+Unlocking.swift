import ArchivedKeychain
import BackupArchive
import CommandSession
import DataProtection
import KeychainFormats
import VirtualDevice

/// How every verb opens an archive: the password's key is derived once, and everything else follows from it.
extension Session {
  // MARK: The password's key

  /// Refuses too much work, gets the password where the archive has one, and derives its key.
  ///
  /// - Parameter advice: What to do instead of a flag that gives a password for an archive without one.
  /// - Throws: `.refused` over the limit of rounds, before anybody is asked, and where a password is given for an archive
  ///   without one; `.wrongPassword`; `.damaged` where the keybag cannot be used at all.
  func key<Name>(
    of named: NamedArchive, _ flags: SecretFlags<Name>, _ options: OpeningOptions,
    needless advice: String? = nil
  ) throws(CommandFailure) -> ArchiveKey {
    try checkRounds(of: named, accepting: options)
    guard named.archive.isEncrypted else {
      if let source = try flags.givenSource(environment: environment) {
        throw needless(source, for: named, try: advice)
      }
      return try key(of: named, password: nil, options)
    }
    return try withPassword(flags, of: named.name) { (password) throws(CommandFailure) in
      try key(of: named, password: password, options)
    }
  }

  /// A password that is given for an archive without one: whoever gives it expects another archive, and what is not
  /// protected by it anybody can have put in its place.
  func needless(_ source: SecretSource.Named, for named: NamedArchive, try advice: String? = nil) -> CommandFailure {
    CommandFailure(
      .refused, "\(named.name) has no password, and \(source.name) names one",
      why: "it is not encrypted: it may not be the backup that is meant, and anybody can have made it",
      try: source.isFlag ? advice ?? "if it is meant, \(source.withoutIt)" : "if it is meant, \(source.withoutIt)")
  }

  /// The same with a password that is at hand.
  func key(
    of named: NamedArchive, password: consuming Secret?, _ options: OpeningOptions
  ) throws(CommandFailure) -> ArchiveKey {
    let start = ContinuousClock.now
    let key = try deriving(rounds: named.archive.keybag.totalRounds, of: named.name) {
      (progress) throws(ArchivedKeychainError) in
      try ArchiveKey(
        of: named.archive, password: password, acceptingAtMost: options.rounds, progress: progress)
    }
    tell(key.passwordForm, of: named.name)
    detail("\(HostileText.shown(named.name)): key derived in \(Self.milliseconds(since: start)) ms", level: 2)
    return key
  }

  /// Refuses a keybag that asks for too much work, and asks about one that asks for far more than is usual, before anybody
  /// is asked for a password.
  func checkRounds(of named: NamedArchive, accepting options: OpeningOptions) throws(CommandFailure) {
    do throws(ArchivedKeychainError) {
      try ArchiveKey.checkRounds(of: named.archive, acceptingAtMost: options.rounds)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    try confirmRounds(of: named, accepting: options)
  }

  // MARK: What it opens

  /// Opens an archive to look at it, with the hardware key that the user gives or that of a virtual device which made the
  /// backup. One in which no keychain was stored has no items.
  func unlock(
    _ named: NamedArchive, with options: UnlockingOptions
  ) throws(CommandFailure) -> OpenedArchive {
    let hardware = try hardwareKey(of: named, options.opening)
    let key = try key(of: named, options.password, options.opening)
    return try unlock(named, with: key, hardware)
  }

  /// The same with a key that is at hand.
  ///
  /// - Parameter requiresKeychain: Whether one in which no keychain was stored is an error.
  func unlock(
    _ named: NamedArchive, with key: borrowing ArchiveKey, _ hardware: HardwareKey?,
    requiresKeychain: Bool = false
  ) throws(CommandFailure) -> OpenedArchive {
    let hardware = fitting(hardware, named, with: key)
    let opened = try tried(named) { () throws(ArchivedKeychainError) in
      try OpenedArchive(
        named.archive, key: key, deviceKey: hardware?.key(), requiresKeychain: requiresKeychain)
    }
    if !opened.hardware.proven.isEmpty { tell(ofProven: hardware, archive: named.name) }
    return opened
  }

  /// An archive opened for a device, and the device that made it, where its key was at hand.
  struct OpenedForDevice {
    let archive: OpenedArchive
    let maker: String?
  }

  /// Opens an archive for a device: with its password, with the device's hardware key, and for the names of what that
  /// one does not open with the key of the device that made it.
  ///
  /// - Parameter device: `nil` where the archive is only looked at: then the maker's key takes its place.
  func unlock(
    _ named: NamedArchive, with options: UnlockingOptions, onto device: DeviceSession?
  ) throws -> OpenedForDevice {
    let hardware = try hardwareKey(of: named, options.opening, besides: device)
    let key = try key(of: named, options.password, options.opening)
    guard let device else {
      return OpenedForDevice(
        archive: try unlock(named, with: key, hardware, requiresKeychain: true), maker: nil)
    }
    let deviceKey: DeviceKey? = try device.deviceKey()
    let maker = fitting(hardware, named, with: key)
    let opened = try tried(named) { () throws(ArchivedKeychainError) in
      try OpenedArchive(named.archive, key: key, deviceKey: deviceKey, makerKey: maker?.key())
    }
    return OpenedForDevice(archive: opened, maker: maker?.homeDevice?.name)
  }

  /// The class keys of an archive, for its files.
  func classKeys(
    of named: NamedArchive, with key: borrowing ArchiveKey, _ hardware: HardwareKey? = nil
  ) throws(CommandFailure) -> ClassKeys {
    do throws(ArchivedKeychainError) {
      return try key.classKeys(deviceKey: hardware?.key())
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  private func tried(
    _ named: NamedArchive, _ open: () throws(ArchivedKeychainError) -> OpenedArchive
  ) throws(CommandFailure) -> OpenedArchive {
    let start = ContinuousClock.now
    do throws(ArchivedKeychainError) {
      let opened = try open()
      tellDetails(of: opened, name: named.name, since: start)
      return opened
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  // MARK: What is said

  /// A password that fitted in another form than it was given in was given in the wrong one.
  private func tell(_ form: PasswordForm, of name: String) {
    switch form {
    case .asGiven: return
    case .composed:
      note("\(HostileText.shown(name)): the password fitted with its accents in the letters (Unicode form NFC)")
    case .decomposed:
      note("\(HostileText.shown(name)): the password fitted with its accents behind the letters (Unicode form NFD)")
    }
  }

  /// What `-v` and `-vv` say of an archive that was unlocked.
  private func tellDetails(of opened: OpenedArchive, name: String, since start: ContinuousClock.Instant) {
    for note in opened.notes { tell(note, of: name) }
    let readable = opened.items.count { $0.item != nil }
    detail("\(HostileText.shown(name)): \(readable) of \(Amounts.count(opened.items.count, "item")) open here")
    detail("  \(opened.archive.digest)", level: 2)
    detail("  tried in \(Self.milliseconds(since: start)) ms", level: 2)
    for item in opened.items {
      guard let blob = item.blob else { continue }
      let place = "\(Amounts.bytes(blob.byteCount)) at \(Amounts.grouped(blob.offset))"
      detail("  item \(item.index): \(place), \(ItemText.protection(item.protection))", level: 2)
    }
  }

  private func tell(_ note: ArchiveNote, of name: String) {
    switch note {
    case .digestDiffers:
      warn(
        "\(name)'s keychain file is not what was written", why: note.description,
        try: "verify says what is damaged; what opens is as it was written, and items may be missing")
    // Said when the archive was opened.
    case .unfinished, .paperUnreadable, .encryptionClaimed: return
    default: detail("\(HostileText.shown(name)): \(note)")
    }
  }

  private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
    Int(start.duration(to: .now) / .milliseconds(1))
  }
}
