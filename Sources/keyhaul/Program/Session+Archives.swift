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
      return try openArchive(.stream(descriptor: 0), name: "standard input")
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
    let limit = options.maxRounds?.value ?? RoundLimit.standard
    do throws(MigrationError) {
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
  ) throws(CommandFailure) -> OpenedArchive {
    do throws(MigrationError) {
      let opened = try deriving(rounds: named.archive.keybag.totalRounds) { (progress) throws(MigrationError) in
        try OpenedArchive(
          named.archive, password: password, deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
      }
      for note in opened.notes { detail("\(named.name): \(note)") }
      return opened
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
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
    if let error = error as? MigrationError, let underlying = error.underlying {
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
