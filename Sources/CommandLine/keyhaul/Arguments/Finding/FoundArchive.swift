import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An archive that an argument means, not yet read.
struct FoundArchive {
  /// As the user wrote it.
  let typed: String
  /// `nil` for a stream on standard input.
  let path: String?

  /// What messages call it.
  var name: String { path == nil ? "standard input" : typed }

  /// What is read of it, which no result may replace.
  var files: [String] { path.map { [$0] } ?? [] }

  /// The backups in it, where it is a directory of several and none itself.
  var backups: [BackupDirectory.Entry]? { path.flatMap(BackupChoice.backups) }

  /// The file as it stands there, to see later whether it changed; `nil` for a directory, whose files change without it,
  /// and for a stream.
  var standingFile: FileStatus? {
    guard let path, let status = try? FileSystem.real.status(of: path, followsLink: true),
      status.kind == .file
    else { return nil }
    return status
  }

  /// Makes sure that it still is what was read before a person was asked. A stream cannot change any more.
  ///
  /// - Parameter file: As it stood before it was read.
  /// - Throws: `.stalePlan`.
  func requireUnchanged(
    since archive: BackupArchive, _ file: FileStatus?, storage: ManifestStorage
  ) throws(CommandFailure) {
    guard let path else { return }
    if let file, let now = standingFile, now.isUnchanged(since: file) { return }
    let digest: String
    do throws(KeyhaulError) {
      digest = try Self.read(at: .path(path), storage: storage).digest
    } catch {
      throw Self.changed(name, "it can no longer be read: \(error.reason)")
    }
    if digest != archive.digest { throw Self.changed(name, "its keychain or its manifest has been replaced") }
  }

  private static func changed(_ name: String, _ why: String) -> CommandFailure {
    CommandFailure(
      .stalePlan, "\(name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  static func isDevice(_ name: String) -> CommandFailure {
    .usage(
      "\(name) is a device",
      why: "this command needs a backup", try: "keyhaul backup \(ShellQuoting.quote(name)) -o ARCHIVE"
    )
  }

  /// The path of an archive that is read twice, or changed.
  ///
  /// - Throws: `.usage` for a stream.
  func requirePath(for verb: String) throws(CommandFailure) -> String {
    if let path { return path }
    throw .usage("\(verb) cannot read standard input", why: "a stream can be read only once", try: "a folder or a file")
  }

  /// Locks the backup until the session ends, and returns its location for reading.
  ///
  /// - Throws: `.usage` for a directory of several backups, or if standard input already has another use; `.busy`.
  func location(
    for access: BackupLock.Access = .reading, in session: Session
  ) throws(CommandFailure) -> BackupLocation {
    guard let path else {
      try session.claimStandardInput(for: "the backup")
      return .stream(descriptor: 0)
    }
    if let backups { throw BackupChoice.several(backups, in: typed) }
    try session.lock(path, named: typed, for: access)
    return .path(path)
  }

  /// - Parameter takesRemains: Also opens what is left of a backup without its manifest or its list of files.
  static func read(
    at location: BackupLocation, storage: ManifestStorage, takesRemains: Bool = false
  ) throws(KeyhaulError) -> BackupArchive {
    func read() throws(KeyhaulError) -> BackupArchive {
      try BackupArchive.open(location, storage: storage, system: .real, takesRemains: takesRemains)
    }
    guard case .stream = location else { return try read() }
    return try Interruption.leavingAtOnce(read)
  }

  /// Opens what can be opened without a password, and says what nobody expects of it.
  ///
  /// - Parameters:
  ///   - storage: Where a large list or keychain is kept meanwhile.
  ///   - access: The command's use of the backup: reading or changing it.
  ///   - use: Refuses what the use does not take, of which there is a warning otherwise.
  ///   - takesRemains: Also opens what is left of a backup without its manifest or its list of files.
  func open(
    _ access: BackupLock.Access = .reading, storage: ManifestStorage, for use: BackupPurpose = .reading,
    takesRemains: Bool = false, in session: Session
  ) throws(CommandFailure) -> NamedArchive {
    let location = try location(for: access, in: session)
    let archive: BackupArchive
    do throws(KeyhaulError) {
      archive = try Self.read(at: location, storage: storage, takesRemains: takesRemains)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    session.subject = SubjectFacts(archive)
    do throws(KeyhaulError) {
      try archive.requireUsableClassKeys(for: use)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    let named = NamedArchive(name: name, archive: archive)
    // The text of a plan starts with these.
    let isTextOfPlan = use == .planning && !session.isJSON && !session.isOneOfMany
    named.warnOfFaults(in: session) { isTextOfPlan && ($0 == .stateMissing || $0 == .versionMissing) }
    warnOfSurprises(of: named, in: session)
    if use == .planning || use == .restoring { named.warnOfOddRounds(in: session) }
    // The plan of any other such backup starts with this.
    if use == .planning, named.obstacle == .decryptedCopy {
      session.warn(
        "restore refuses \(name) in its current state", why: "the plan shows the result for the original backup",
        try: "the backup that it was made from")
    }
    return named
  }

  /// Says what nobody expects of an archive, or beside it: that it is not encrypted though it says so, and what runs
  /// that were killed left, which may be the backup as it was before it had a password.
  func warnOfSurprises(of named: NamedArchive, in session: Session) {
    if let claim = named.archive.findings.first(where: { $0.kind == .falseClaim }) {
      session.warn(
        "\(name) says that it is encrypted, but it is not", why: claim.description,
        try: "don't trust this copy; anyone can read its files", evenQuiet: true)
    }
    if named.archive.findings.contains(.decryptedCopy) {
      session.note(
        "\(UntrustedText.escaped(name)) is a decrypted copy: anyone can read its files, but its items need the password."
      )
    }
    guard let path else { return }
    // Beside a link stands another file than beside what it points to.
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
        evenQuiet: leftover.content != .encrypted)
    }
  }
}

/// An archive that was read, by the name that the user gave it.
struct NamedArchive {
  let name: String
  let archive: BackupArchive

