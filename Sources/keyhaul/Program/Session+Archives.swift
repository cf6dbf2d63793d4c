import ArchivedKeychain
import BackupArchive
import DataProtection
import KeychainFormats
import Migration

extension Session {
  /// An archive that is to be read, by the name that the user gave it.
  struct NamedArchive {
    let name: String
    let archive: BackupArchive
  }

  /// Opens what can be opened without a password.
  func openArchive(_ argument: String) throws(CommandFailure) -> NamedArchive {
    switch try resolver().archive(argument) {
    case .standardInput:
      try claimStandardInput(for: "the archive")
      return try Interruption.leavingAtOnce { () throws(CommandFailure) in
        try openArchive(.stream(descriptor: 0), name: "standard input")
      }
    case .archive(let path): return try openArchive(.path(path), name: argument)
    case .device(let name, _):
      throw .usage("\(name) is a device", why: "an archive is meant here", try: "keyhaul backup \(name) -o ARCHIVE")
    }
  }

  private func openArchive(_ location: ArchiveLocation, name: String) throws(CommandFailure) -> NamedArchive {
    do throws(BackupArchiveError) {
      return NamedArchive(name: name, archive: try BackupArchive.open(location))
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// Asks for the password where the archive has one, unlocks it and tries every item.
  ///
  /// - Parameter deviceKey: The hardware key of the device that the items should go to.
  func unlock(
    _ named: NamedArchive, _ flags: PasswordFlags, deviceKey: consuming DeviceKey?,
    accepting options: RoundLimitOptions
  ) throws(CommandFailure) -> OpenedArchive {
    let opened = try unlockIfPresent(named, flags, deviceKey: deviceKey, accepting: options)
    guard let opened else {
      let error = BackupArchiveError(.noKeychain, "the manifest database lists no keychain file")
      throw CommandFailure(archive: error, name: named.name)
    }
    return opened
  }

  /// The same, but `nil` for a backup in which no keychain was stored.
  func unlockIfPresent(
    _ named: NamedArchive, _ flags: PasswordFlags, deviceKey: consuming DeviceKey?,
    accepting options: RoundLimitOptions
  ) throws(CommandFailure) -> OpenedArchive? {
    let limit = options.maxRounds?.value ?? RoundLimit.standard
    do throws(ArchivedKeychainError) {
      try OpenedArchive.checkRounds(of: named.archive, acceptingAtMost: limit)
    } catch {
      throw CommandFailure(archive: error, name: named.name)
    }
    guard named.archive.isEncrypted else {
      if flags.isGiven {
        warn(
          "\(named.name) has no password", why: "it is not encrypted; the given password was not used",
          try: "leave the password out")
      }
      return try unlock(named, password: nil, deviceKey: deviceKey, limit: limit)
    }
    let password = try password(flags, of: named.name)
    return try unlock(named, password: password, deviceKey: deviceKey, limit: limit)
  }

  private func unlock(
    _ named: NamedArchive, password: consuming Secret?, deviceKey: consuming DeviceKey?, limit: Int
  ) throws(CommandFailure) -> OpenedArchive? {
    let start = ContinuousClock.now
    do throws(ArchivedKeychainError) {
      let opened = try deriving(rounds: named.archive.keybag.totalRounds) { (progress) throws(ArchivedKeychainError) in
        try OpenedArchive(
          named.archive, password: password, deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
      }
      tellDetails(of: opened, name: named.name, since: start)
      return opened
    } catch {
      if (error.underlying as? BackupArchiveError)?.code == .noKeychain { return nil }
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
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
    let underlying = (error as? MigrationError)?.underlying ?? (error as? ArchivedKeychainError)?.underlying
    if let underlying {
      self.init(archive: underlying, name: name)
      return
    }
    self.init(
      CommandStatus(error.category), Self.archiveMessage(error, name: name), why: error.reason, try: error.advice)
    if (error as? DataProtectionError)?.code == .roundsOverLimit {
      advice = "don't trust this file; --max-rounds raises the limit"
    }
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
      case .unsupported: "\(name) cannot be read: \(error.summary)"
      case .hostile, .overLimit: "refused to read \(name)"
      case .truncated: "\(name) is cut short"
      case .damaged: "\(name) is damaged"
      case .unfinished: "\(name) was never finished"
      case .payloadMissing: "\(name) is not whole"
      case .noKeychain: "\(name) holds no keychain"
      case .keyUnavailable: "cannot open \(name): \(error.summary)"
      case .unreadable: "could not read \(name)"
      case .unwritable, .noSpace, .occupied: "could not write \(name)"
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
