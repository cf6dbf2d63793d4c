import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A backup that an argument names, before it is read.
struct ResolvedBackup {
  /// The argument as the user typed it.
  let typed: String
  /// The path; `nil` if the backup is read from standard input.
  let path: String?

  /// The name in messages.
  var name: String { path == nil ? "standard input" : typed }

  /// The files that are read, which no output may replace.
  var files: [String] { path.map { [$0] } ?? [] }

  /// The backups in the path if it is a folder of several; otherwise `nil`.
  var backups: [BackupDirectory.Entry]? { path.flatMap(BackupDirectoryResolver.backups) }

  /// The current status of the file, to detect later changes; `nil` if it is a stream, or a folder, whose files can
  /// change without it.
  var fileStatus: FileStatus? {
    guard let path, let status = try? FileSystem.real.status(of: path, followsLink: true),
      status.kind == .file
    else { return nil }
    return status
  }

  /// Makes sure that the backup has not changed since it was read and the user was asked. A stream cannot change.
  ///
  /// - Parameters:
  ///   - archive: The backup as it was read.
  ///   - fileStatus: The status of the file before it was read.
  ///   - storage: The storage for a large manifest or keychain.
  /// - Throws: `.stalePlan` if it has changed.
  func requireUnchanged(
    since archive: BackupArchive, _ fileStatus: FileStatus?, storage: ManifestStorage
  ) throws(CommandError) {
    guard let path else { return }
    if let fileStatus, let now = self.fileStatus, now.isUnchanged(since: fileStatus) { return }
    let digest: String
    do throws(KeyhaulError) {
      digest = try Self.read(at: .path(path), storage: storage).digest
    } catch {
      throw Self.changed(name, because: "it can no longer be read: \(error.reason)")
    }
    if digest != archive.digest {
      throw Self.changed(name, because: "its keychain or its manifest has been replaced")
    }
  }