  init(name: String, archive: BackupArchive) {
    self.name = name
    self.archive = archive
  }

  /// Says that the seal is not the one that was made for the backup, as far as its keys show that.
  ///
  /// - Throws: What keeps a seal from being tried, for which it is damaged.
  func warn(ofSealBreakWith keys: ClassKeys, in session: Session) throws(CommandFailure) {
    do throws(KeyhaulError) {
      if let fault = try archive.sealViolation(with: keys) { warn(of: .sealBroken(fault), in: session) }
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// Says what was gone around, once: what has a warning of its own is left out.
  func warn(of finding: BackupFinding, in session: Session) {
    switch finding {
    case .falseClaim, .decryptedCopy, .propertyListUnreadable: return
    // Nothing is lost, and nobody refuses it.
    case .keychainInXML, .keychainKeysUnknown, .listNamesNotUTF8:
      session.detail("\(UntrustedText.escaped(name)): \(finding)")
    case .payloadsRenamed:
      session.warn(
        "some stored files of \(name) do not have the names that a device gives them", why: finding.description,
        try: "convert, which writes a copy with the right names")
    case .passwordDenied:
      session.warn(
        "\(name) says that it has no password, but it was made with one", why: finding.description,
        try: Self.adviceForDeniedPassword, evenQuiet: true)
    case .wrapsUnusual:
      session.warn(
        "\(name)'s keybag is not one that a device writes", why: finding.description,
        try: "another copy; results for items of these classes apply only to this copy", evenQuiet: true)
    case .manifestUnreadable:
      session.warn(
        "\(name)'s \(finding.place) cannot be read", why: finding.description,
        try: "another copy; without this file, nothing in this copy can be decrypted")
    case .manifestMissing:
      session.warn(
        "\(name) is not a whole backup", why: finding.description,
        try: "the backup that it was made from; no keychain item can be decrypted from this copy")
    case .classKeysDamaged:
      session.warn(
        "\(name)'s keybag is damaged", why: finding.description,
        try: "another copy; items that need those keys are lost in this copy")
    case .keybagUnusable:
      session.warn(
        "\(name)'s keybag is damaged", why: finding.description,
        try: "another copy; without a usable keybag, no item can be decrypted")
    case .keychainMissing, .keychainDamaged:
      session.warn(
        "\(name)'s keychain cannot be read", why: finding.description,
        try: "another copy; verify shows what else is damaged in this copy")
    case .keybagMismatch(let file, let keybag):
      session.warn(
        "\(name)'s keychain does not name the backup's keybag", why: finding.description,
        try: "another copy; no device restores this one: \(KeyhaulError.meaning(ofName: file, for: keybag))")
    case .sealBroken:
      session.isAboutChangedBackup = true
      session.subject?.isSealBroken = true
      session.warn(
        "\(name) has changed since it was sealed", why: finding.description,
        try: "another copy; verify lists every file that has changed since", evenQuiet: true)
    case .versionMissing, .stateMissing, .listTrailingBytes, .listJournalUnread, .listDamaged, .listUnreadable:
      session.warn(
        "\(name) has changed since the source device wrote it", why: finding.description,
        try: "another copy, or check its contents with verify")
    }
  }

  /// What stops every restore of it; `nil` if nothing does.
  var obstacle: BackupFinding? { archive.findings.first { $0.blocks(.restoring) } }

  /// Says that its keybag asks for another count of rounds than any device's, before somebody types a password that may
  /// not fit any more. One whose seal fits was made so here.
  fileprivate func warnOfOddRounds(in session: Session) {
    if let seal = archive.seal, seal.isKeyed, seal.violations.isEmpty { return }
    guard archive.isEncrypted, let parameters = try? archive.keybag.derivationParameters(),
      // What is far above the usual is asked about.
      parameters.excessiveIterations == nil,
      let odd = parameters.nonstandardIterations(isTwofold: archive.manifest.manifestKey != nil)
    else { return }
    let count =
      odd.rounds == 0
      ? "skips the slow iterations"
      : "asks for \(HumanReadable.count(Int(odd.rounds), "iteration"))"
    session.warn(
      "\(name) \(count) to derive the key from its password; a device asks for \(HumanReadable.grouped(Int(odd.usual)))",
      why: "either the count was changed and no password works, or the backup was made this way and "
        + (odd.rounds < odd.usual ? "passwords can be guessed faster" : "each attempt takes longer"),
      try: "the source device's own copy, if it exists", evenQuiet: true)
  }

  /// Says what is wrong with the archive itself.
  ///
  /// - Parameter isReported: Returns whether the report of the command states a finding, so that no warning repeats it.
  fileprivate func warnOfFaults(in session: Session, except isReported: (BackupFinding) -> Bool) {
    for note in archive.notes {
      switch note {
      case .unfinished:
        session.warn(
          "\(name) was never finished", why: note.description,
          try: "export its contents; no device restores such a backup")
      case .listJournalRead: session.note("\(UntrustedText.escaped(name)): \(note)")
      default: continue
      }
    }
    for propertyList in archive.unreadablePropertyLists {
      session.warn(
        "\(name)'s \(propertyList.name) could not be read", why: propertyList.reason,
        try: "verify shows whether anything else is damaged; items and files do not depend on this file")
    }
    for finding in archive.findings where !isReported(finding) { warn(of: finding, in: session) }
    if let unbound = archive.unboundClassKeys {
      session.warn(
        "\(name) contains something that no device writes", why: "\(unbound.fact): \(unbound.meaning)",
        try: unbound.isRefused
          ? "don't trust it; it cannot be restored" : "don't trust it, unless you made it this way",
        evenQuiet: true)
    }
  }
}

extension NamedArchive {
  /// Names rows of the list that stand for files which nobody can find: they are not among what is written.
  func warn(ofRowsWithoutIdentifier count: Int, in session: Session) {
    guard count > 0 else { return }
    session.warn(
      "no stored file could be found for \(HumanReadable.count(count, "row")) of the manifest of \(name)",
      why: "\(count == 1 ? "its identifier is" : "their identifiers are") not valid, so nothing is written for "
        + "\(count == 1 ? "it" : "them")",
      try: "another copy of the backup", evenQuiet: true)
  }
}

extension SubjectFacts {
  /// What an archive says that was opened.
  init(_ archive: BackupArchive) {
    self.init()
    identifier = archive.device.identifier
    deviceName = archive.device.name
    date = archive.date
    isEncrypted = archive.isManifestUnreadable ? nil : archive.isEncrypted
    digest = archive.digest
    hasSeal = archive.seal != nil
    isSealBroken = archive.seal?.violations.isEmpty == false
    sealCode = archive.seal?.list.map { String(hexadecimal: $0.code) }
    state = Self.state(of: archive)?.rawValue
  }

  /// What the property lists of a directory say that could not be opened.
  init(_ entry: BackupDirectory.Entry) {
    self.init()
    identifier = entry.identifier
    deviceName = entry.deviceName
    date = entry.date
    isEncrypted = entry.isEncrypted
    state = entry.state?.rawValue
  }

  private static func state(of archive: BackupArchive) -> BackupDirectory.Entry.State? {
    guard !archive.isManifestMissing, !archive.isRemainder, archive.unreadablePropertyLists.isEmpty else {
      return .damaged
    }
    guard let status = archive.status, status.snapshotState != nil else { return nil }
    return status.isFinished ? .finished : .unfinished
  }
}
