import KeychainFormats

/// The list of a backup's files, whatever form it is stored in.
///
/// It answers from a private copy that was taken when the backup was opened. May be used from several threads, and asked
/// while it is answering.
public final class FileList: Sendable {
  private let form: Form
  /// What was unusual, and tolerated.
  public let notes: [ArchiveNote]

  private enum Form: Sendable {
    case database(ManifestDatabase)
    case old(OldManifest)
  }

  /// How many files of each kind the list holds.
  public struct Listing: Sendable, Equatable {
    public var fileCount = 0
    public var directoryCount = 0
    public var linkCount = 0
    /// Neither: what a device had not finished.
    public var otherCount = 0
    /// Rows by their domain, such as `KeychainDomain` or `AppDomain-com.example.app`.
    public var rowCountByDomain: [String: Int] = [:]
    /// Rows that a transfer has left over; they stand for no file.
    public var rowWithoutDomainCount = 0
    /// Rows whose identifier isn't the hash of their domain and path, or whose path leads out of its domain.
    public var unreadableRowCount = 0

    mutating func count(_ kind: ListedFile.Kind) {
      switch kind {
      case .file: fileCount += 1
      case .directory: directoryCount += 1
      case .link: linkCount += 1
      case .other: otherCount += 1
      }
    }
  }

  init(_ database: ManifestDatabase) {
    form = .database(database)
    notes = database.notes
  }

  init(_ manifest: OldManifest) {
    form = .old(manifest)
    notes = []
  }

  /// Counts every row. Takes time in proportion to their number: a large backup has some 500,000.
  ///
  /// - Throws: `.damaged` for a list whose own check fails.
  public func listing() throws(BackupArchiveError) -> Listing {
    switch form {
    case .database(let database): return try database.listing()
    case .old:
      var listing = Listing()
      try forEachFile { (file) throws(BackupArchiveError) in
        if let domain = file.domain {
          guard try file.hasFittingIdentifier() else {
            listing.unreadableRowCount += 1
            return
          }
          listing.rowCountByDomain[domain, default: 0] += 1
          listing.count(file.kind)
        } else {
          listing.rowWithoutDomainCount += 1
        }
      }
      return listing
    }
  }

  /// The files that are listed but not stored. An empty file needs no payload, so that only records can tell; those of
  /// absent files are read for it.
  ///
  /// - Returns: Their identifiers, in the list's order.
  public func missingPayloads(in stored: StoredPayloads) throws(BackupArchiveError) -> [String] {
    switch form {
    case .database(let database): return try database.missingPayloads(in: stored)
    case .old:
      var missing: [String] = []
      try forEachFile { (file) throws(BackupArchiveError) in
        guard file.kind == .file, stored.byteCount(of: file.fileIdentifier) == nil, try file.record()?.size != 0 else {
          return
        }
        missing.append(file.fileIdentifier)
      }
      return missing
    }
  }

  /// Goes through all files in the list's order. Rows without an identifier are passed over; `listing()` counts them.
  ///
  /// - Throws: `.damaged` for a list whose own check fails, and what `body` throws.
  public func forEachFile(
    _ body: (ListedFile) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    switch form {
    case .database(let database): try database.forEachFile(body)
    case .old(let manifest):
      try reading(manifest) { (entry) throws(BackupArchiveError) in try body(try ListedFile(entry)) }
    }
  }

  /// A single file, found by its identifier without a scan where the list has an index.
  ///
  /// - Throws: `.hostile` where the list has it under an identifier that is not its hash, or twice.
  public func file(domain: String, relativePath: String) throws(BackupArchiveError) -> ListedFile? {
    switch form {
    case .database(let database): return try database.file(domain: domain, relativePath: relativePath)
    case .old(let manifest):
      var found: ListedFile?
      try reading(manifest) { (entry) throws(BackupArchiveError) in
        guard entry.domain == domain, entry.record.relativePath == relativePath else { return }
        guard found == nil else {
          throw BackupArchiveError(
            .hostile, "\(StoredPart.oldDatabase.path) lists \(quoted("\(domain)-\(relativePath)")) twice")
        }
        found = try ListedFile(entry)
      }
      return found
    }
  }

  /// Runs the list's own check of itself: SQLite's of its pages, or that the records fill the file to its end.
  ///
  /// - Throws: `.damaged` or `.truncated` with what was found first.
  public func check() throws(BackupArchiveError) {
    switch form {
    case .database(let database): try database.check()
    case .old(let manifest): try reading(manifest) { (_) throws(BackupArchiveError) in }
    }
  }

  /// Keeps the two errors apart: what is wrong with the list, and what the closure throws.
  private func reading(
    _ manifest: OldManifest, _ body: (OldManifest.Entry) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    var cursor = manifest.entries()
    while true {
      let entry = try explained(StoredPart.oldDatabase.path) { () throws(FormatError) in try cursor.next() }
      guard let entry else { return }
      try body(entry)
    }
  }
}
