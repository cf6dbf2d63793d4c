import ArchivedKeychain
import BackupArchive
import CommandSession
import Foundation
import KeychainFormats
import KeychainRules
import Reports

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
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
    if isRestored {
      do throws(ArchivedKeychainError) {
        try archive.requireRestorable()
      } catch {
        throw CommandFailure(archive: error, name: name)
      }
    }
    for note in archive.notes {
      guard case .unfinished = note else { continue }
      warn(
        "\(name) was never finished", why: note.description,
        try: "export what is in it; no device restores such a backup")
    }
    for paper in archive.unreadablePapers {
      warn(
        "\(name)'s \(paper.name) could not be read", why: paper.reason,
        try: "verify says whether more of it is damaged; items and files do not depend on it")
    }
    if let unbound = archive.unboundKeychain {
      warn(
        "\(name) holds what no device writes", why: "\(unbound.fact): \(unbound.meaning)",
        try: unbound.isRefused ? "don't trust it; no restore takes it" : "don't trust it, unless you made it so",
        evenQuiet: true)
    }
    tellSurprises(of: archive, at: location, name: name)
    return NamedArchive(name: name, archive: archive)
  }

  /// Says what nobody expects of an archive, or beside it: that it is not encrypted though it says so, and what runs
  /// that were killed left, which may be the backup as it was before it had a password.
  func tellSurprises(of archive: BackupArchive, at location: ArchiveLocation, name: String) {
    if archive.notes.contains(.encryptionClaimed) {
      warn(
        "\(name) says that it is encrypted, and it is not", why: ArchiveNote.encryptionClaimed.description,
        try: "don't trust this copy; its files anybody can read", evenQuiet: true)
    }
    guard case .path(let path) = location else { return }
    // Beside a link stands another file than beside what it points to.
    for leftover in BackupLeftover.all(beside: URL(filePath: path).resolvingSymlinksInPath().path) {
      let content =
        switch leftover.content {
        case .plain: "it is a backup whose files are in clear"
        case .encrypted: "it is a backup that is encrypted"
        case .unknown: "it is a backup or a part of one, and may hold files in clear"
        }
      warn(
        "a run that was ended left something beside \(name)", why: "\(leftover.path): \(content)",
        try: leftover.isSwept
          ? "delete it; the next rekey of \(name) does that too" : "delete it once \(name) is known to be whole",
        evenQuiet: leftover.content != .encrypted)
    }
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
