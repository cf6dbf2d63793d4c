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

  /// The paths that are read. An output file must not replace them.
  var files: [String] { path.map { [$0] } ?? [] }

  /// The backups in the folder at the path; `nil` if the path is itself a backup, or contains none.
  var backups: [BackupDirectory.Entry]? { path.flatMap(BackupDirectoryResolver.backups) }

  /// The current status of a backup in one file, to detect later changes.
  ///
  /// It is `nil` if the backup is a stream or a folder. A folder's status does not show that a file in it has changed.
  var fileStatus: FileStatus? {
    guard let path, let status = try? FileSystem.real.status(of: path, followsLink: true),
      status.kind == .file
    else { return nil }
    return status
  }

  /// Rejects a backup that has changed since it was read, because the user confirmed what was read. A stream is not
  /// checked, because it can be read only once.
  ///
  /// - Parameters:
  ///   - archive: The backup as it was read.
  ///   - earlierStatus: The status of the file before it was read; `nil` if the backup is a folder.
  ///   - storage: The storage for the manifest and the keychain while they are read again.
  /// - Throws: `.stalePlan` if the backup has changed or can no longer be read.
  func requireUnchanged(
    since archive: BackupArchive, fileStatus earlierStatus: FileStatus?, storage: ManifestStorage
  ) throws(CommandError) {
    guard let path else { return }
    // If the file itself is unchanged, it need not be read again.
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

  /// Returns the error for a backup that has changed.
  private static func changeError(_ name: String, because why: String) -> CommandError {
    CommandError(
      .stalePlan, "\(name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  /// Returns the error if an argument names a device, but the command needs a backup.
  static func deviceError(_ name: String) -> CommandError {
    .usage(
      "\(name) is a device", why: "this command needs a backup",
      try: "keyhaul backup \(ShellQuoting.quote(name)) -o ARCHIVE")
  }

  /// Returns the path, for a command that reads the backup twice or changes it.
  ///
  /// - Parameter command: The name of the command.
  /// - Throws: `.usage` if the backup is read from standard input.
  func requirePath(for command: String) throws(CommandError) -> String {
    if let path { return path }
    throw .usage(
      "\(command) cannot read standard input", why: "a stream can be read only once", try: "a folder or a file")
  }

  /// Takes the backup's file lock until the session ends, and returns the location for reading.
  ///
  /// - Throws: `.usage` if the path is a folder of backups, or if standard input already has another use; `.busy` if
  ///   another process uses the backup.
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

  /// Reads the parts of a backup that need no password. A signal ends the program immediately while a stream is read.
  ///
  /// - Parameters:
  ///   - location: The location of the backup.
  ///   - storage: The storage for a large manifest or keychain.
  ///   - acceptsPartialBackup: Whether to also read a backup that has lost Manifest.plist or the manifest.
  static func read(
    at location: BackupLocation, storage: ManifestStorage, acceptsPartialBackup: Bool = false
  ) throws(KeyhaulError) -> BackupArchive {
    func read() throws(KeyhaulError) -> BackupArchive {
      try BackupArchive.open(location, storage: storage, system: .real, acceptsPartialBackup: acceptsPartialBackup)
    }
    guard case .stream = location else { return try read() }
    return try Interruption.exitingImmediatelyOnSignal(read)
  }

  /// Takes the backup's file lock, reads the parts that need no password, and warns about the findings.
  ///
  /// - Parameters:
  ///   - access: Whether the command reads or changes the backup.
  ///   - storage: The storage for a large manifest or keychain.
  ///   - purpose: The purpose of the command. A finding that blocks it is an error, any other finding a warning.
  ///   - acceptsPartialBackup: Whether to also read a backup that has lost Manifest.plist or the manifest.
  func open(
    _ access: BackupLock.Access = .reading, storage: ManifestStorage, for purpose: BackupPurpose = .reading,
    acceptsPartialBackup: Bool = false, in session: Session
  ) throws(CommandError) -> LoadedBackup {
    let location = try location(for: access, in: session)
    let loaded: LoadedBackup
    do throws(KeyhaulError) {
      let archive = try Self.read(at: location, storage: storage, acceptsPartialBackup: acceptsPartialBackup)
      session.backupMetadata = BackupMetadata(archive)
      try archive.requireUsable(for: purpose)
      loaded = LoadedBackup(name: name, archive: archive)
    } catch {
      throw CommandError(backup: error, name: name)
    }
    warnAboutFindings(of: loaded, for: purpose, in: session)
    return loaded
  }

  /// Warns about the findings of a backup that was read, unless the command's own output states them.
  private func warnAboutFindings(of loaded: LoadedBackup, for purpose: BackupPurpose, in session: Session) {
    let printsPlan = purpose == .planning && !session.isJSON && !session.isPartOfBatch
    loaded.warnAboutFindings(in: session) { finding in
      // A printed plan starts with these two findings.
      printsPlan && (finding == .stateMissing || finding == .versionMissing)
    }
    warnAboutExposedFiles(of: loaded, in: session)
    if purpose == .planning || purpose == .restoring { loaded.warnAboutIterations(in: session) }
    // A decrypted copy has no other warning that it cannot be restored.
    if purpose == .planning, loaded.findingThatBlocksRestore == .decryptedCopy {
      session.warn(
        "restore refuses \(name) in its current state", why: "the plan shows the result for the original backup",
        try: "the backup that it was made from")
    }
  }

  /// Warns about files that others may read: in a backup that falsely claims to be encrypted, in a decrypted copy, and
  /// in what an interrupted run left next to the backup.
  func warnAboutExposedFiles(of loaded: LoadedBackup, in session: Session) {
    if let finding = loaded.archive.findings.first(where: { $0.kind == .falseClaim }) {
      session.warn(
        "\(name) says that it is encrypted, but it is not", why: finding.description,
        try: "don't trust this copy; anyone can read its files", ignoresQuiet: true)
    }
    if loaded.archive.findings.contains(.decryptedCopy) {
      session.info(
        "\(UntrustedText.escaped(name)) is a decrypted copy: anyone can read its files, but its items need the password."
      )
    }
    warnAboutLeftovers(in: session)
  }

  /// Warns about files and folders that an interrupted run left next to the backup. They may contain the backup without
  /// its password.
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
