import KeychainFormats

/// Copies a backup between a folder and one file. Every stored byte stays what it is, so that also a backup whose
/// password nobody knows can be converted.
public struct BackupConverter: Sendable {
  private let system: FileSystem
  private let limits: ArchiveLimits

  public init() { self.init(system: .real) }

  package init(system: FileSystem, limits: ArchiveLimits = .standard) {
    self.system = system
    self.limits = limits
  }

  /// What was written, and where.
  public struct Outcome: Sendable, Equatable {
    /// Where the copy now stands; `nil` for a stream.
    public let path: String?
    /// Of the file or stream, or of all files in the folder.
    public let byteCount: Int64
    public let fileCount: Int
    /// Whether the disk confirmed that it keeps the copy's name too; never so for a stream.
    public let isDurable: Bool
    /// A replaced backup that could not be removed, by its path.
    public let leftover: String?
    /// Files beside the backup's own, which are no part of it and were not copied.
    public let foreignFiles: [String]
  }

  /// Told how many bytes of how many are copied; ends the work where it answers `false`.
  public typealias Progress = (_ done: Int64, _ total: Int64) -> Bool

  /// Copies a backup whole, or not at all, in a constant amount of memory.
  ///
  /// - Parameters:
  ///   - archive: What was opened at `path`, and what the copy is held against.
  ///   - path: Where it stands: a folder, or one file.
  ///   - replace: Whether a backup, or a file, that stands at the destination may go.
  /// - Throws: As `BackupWriter` does; `.unreadable` where the backup changed meanwhile, `.interrupted` where `progress`
  ///   said so.
  public func convert(
    _ archive: BackupArchive, at path: String, to destination: ArchiveDestination, replace: Bool = false,
    progress: @escaping Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> Outcome {
    let stored = try archive.storedFiles()
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let time = archive.date.flatMap { Int64(exactly: $0.secondsSince1970.rounded(.down)) } ?? 0
    let tally = Tally()
    let walk = BackupWalk(archive: archive, path: path, limits: limits, system: system)
    var outgoing = OutgoingBackup(folderName: archive.folderName, byteCount: meter.total) {
      (sink) throws(WriteFailure) in
      let others = try walk.forEachFile { (file) throws(WriteFailure) in
        guard file.isOwn else {
          tally.foreignFiles.append(file.name)
          return
        }
        try file.copy(to: sink, as: file.path, modificationTime: time, meter)
        tally.fileCount += 1
      }
      tally.foreignFiles += others
    }
    outgoing.check = { (written) throws(BackupArchiveError) in
      let copy = try BackupArchive.open(
        .path(written), limits: limits, storage: archive.storage, system: system)
      guard copy.digest == archive.digest, try copy.storedFiles() == stored else {
        throw BackupArchiveError(.unreadable, "the backup changed while it was copied")
      }
    }
    let placed = try BackupPlacement(system: system).place(outgoing, at: destination, replace: replace)
    return Outcome(
      path: placed.path, byteCount: placed.byteCount, fileCount: tally.fileCount, isDurable: placed.isDurable,
      leftover: placed.leftover, foreignFiles: tally.foreignFiles)
  }

  private final class Tally {
    var fileCount = 0
    var foreignFiles: [String] = []
  }
}

/// Counts what was copied and asks whether to go on.
final class CopyMeter {
  let total: Int64
  private var done: Int64 = 0
  private let progress: BackupConverter.Progress

  init(total: Int64, _ progress: @escaping BackupConverter.Progress) {
    self.total = total
    self.progress = progress
  }

  func add(_ count: Int) throws(WriteFailure) {
    done += Int64(count)
    guard progress(done, total) else { throw .source(BackupArchiveError(.interrupted, "it was told to stop")) }
  }
}

extension BackupArchive {
  /// Of the files with a name of their own, as far as they are in memory.
  var partByteCount: Int64 {
    [StoredPart.manifest, .status, .info, .oldDatabase].reduce(Int64(parts.database?.byteCount ?? 0)) {
      $0 + Int64(parts[$1]?.count ?? 0)
    }
  }

  /// The name of the folder around the files: the device's identifier, as backups are named.
  var folderName: String {
    let name = device.identifier ?? ""
    let isPlain = (1...64).contains(name.utf8.count) && name.utf8.allSatisfy(Self.isPlain)
    return isPlain ? name : "backup"
  }

  /// Letters, digits and hyphens.
  private static func isPlain(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
  }
}
