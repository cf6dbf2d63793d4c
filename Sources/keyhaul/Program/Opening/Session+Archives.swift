import BackupArchive
import KeychainFormats
import MigrationReports

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
  /// - Parameters:
  ///   - storage: Where a large list of files is kept meanwhile.
  ///   - isRestored: Refuses what no device restores, of which there is a warning otherwise.
  func openArchive(
    _ argument: String, storage: ManifestStorage = .temporaryFile, isRestored: Bool = false
  ) throws(CommandFailure) -> NamedArchive {
    let (location, name) = try locate(argument)
    let archive: BackupArchive
    do throws(BackupArchiveError) {
      archive = try readArchive(at: location, storage: storage)
      if isRestored { try archive.requireFinished() }
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    for note in archive.notes {
      guard case .unfinished = note else { continue }
      warn(
        "\(name) was never finished", why: note.description,
        try: "export what is in it; no device restores such a backup")
    }
    for paper in archive.unreadablePapers { warn(of: paper, in: name) }
    return NamedArchive(name: name, archive: archive)
  }

  private func warn(of paper: UnreadablePaper, in name: String) {
    warn(
      "\(name)'s \(paper.name) could not be read", why: paper.reason,
      try: "verify says whether more of it is damaged; items and files do not depend on it")
  }

  /// Where an archive is to be read, and what messages call it.
  func locate(_ argument: String) throws(CommandFailure) -> (ArchiveLocation, name: String) {
    guard let path = try pathOfArchive(argument) else {
      try claimStandardInput(for: "the archive")
      return (.stream(descriptor: 0), NamedArchive.standardInput)
    }
    if let backups = backups(inParent: path) { throw several(backups, in: argument) }
    return (.path(path), argument)
  }

  func readArchive(
    at location: ArchiveLocation, storage: ManifestStorage
  ) throws(BackupArchiveError) -> BackupArchive {
    guard case .stream = location else { return try BackupArchive.open(location, storage: storage) }
    return try Interruption.leavingAtOnce { () throws(BackupArchiveError) in
      try BackupArchive.open(location, storage: storage)
    }
  }

  /// The path of an archive that is read twice, or changed.
  ///
  /// - Throws: `.usage` for a stream, and for a device.
  func pathOfArchive(_ argument: String, verb: String) throws(CommandFailure) -> String {
    if let path = try pathOfArchive(argument) { return path }
    throw .usage("\(verb) cannot take standard input", why: "a stream passes by once", try: "a folder or a file")
  }

  /// - Returns: `nil` for standard input.
  private func pathOfArchive(_ argument: String) throws(CommandFailure) -> String? {
    switch try resolver().archive(argument) {
    case .archive(let path): return path
    case .standardInput: return nil
    case .device(let name, _):
      throw .usage(
        "\(name) is a device", why: "an archive is meant here",
        try: "keyhaul backup \(ShellWord.quoted(name)) -o ARCHIVE")
    }
  }
}
