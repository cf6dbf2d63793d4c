package import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

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
  package func convert(
    _ archive: BackupArchive, at path: String, to destination: ArchiveDestination, replace: Bool = false,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup {
    try archive.require(.copying)
    let stored = try archive.storedFiles()
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let time = archive.entryTime
    let counts = CopyCounts()
    let walk = self.walk(through: archive, at: path)
    var outgoing = OutgoingBackup(
      directoryName: archive.directoryName, byteCount: meter.total, isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(KeyhaulError) in
      let others = try walk.forEachFile { (file) throws(KeyhaulError) in
        guard file.isOwn else {
          counts.foreignFiles.append(file.name.shown)
          return
        }
        try file.copy(to: sink, as: EntryName(file.path), modificationTime: time, meter)
        counts.fileCount += 1
      }
      counts.foreignFiles += others
    }
    outgoing.check = { (written) throws(KeyhaulError) in
      let copy = try reopen(written, like: archive)
      guard copy.digest == archive.digest, try copy.storedFiles() == stored else {
        throw KeyhaulError(.changed, "the backup changed while it was being copied")
      }
    }
    let placed = try BackupPlacement(system: system).place(outgoing, at: destination, replace: replace)
    return RewrittenBackup(
      path: placed.path, byteCount: placed.byteCount, fileCount: counts.fileCount, isDurable: placed.isDurable,
      leftover: placed.leftover, foreignFiles: counts.foreignFiles)
  }

  /// Counts the files of a copy, and keeps the names of the files that are not part of the backup.
  final class CopyCounts {
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

  /// The time of every file of a copy, in seconds since 1970: that of the backup.
  var entryTime: Int64 { date.flatMap { Int64(exactly: $0.secondsSince1970.rounded(.down)) } ?? 0 }

  /// The name of the directory around the files.
  var directoryName: String { BackupDirectory.name(for: device.identifier) }
}

extension BackupRewriter {
  /// Finds out whether `convert` would write what stands there already: in the same form, and of each file the same bytes.
  /// Both backups are read whole.
  ///
  /// - Parameters:
  ///   - archive: What was opened at `path`.
  ///   - path: Where it stands: a directory, or one file.
  ///   - standing: Where another one stands, which may be anything.
  ///   - destination: Where `convert` would write, and in which form.
  ///   - progress: Told how many bytes are read; where it answers `false` the work ends with `.interrupted`.
  /// - Returns: The standing copy; `nil` if it differs, or cannot be read. Its times and its entries' order count for
  ///   nothing.
  /// - Throws: `.interrupted`; what keeps the archive itself from being read.
  package func standingCopy(
    of archive: BackupArchive, at path: String, in standing: String, as destination: ArchiveDestination,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup? {
    guard let other = try? reopen(standing, like: archive), other.digest == archive.digest else { return nil }
    let walk = self.walk(through: other, at: standing)
    switch destination {
    case .directory: guard walk.isDirectory else { return nil }
    case .file(_, let format): guard !walk.isDirectory, (try? walk.format()) == format else { return nil }
    case .stream: return nil
    }
    let stored = try archive.storedFiles()
    guard (try? other.storedFiles()) == stored else { return nil }
    let byteCount = stored.byteCount + archive.partByteCount
    let meter = CopyMeter(total: byteCount * 2, progress)
    let own = try measured(self.walk(through: archive, at: path), meter)
    let copy: MeasuredFiles
    do throws(KeyhaulError) {
      copy = try measured(walk, meter)
    } catch {
      if error.code == .interrupted || error.isShortage { throw error }
      return nil
    }
    guard copy.files == own.files, copy.foreign.isEmpty else { return nil }
    let stands = walk.isDirectory ? nil : try? system.status(of: standing, followsLink: true)
    return RewrittenBackup(
      path: standing, byteCount: stands?.byteCount ?? byteCount,
      fileCount: copy.files.count, isDurable: false, leftover: nil, foreignFiles: own.foreign)
  }

  private struct MeasuredFiles {
    /// The SHA-256 of each file of the backup, by its path in it.
    var files: [String: [UInt8]] = [:]
    /// What is not part of it, what stands in it twice, and what no reader of backups takes.
    var foreign: [String] = []
  }

  private func measured(_ walk: BackupWalk, _ meter: CopyMeter) throws(KeyhaulError) -> MeasuredFiles {
    var measured = MeasuredFiles()
    do throws(KeyhaulError) {
      let others = try walk.forEachFile { (file) throws(KeyhaulError) in
        guard file.isOwn, file.byteCount <= file.byteLimit, measured.files[file.path] == nil else {
          measured.foreign.append(file.name.shown)
          return
        }
        measured.files[file.path] = try Self.digest(of: file, meter)
      }
      measured.foreign += others
    } catch {
      throw BackupPlacement(system: system).explain(error, path: walk.path, needs: nil)
    }
    return measured
  }

  private static func digest(of file: BackupWalk.File, _ meter: CopyMeter) throws(KeyhaulError) -> [UInt8] {
    let digest = try computing(file) { () throws(DataProtectionError) in try DigestStream(.sha256) }
    try file.forEachPortion { (portion) throws(KeyhaulError) in
      try computing(file) { () throws(DataProtectionError) in try digest.update(portion) }
      try meter.add(portion.count)
    }
    return try computing(file) { () throws(DataProtectionError) in try digest.finish() }
  }

  private static func computing<Value>(
    _ file: BackupWalk.File, _ body: () throws(DataProtectionError) -> Value
  ) throws(KeyhaulError) -> Value {
    try explained(file.path, body)
  }
}
