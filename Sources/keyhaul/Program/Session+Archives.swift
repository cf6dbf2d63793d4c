import ArchivedKeychain
import BackupArchive
import DataProtection
import KeychainFormats
import Migration
import MigrationReports
import VirtualDevice

extension Session {
  /// An archive that is to be read, by the name that the user gave it.
  struct NamedArchive {
    let name: String
    let archive: BackupArchive

    /// The name of one that is no file.
    static let standardInput = "standard input"
  }

  /// Opens what can be opened without a password.
  ///
  /// - Parameter storage: Where a large list of files is kept meanwhile.
  func openArchive(
    _ argument: String, storage: ManifestStorage = .temporaryFile
  ) throws(CommandFailure) -> NamedArchive {
    let (location, name) = try locate(argument)
    do throws(BackupArchiveError) {
      return NamedArchive(name: name, archive: try readArchive(at: location, storage: storage))
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// Where an archive is to be read, and what messages call it.
  func locate(_ argument: String) throws(CommandFailure) -> (ArchiveLocation, name: String) {
    switch try resolver().archive(argument) {
    case .standardInput:
      try claimStandardInput(for: "the archive")
      return (.stream(descriptor: 0), NamedArchive.standardInput)
    case .archive(let path):
      if let backups = backups(inParent: path) { throw several(backups, in: argument) }
      return (.path(path), argument)
    case .device(let name, _):
      throw .usage("\(name) is a device", why: "an archive is meant here", try: "keyhaul backup \(name) -o ARCHIVE")
    }
  }

  func readArchive(
    at location: ArchiveLocation, storage: ManifestStorage
  ) throws(BackupArchiveError) -> BackupArchive {
    guard case .stream = location else { return try BackupArchive.open(location, storage: storage) }
    return try Interruption.leavingAtOnce { () throws(BackupArchiveError) in
      try BackupArchive.open(location, storage: storage)
    }
  }

  /// The backups in a folder that is none itself, such as `MobileSync/Backup`; `nil` for everything else.
  func backups(inParent path: String) -> [BackupFolder.Entry]? {
    let isFolder = resolvedContent(path) == .folder
    guard isFolder, resolvedContent("\(path)/Manifest.plist") == .absent else { return nil }
    let backups = (try? BackupFolder.backups(in: path)) ?? []
    return backups.isEmpty ? nil : backups
  }

  func several(_ backups: [BackupFolder.Entry], in argument: String) -> CommandFailure {
    let folder = argument.hasSuffix("/") ? String(argument.dropLast()) : argument
    let names = backups.prefix(3).map(\.name).joined(separator: ", ")
    let more = backups.count > 3 ? ", ..." : ""
    return .usage(
      "\(argument) holds \(Amounts.count(backups.count, "backup")); one of them is to be named",
      why: "in it are \(names)\(more)",
      try: "\(folder)/\(backups[0].name); keyhaul inspect \(ShellWord.quoted(argument)) lists them")
  }

  /// Asks for the password where the archive has one, unlocks it and tries every item, with the hardware key that the
  /// user gives or else that of a virtual device which made the backup.
  ///
  /// A backup in which no keychain was stored has no items.
  func unlock(
    _ named: NamedArchive, _ flags: PasswordFlags, opening: OpeningOptions
  ) throws(CommandFailure) -> OpenedArchive {
    try checkRounds(of: named, accepting: opening.limit)
    let password = try passwordIfNeeded(named, flags)
    return try unlock(named, password: password, opening: opening)
  }

  /// The same with a password that is at hand.
  ///
  /// - Parameter hardware: A device's hardware key that may have made the backup.
  func unlock(
    _ named: NamedArchive, password: consuming Secret?, opening: OpeningOptions, hardware: Maker? = nil
  ) throws(CommandFailure) -> OpenedArchive {
    if let key = try deviceKey(opening, of: named.name) {
      return try unlock(
        named, password: password, deviceKey: key, requiresKeychain: false, limit: opening.limit.rounds)
    }
    let maker = hardware ?? maker(of: named.archive)
    let opened = try unlock(
      named, password: password, deviceKey: maker?.key(), requiresKeychain: false,
      limit: opening.limit.rounds)
    if opened.isSameDevice == true, let maker, hardware == nil { noteMaker(maker, of: named.name) }
    return opened
  }

  func noteMaker(_ maker: Maker, of name: String) {
    note("\(HostileText.shown(name)): items of this device only were opened with the key of \(maker.name)")
  }

  /// The class keys of an archive, for its files; none of a backup without a password are needed for those.
  func classKeys(
    of named: NamedArchive, _ flags: PasswordFlags, deviceKey: consuming DeviceKey?,
    accepting options: RoundLimitOptions
  ) throws(CommandFailure) -> ClassKeys {
    try checkRounds(of: named, accepting: options)
    let password = try passwordIfNeeded(named, flags)
    return try classKeys(of: named, password: password, deviceKey: deviceKey, limit: options.rounds)
  }

  /// The same with a password that is at hand.
  func classKeys(
    of named: NamedArchive, password: consuming Secret?, deviceKey: consuming DeviceKey?, limit: Int
  ) throws(CommandFailure) -> ClassKeys {
    do throws(ArchivedKeychainError) {
      return try archiveKey(of: named, password: password, limit: limit).classKeys(deviceKey: deviceKey)
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  /// Derives the key of a password that is at hand, and says in which form it fitted.
  func archiveKey(
    of named: NamedArchive, password: consuming Secret?, limit: Int
  ) throws(ArchivedKeychainError) -> ArchiveKey {
    let key = try deriving(rounds: named.archive.keybag.totalRounds) { (progress) throws(ArchivedKeychainError) in
      try ArchiveKey(of: named.archive, password: password, acceptingAtMost: limit, progress: progress)
    }
    tellForm(key.passwordForm, name: named.name)
    return key
  }

  /// The password of an archive that has one.
  func passwordIfNeeded<Name>(
    _ named: NamedArchive, _ flags: SecretFlags<Name>
  ) throws(CommandFailure) -> Secret? {
    guard !named.archive.isEncrypted else { return try password(flags, of: named.name) }
    if flags.isGiven {
      warn(
        "\(named.name) has no password", why: "it is not encrypted; the given password was not used",
        try: "leave the password out")
    }
    return nil
  }

  /// Refuses a keybag that asks for too much work, before anybody is asked for a password.
  func checkRounds(of named: NamedArchive, accepting options: RoundLimitOptions) throws(CommandFailure) {
    do throws(ArchivedKeychainError) {
      try ArchiveKey.checkRounds(of: named.archive, acceptingAtMost: options.rounds)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  /// A virtual device that claims to be the one that made a backup, or may be; its key has to prove it.
  final class Maker: Sendable {
    let name: String
    let folder: String
    private let held: DeviceKey

    init(name: String, folder: String, key: consuming DeviceKey) {
      self.name = name
      self.folder = folder
      held = key
    }

    func key() -> DeviceKey { held.copy() }
  }

  /// Looks for the device without waiting for whoever uses one; what cannot be read is passed over.
  ///
  /// - Parameter target: The device that the items should go to, whose own key is tried anyway.
  func maker(of archive: BackupArchive, besides target: DeviceSession? = nil) -> Maker? {
    guard let identifier = archive.device.identifier?.lowercased(), identifier != target?.record.udid.lowercased(),
      let devices = try? deviceHome().devices()
    else { return nil }
    for device in devices {
      guard let summary = try? device.summary(verb: "keyhaul"), !summary.isBusy,
        summary.record.udid.lowercased() == identifier,
        let session = try? device.openSession(.reading, verb: "keyhaul")
      else { continue }
      defer { session.end() }
      if let key = try? session.deviceKey() { return Maker(name: device.name.text, folder: device.folder, key: key) }
    }
    return nil
  }

  /// Asks for the password where the archive has one, unlocks it and tries every item.
  ///
  /// - Parameters:
  ///   - deviceKey: The hardware key of the device that the items should go to.
  ///   - makerKey: Of the device that made the archive, for the names of what the other does not open.
  func unlock(
    _ named: NamedArchive, _ flags: PasswordFlags, deviceKey: consuming DeviceKey?,
    makerKey: consuming DeviceKey? = nil, accepting options: RoundLimitOptions
  ) throws(CommandFailure) -> OpenedArchive {
    try checkRounds(of: named, accepting: options)
    let password = try passwordIfNeeded(named, flags)
    return try unlock(
      named, password: password, deviceKey: deviceKey, makerKey: makerKey, requiresKeychain: true,
      limit: options.rounds)
  }

  private func unlock(
    _ named: NamedArchive, password: consuming Secret?, deviceKey: consuming DeviceKey?,
    makerKey: consuming DeviceKey? = nil, requiresKeychain: Bool, limit: Int
  ) throws(CommandFailure) -> OpenedArchive {
    let start = ContinuousClock.now
    do throws(ArchivedKeychainError) {
      let key = try archiveKey(of: named, password: password, limit: limit)
      let opened = try OpenedArchive(
        named.archive, key: key, deviceKey: deviceKey, makerKey: makerKey, requiresKeychain: requiresKeychain)
      tellDetails(of: opened, name: named.name, since: start)
      return opened
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }

  /// A password that fitted in another form than it was given in was given in the wrong one.
  private func tellForm(_ form: PasswordForm, name: String) {
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
    for note in opened.notes { detail("\(HostileText.shown(name)): \(note)") }
    let readable = opened.items.count { $0.item != nil }
    let seconds = start.duration(to: .now) / .seconds(1)
    detail("\(HostileText.shown(name)): \(readable) of \(Amounts.count(opened.items.count, "item")) open here")
    detail("  \(opened.archive.digest)", level: 2)
    detail("  unlocked and tried in \(Int(seconds * 1000)) ms", level: 2)
    for item in opened.items {
      guard let blob = item.blob else { continue }
      let place = "\(Amounts.bytes(blob.byteCount)) at \(Amounts.grouped(blob.offset))"
      detail("  item \(item.index): \(place), \(ItemText.protection(item.protection))", level: 2)
    }
  }

  /// Shows that a key is being derived, and lets Ctrl-C end it.
  func deriving<Value: ~Copyable, Failure: Error>(
    rounds: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let title = "Deriving key: \(Amounts.grouped(rounds)) rounds"
    return try progress(title, phase: "derive-key") { (report) throws(Failure) in
      try body { done, total in
        report.update(done: done, total: total)
        return Interruption.pending == nil
      }
    }
  }
}

extension Keybag {
  /// Rounds of both derivations, as the header asks for them.
  var totalRounds: Int { Int(iterations ?? 0) + Int(secondRound?.rounds ?? 0) }
}

extension CommandFailure {
  /// An error about an archive, in the words of what the user named.
  init(archive error: any ExplainedError, name: String) {
    if let underlying = Self.carried(by: error) {
      self.init(archive: underlying, name: name)
      return
    }
    self.init(
      CommandStatus(error.category), Self.archiveMessage(error, name: name), why: error.reason, try: error.advice)
    if (error as? DataProtectionError)?.code == .roundsOverLimit {
      advice = "don't trust this file; --max-rounds raises the limit"
    }
  }

  private static func carried(by error: any ExplainedError) -> (any ExplainedError)? {
    (error as? MigrationError)?.underlying ?? (error as? ArchivedKeychainError)?.underlying
  }

  /// The error of the lowest part that knows it.
  static func underlying(of error: any ExplainedError) -> any ExplainedError {
    carried(by: error).map(underlying) ?? error
  }

  /// What keeps a device from being backed up or restored to. Where its summary names the device, it stands alone.
  init(_ error: MigrationError, device: String) {
    self.init(error, doing: error.code == .deviceLocked ? nil : "cannot use \(device)")
  }

  private static func archiveMessage(_ error: any ExplainedError, name: String) -> String {
    switch error {
    case let error as BackupArchiveError:
      switch error.code {
      case .notFound: "\(name) does not exist"
      case .notABackup: "\(name) is not a backup"
      case .unsupported, .notStreamable: "\(name) cannot be read: \(error.summary)"
      case .hostile, .overLimit: "refused to read \(name)"
      case .truncated: "\(name) is cut short"
      case .damaged: "\(name) is damaged"
      case .unfinished: "\(name) was never finished"
      case .payloadMissing: "\(name) is not whole"
      case .noKeychain: "\(name) holds no keychain"
      case .keyUnavailable: "cannot open \(name): \(error.summary)"
      case .unreadable, .noTemporarySpace: "could not read \(name)"
      case .unwritable, .noSpace, .occupied: "could not write \(name)"
      case .interrupted: "stopped"
      }
    case let error as DataProtectionError:
      switch error.code {
      case .roundsOverLimit: "refused to open \(name)"
      case .damagedKeybag, .missingField: "\(name)'s keybag is damaged"
      default: "cannot open \(name): \(error.summary)"
      }
    case let error as FormatError where error.format == .keybag: "\(name)'s keybag is damaged"
    default: "cannot open \(name): \(error.summary)"
    }
  }

  /// A keybag of which some classes do not unwrap; what the others open was used.
  static func damagedKeybag(of name: String, report: String) -> CommandFailure {
    CommandFailure(
      .damaged, "\(name)'s keybag is damaged", why: report,
      try: "another copy; items of that class are lost in this one")
  }
}
