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
  let argument: String
  /// The path; `nil` if the backup is read from standard input.
  let path: String?

  /// The name in messages.
  var name: String { path == nil ? "standard input" : argument }

  /// The files that are read, which no output may replace.
  var files: [String] { path.map { [$0] } ?? [] }

  /// The backups in the path if it is a folder of several; otherwise `nil`.
  var backups: [BackupDirectory.Entry]? { path.flatMap(BackupDirectoryResolver.backups) }

  /// The current status of the file, to detect later changes; `nil` if it is a stream or a folder. A folder's
  /// status stays the same when the files in it change.
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
  ///   - earlierStatus: The status of the file before it was read.
  ///   - storage: The storage for a large manifest or keychain.
  /// - Throws: `.stalePlan` if it has changed.
  func requireUnchanged(
    since archive: BackupArchive, fileStatus earlierStatus: FileStatus?, storage: ManifestStorage
  ) throws(CommandError) {
    guard let path else { return }
    if let earlierStatus, let fileStatus, fileStatus.isUnchanged(since: earlierStatus) { return }
    let digest: String
    do throws(KeyhaulError) {
      digest = try Self.read(at: .path(path), storage: storage).digest
    } catch {
      throw Self.changeError(name, because: "it can no longer be read: \(error.reason)")
    }
    if digest != archive.digest {
      throw Self.changeError(name, because: "its keychain or its manifest has been replaced")
    }
  }

  private static func changeError(_ name: String, because why: String) -> CommandError {
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
    if let backups { throw BackupDirectoryResolver.severalBackupsError(backups, in: argument) }
    try session.lock(path, named: argument, for: access)
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

  /// Reads the parts of the backup that need no password, and warns about anomalies.
  ///
  /// - Parameters:
  ///   - access: Whether the command reads or changes the backup.
  ///   - storage: The storage for a large manifest or keychain.
  ///   - purpose: The purpose. A problem that blocks it is an error, any other a warning.
  ///   - allowsIncomplete: Whether to also open a backup that has lost Manifest.plist or the manifest.
  func open(
    _ access: BackupLock.Access = .reading, storage: ManifestStorage, for purpose: BackupPurpose = .reading,
    allowsIncomplete: Bool = false, in session: Session
  ) throws(CommandError) -> LoadedBackup {
    let location = try location(for: access, in: session)
    let loaded: LoadedBackup
    do throws(KeyhaulError) {
      let archive = try Self.read(at: location, storage: storage, allowsIncomplete: allowsIncomplete)
      session.backupMetadata = BackupMetadata(archive)
      try archive.requireUsable(for: purpose)
      loaded = LoadedBackup(name: name, archive: archive)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    report(loaded, for: purpose, in: session)
    return loaded
  }

  /// Warns about everything unusual in a backup that was read.
  private func report(_ loaded: LoadedBackup, for purpose: BackupPurpose, in session: Session) {
    // The text of a plan starts with these findings.
    let printsPlan = purpose == .planning && !session.isJSON && !session.isOneOfMany
    loaded.warnAboutFaults(in: session) { printsPlan && ($0 == .stateMissing || $0 == .versionMissing) }
    reportAnomalies(of: loaded, in: session)
    if purpose == .planning || purpose == .restoring { loaded.warnAboutIterations(in: session) }
    // The plan of a backup with any other obstacle starts with this sentence.
    if purpose == .planning, loaded.obstacle == .decryptedCopy {
      session.warn(
        "restore refuses \(name) in its current state", why: "the plan shows the result for the original backup",
        try: "the backup that it was made from")
    }
  }

  /// Warns about a false claim of encryption, and about leftovers of killed runs.
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
    warnAboutLeftovers(in: session)
  }

  /// Warns about leftovers of killed runs next to the backup. They may contain the backup from before it had a password.
  private func warnAboutLeftovers(in session: Session) {
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
