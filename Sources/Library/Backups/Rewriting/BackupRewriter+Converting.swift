import Basics
import KeychainFormats

extension BackupRewriter {
  /// Copies a backup between a directory and one file, whole or not at all, in a constant amount of memory. Every
  /// stored byte stays what it is, so that also a backup whose password nobody knows can be converted.
  ///
  /// Entries get the backup's date, or the nearest that their form can hold. A date that is not a number of 64 bits is
  /// left out: they then say 1970, as those of a backup without a date do.
  /// - Parameters:
  ///   - archive: What was opened at `path`, and what the copy is held against.
  ///   - path: Where it stands: a directory, or one file.
  ///   - destination: Where the copy goes, and in which form.
  ///   - replace: Whether a backup, or a file, that stands at the destination may go.
  ///   - progress: Told how many bytes are copied; where it answers `false` the work ends with `.interrupted`.
  /// - Throws: As `BackupWriter` does; `.changed` where the backup changed in the meantime, `.interrupted` where
  ///   `progress` said so.
  public func convert(
    _ archive: BackupArchive, at path: String, to destination: ArchiveDestination, replace: Bool = false,
    progress: @escaping Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> RewrittenBackup {
    try archive.require(.copying)
    let stored = try archive.storedFiles()
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let time = archive.date.flatMap { Int64(exactly: $0.secondsSince1970.rounded(.down)) } ?? 0
    let tally = Tally()
    let walk = self.walk(through: archive, at: path)
    var outgoing = OutgoingBackup(
      directoryName: archive.directoryName, byteCount: meter.total, isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(WriteFailure) in
      let others = try walk.forEachFile { (file) throws(WriteFailure) in
        guard file.isOwn else {
          tally.foreignFiles.append(file.name.shown)
          return
        }
        try file.copy(to: sink, as: EntryName(file.path), modificationTime: time, meter)
        tally.fileCount += 1
      }
      tally.foreignFiles += others
    }
    outgoing.check = { (written) throws(BackupArchiveError) in
      let copy = try reopen(written, like: archive)
      guard copy.digest == archive.digest, try copy.storedFiles() == stored else {
        throw BackupArchiveError(.changed, "the backup changed while it was being copied")
      }
    }
    let placed = try BackupPlacement(system: system).place(outgoing, at: destination, replace: replace)
    return RewrittenBackup(
      path: placed.path, byteCount: placed.byteCount, fileCount: tally.fileCount, isDurable: placed.isDurable,
      leftover: placed.leftover, foreignFiles: tally.foreignFiles)
  }

  private final class Tally {
    var fileCount = 0
    var foreignFiles: [String] = []
  }
}

extension BackupArchive {
  /// Of the files with a name of their own, as far as they are in memory.
  var partByteCount: Int64 {
    [StoredPart.manifest, .status, .info, .oldDatabase, .seal].reduce(Int64(parts.database?.byteCount ?? 0)) {
      $0 + Int64(parts[$1]?.count ?? 0)
    }
  }

  /// The name of the directory around the files.
  var directoryName: String { BackupDirectory.name(for: device.identifier) }
}