  private static func changed(_ name: String, because why: String) -> CommandError {
    CommandError(
      .stalePlan, "\(name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  /// Returns the error for a device where a backup is needed.
  static func deviceError(_ name: String) -> CommandError {
    .usage(
      "\(name) is a device", why: "this command needs a backup",
      try: "keyhaul backup \(ShellQuoting.quote(name)) -o ARCHIVE")
  }

  /// Returns the path of a backup that is read twice, or changed.
  ///
  /// - Throws: `.usage` for a stream.
  func requirePath(for verb: String) throws(CommandError) -> String {
    if let path { return path }
    throw .usage("\(verb) cannot read standard input", why: "a stream can be read only once", try: "a folder or a file")
  }

  /// Locks the backup until the session ends, and returns its location for reading.
  ///
  /// - Throws: `.usage` for a folder of several backups, or if standard input already has another use; `.busy`.
  func location(
    for access: BackupLock.Access = .reading, in session: Session
  ) throws(CommandError) -> BackupLocation {
    guard let path else {
      try session.claimStandardInput(for: "the backup")
      return .stream(descriptor: 0)
    }
    if let backups { throw BackupDirectoryResolver.several(backups, in: typed) }
    try session.lock(path, named: typed, for: access)
    return .path(path)
  }

  /// Reads a backup.
  ///
  /// - Parameter allowsIncomplete: Whether to also open a backup that has lost Manifest.plist or the manifest.
  static func read(
    at location: BackupLocation, storage: ManifestStorage, allowsIncomplete: Bool = false
  ) throws(KeyhaulError) -> BackupArchive {
    func read() throws(KeyhaulError) -> BackupArchive {
      try BackupArchive.open(location, storage: storage, system: .real, acceptsPartialBackup: allowsIncomplete)
    }
    guard case .stream = location else { return try read() }
    return try Interruption.exitingImmediatelyOnSignal(read)
  }

  /// Reads what needs no password, and warns about anomalies.
  ///
  /// - Parameters:
  ///   - access: Whether the command reads or changes the backup.
  ///   - storage: The storage for a large manifest or keychain.
  ///   - use: The purpose. A problem that blocks it is an error, any other a warning.
  ///   - allowsIncomplete: Whether to also open a backup that has lost Manifest.plist or the manifest.
  func open(
    _ access: BackupLock.Access = .reading, storage: ManifestStorage, for use: BackupPurpose = .reading,
    allowsIncomplete: Bool = false, in session: Session
  ) throws(CommandError) -> LoadedBackup {
    let location = try location(for: access, in: session)
    let archive: BackupArchive
    do throws(KeyhaulError) {
      archive = try Self.read(at: location, storage: storage, allowsIncomplete: allowsIncomplete)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    session.backupMetadata = BackupMetadata(archive)
    do throws(KeyhaulError) {
      try archive.requireUsable(for: use)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    let loaded = LoadedBackup(name: name, archive: archive)
    // The text of a plan starts with these findings.
    let isTextOfPlan = use == .planning && !session.isJSON && !session.isOneOfMany
    loaded.warnAboutFaults(in: session) { isTextOfPlan && ($0 == .stateMissing || $0 == .versionMissing) }
    reportAnomalies(of: loaded, in: session)
    if use == .planning || use == .restoring { loaded.warnAboutIterations(in: session) }
    // The plan of any other such backup starts with this.
    if use == .planning, loaded.obstacle == .decryptedCopy {
      session.warn(
        "restore refuses \(name) in its current state", why: "the plan shows the result for the original backup",
        try: "the backup that it was made from")
    }
    return loaded
  }

  /// Warns about a false claim of encryption, and about leftovers of killed runs next to the backup, which may contain
  /// the backup from before it had a password.
  func reportAnomalies(of loaded: LoadedBackup, in session: Session) {
    if let claim = loaded.archive.findings.first(where: { $0.kind == .falseClaim }) {
      session.warn(
        "\(name) says that it is encrypted, but it is not", why: claim.description,
        try: "don't trust this copy; anyone can read its files", ignoresQuiet: true)
    }
    if loaded.archive.findings.contains(.decryptedCopy) {
      session.info(
        "\(UntrustedText.escaped(name)) is a decrypted copy: anyone can read its files, but its items need the password."
      )
    }
    guard let path else { return }
    // Leftovers are next to the file that a link points to, not next to the link.
    for leftover in BackupLeftover.all(beside: URL(filePath: path).resolvingSymlinksInPath().path) {
      let content =
        switch leftover.content {
        case .plain: "it is a backup whose files are not encrypted"
        case .encrypted: "it is an encrypted backup"
        case .unknown: "it is a backup or part of one, and may contain unencrypted files"
        }
      session.warn(
        "an interrupted run left a file or folder next to \(name)", why: "\(leftover.path): \(content)",
        try: leftover.isRemovedByNextWrite
          ? "delete it; the next rekey of \(name) also deletes it" : "delete it after you verify \(name)",
        ignoresQuiet: leftover.content != .encrypted)
    }
  }
}

/// A backup that was read, with the name that the user typed.
struct LoadedBackup {
  let name: String
  let archive: BackupArchive

  init(name: String, archive: BackupArchive) {
    self.name = name
    self.archive = archive
  }

  /// Warns if the backup's keys show that its seal does not match.
  ///
  /// - Throws: `.damaged` if a damaged backup prevents the check.
  func warnIfSealBroken(with keys: ClassKeys, in session: Session) throws(CommandError) {
    do throws(KeyhaulError) {
      if let fault = try archive.sealViolation(with: keys) { warn(about: .sealBroken(fault), in: session) }
    } catch {
      throw CommandError(backup: error, name: name)
    }
  }

  /// Warns about a finding, unless it has its own warning elsewhere.
  func warn(about finding: BackupFinding, in session: Session) {
    if finding.kind == .sealBroken {
      session.hasReadChangedBackup = true
      session.backupMetadata?.isSealBroken = true
    }
    if let warning = warning(about: finding) {
      session.warn(
        warning.message, why: finding.description, try: warning.advice, ignoresQuiet: warning.ignoresQuiet)
    } else if finding.isHarmless {
      session.debug("\(UntrustedText.escaped(name)): \(finding)")
    }
  }

  /// A warning about a finding. The finding's description is the reason.
  private struct FindingWarning {
    let message: String
    let advice: String
    let ignoresQuiet: Bool

    init(_ message: String, try advice: String, ignoresQuiet: Bool = false) {
      self.message = message
      self.advice = advice
      self.ignoresQuiet = ignoresQuiet
    }
  }

  /// Returns the warning about a finding; `nil` if it is harmless, or has its own warning elsewhere.
  private func warning(about finding: BackupFinding) -> FindingWarning? {
    switch finding {
    case .falseClaim, .decryptedCopy, .propertyListUnreadable, .keychainInXML, .keychainKeysUnknown, .listNamesNotUTF8:
      nil
    case .payloadsRenamed:
      FindingWarning(
        "some stored files of \(name) do not have the names that a device gives them",
        try: "convert, which writes a copy with the right names")
    case .passwordDenied:
      FindingWarning(
        "\(name) says that it has no password, but it was made with one", try: Self.adviceForDeniedPassword,
        ignoresQuiet: true)
    case .wrapsUnusual:
      FindingWarning(
        "\(name)'s keybag is not one that a device writes",
        try: "another copy; results for items of these classes apply only to this copy", ignoresQuiet: true)
    case .manifestUnreadable:
      FindingWarning(
        "\(name)'s \(finding.file) cannot be read",
        try: "another copy; without this file, nothing in this copy can be decrypted")
    case .manifestMissing:
      FindingWarning(
        "\(name) is not a whole backup",
        try: "the backup that it was made from; no keychain item can be decrypted from this copy")
    case .classKeysDamaged:
      damagedKeybagWarning(consequence: "items that need those keys are lost in this copy")
    case .keybagUnusable:
      damagedKeybagWarning(consequence: "without a usable keybag, no item can be decrypted")
    case .keychainMissing, .keychainDamaged:
      FindingWarning(
        "\(name)'s keychain cannot be read", try: "another copy; verify shows what else is damaged in this copy")
    case .keybagMismatch(let file, let keybag):
      FindingWarning(
        "\(name)'s keychain does not name the backup's keybag",
        try: "another copy; no device restores this one: \(KeyhaulError.meaning(ofName: file, for: keybag))")
    case .sealBroken:
      FindingWarning(
        "\(name) has changed since it was sealed",
        try: "another copy; verify lists every file that has changed since", ignoresQuiet: true)
    case .versionMissing, .stateMissing, .listTrailingBytes, .listJournalUnread, .listDamaged, .listUnreadable:
      FindingWarning(
        "\(name) has changed since the source device wrote it",
        try: "another copy, or check its contents with verify")
    }
  }

  private func damagedKeybagWarning(consequence: String) -> FindingWarning {
    FindingWarning("\(name)'s keybag is damaged", try: "another copy; \(consequence)")
  }

  /// The problem that prevents a restore; `nil` if there is none.
  var obstacle: BackupFinding? { archive.findings.first { $0.blocks(.restoring) } }

  /// Warns before the user types a password if the keybag's iteration count is not one that a device uses, because a
  /// changed count makes the right password fail. A valid keyed seal shows that the count is the original one.
  fileprivate func warnAboutIterations(in session: Session) {
    if let seal = archive.seal, seal.isKeyed, seal.violations.isEmpty { return }
    guard archive.isEncrypted, let parameters = try? archive.keybag.derivationParameters(),
      // A far higher count has its own question.
      parameters.excessiveIterations == nil,
      let unusual = parameters.nonstandardIterations(hasTwoSteps: archive.manifest.manifestKey != nil)
    else { return }
    let count =
      unusual.rounds == 0
      ? "skips the slow iterations"
      : "asks for \(HumanReadable.count(Int(unusual.rounds), "iteration"))"
    session.warn(
      "\(name) \(count) to derive the key from its password; a device asks for \(HumanReadable.grouped(Int(unusual.usual)))",
      why: "either the count was changed and no password works, or the backup was made this way and "
        + (unusual.rounds < unusual.usual ? "passwords can be guessed faster" : "each attempt takes longer"),
      try: "the source device's own copy, if it exists", ignoresQuiet: true)
  }

  /// Warns about faults of the backup itself.
  ///
  /// - Parameter isReported: Returns whether the report of the command states a finding, so that no warning repeats it.
  fileprivate func warnAboutFaults(in session: Session, except isReported: (BackupFinding) -> Bool) {
    for note in archive.anomalies {
      switch note {
      case .unfinished:
        session.warn(
          "\(name) was never finished", why: note.description,
          try: "export its contents; no device restores such a backup")
      case .listJournalRead: session.info("\(UntrustedText.escaped(name)): \(note)")
      default: continue
      }
    }
    for propertyList in archive.unreadablePropertyLists {
      session.warn(
        "\(name)'s \(propertyList.name) could not be read", why: propertyList.reason,
        try: "verify shows whether anything else is damaged; items and files do not depend on this file")
    }
    for finding in archive.findings where !isReported(finding) { warn(about: finding, in: session) }
    if let unbound = archive.unboundClassKeys {
      session.warn(
        "\(name) contains something that no device writes", why: "\(unbound.summary): \(unbound.consequence)",
        try: unbound.blocksRestore
          ? "don't trust it; it cannot be restored" : "don't trust it, unless you made it this way",
        ignoresQuiet: true)
    }
  }
}

extension LoadedBackup {
  /// Warns about manifest rows with an invalid identifier, whose files cannot be found and are not written.
  func warn(aboutRowsWithoutIdentifier count: Int, in session: Session) {
    guard count > 0 else { return }
    session.warn(
      "no stored file could be found for \(HumanReadable.count(count, "row")) of the manifest of \(name)",
      why: "\(count == 1 ? "its identifier is" : "their identifiers are") not valid, so nothing is written for "
        + "\(count == 1 ? "it" : "them")",
      try: "another copy of the backup", ignoresQuiet: true)
  }
}

extension BackupMetadata {
  /// Creates the metadata of a backup that was read.
  init(_ archive: BackupArchive) {
    self.init()
    identifier = archive.device.identifier
    deviceName = archive.device.name
    date = archive.date
    isEncrypted = archive.isManifestUnreadable ? nil : archive.isEncrypted
    digest = archive.digest
    hasSeal = archive.seal != nil
    isSealBroken = archive.seal?.violations.isEmpty == false
    sealCode = archive.seal?.contents.map { String(hexadecimal: $0.code) }
    state = Self.state(of: archive)?.rawValue
  }

  /// Creates the metadata from the property lists of a backup folder that could not be opened.
  init(_ entry: BackupDirectory.Entry) {
    self.init()
    identifier = entry.identifier
    deviceName = entry.deviceName
    date = entry.date
    isEncrypted = entry.isEncrypted
    state = entry.state?.rawValue
  }

  private static func state(of archive: BackupArchive) -> BackupDirectory.Entry.State? {
    guard !archive.isManifestMissing, !archive.isPartial, archive.unreadablePropertyLists.isEmpty else {
      return .damaged
    }
    guard let status = archive.status, status.snapshotState != nil else { return nil }
    return status.isFinished ? .finished : .unfinished
  }
}

extension BackupFinding {
  /// Whether nothing is lost, and every command accepts the backup.
  fileprivate var isHarmless: Bool {
    switch kind {
    case .keychainInXML, .keychainKeysUnknown, .listNamesNotUTF8: true
    default: false
    }
  }
}
