public import Basics
import KeychainFormats

/// The list of a backup's files, whatever form it is stored in.
///
/// It answers from a private copy that was taken when the backup was opened. May be used from several threads, and asked
/// while it is answering.
public final class FileList: Sendable {
  private let form: Form
  /// Of an old list, names that are not UTF-8, once all records were counted.
  private let undecodedNames = Locked(UndecodedNames())
  /// What is to be said of the names of the payloads, once they were counted.
  private let payloadNotes = Locked<[ArchiveNote]>([])
  /// What was unusual, and tolerated. What is damaged in a large list is among it once all of it was read.
  package var notes: [ArchiveNote] {
    let notes = payloadNotes.withLock { $0 }
    switch form {
    case .database(let database): return database.notes + notes
    case .old:
      return undecodedNames.withLock { $0.finding(in: StoredPart.oldDatabase.path) }.map { [.finding($0)] + notes }
        ?? notes
    }
  }
  /// What of it is not as a device leaves it, and was gone around.
  package var findings: [ArchiveFinding] { notes.compactMap(\.finding) }

  /// Rows of a list. A backup of a full 1 TB iPhone has a million.
  static let maximumRowCount = 2_000_000
  /// Domains of a list; each app has a few.
  static let maximumDomainCount = 100_000

  /// What a list is charged for its rows as it is gone through.
  struct RowMeter {
    private var count = 0
    let limit: Int

    init(limit: Int = maximumRowCount) { self.limit = limit }

    mutating func add() throws(KeyhaulError) {
      count += 1
      guard count <= limit else {
        throw KeyhaulError(.overLimit, "the manifest has more than \(HumanReadable.grouped(Int64(limit))) rows")
      }
    }
  }

  static func check(domainCount: Int) throws(KeyhaulError) {
    guard domainCount <= maximumDomainCount else {
      throw KeyhaulError(
        .overLimit, "the manifest has more than \(HumanReadable.grouped(Int64(maximumDomainCount))) domains")
    }
  }

  private enum Form: Sendable {
    case database(ManifestDatabase)
    case old(MBDBManifest)
  }

  /// How many files of each kind the list holds.
  public struct Listing: Sendable, Equatable {
    /// Files with contents.
    package var fileCount = 0
    /// Directories.
    package var directoryCount = 0
    /// Symbolic links.
    package var linkCount = 0
    /// Neither: what a device had not finished.
    package var otherCount = 0
    /// Rows by their domain, such as `KeychainDomain` or `AppDomain-com.example.app`.
    package var rowCountByDomain: [String: Int] = [:]
    /// Rows that a transfer has left over; they stand for no file.
    package var rowWithoutDomainCount = 0
    /// Rows whose identifier isn't the hash of their domain and path, or whose path leads out of its domain.
    package var unreadableRowCount = 0
    /// Of the rows that were to be lent, those whose identifier is none, so that what they stand for cannot be found; 0 where
    /// nobody asked for files.
    package var rowWithoutIdentifierCount = 0
    /// Files of which nothing is stored though they are not empty; 0 where nobody asked for them.
    package var missingCount = 0

    /// Enters a file by its standing, its domain and its kind.
    fileprivate mutating func count(_ file: ListedFile) throws(KeyhaulError) {
      guard let domain = file.domain else {
        rowWithoutDomainCount += 1
        return
      }
      guard try file.hasFittingIdentifier() else {
        unreadableRowCount += 1
        return
      }
      rowCountByDomain[domain, default: 0] += 1
      try FileList.check(domainCount: rowCountByDomain.count)
      count(file.kind)
    }

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
  }

  init(_ manifest: MBDBManifest) {
    form = .old(manifest)
  }

  /// Counts every row, in one pass. Takes time in proportion to their number: a large backup has some 500,000.
  ///
  /// - Parameter stored: What the list is held against, to count what is missing. An empty file needs no payload, so that
  ///   the records of absent files are read for it.
  /// - Throws: `.damaged` for a list whose own check fails.
  package func listing(against stored: StoredPayloads? = nil) throws(KeyhaulError) -> Listing {
    note(stored)
    switch form {
    case .database(let database): return try database.listing(against: stored)
    case .old: return try listing(against: stored) { (_, _) throws(KeyhaulError) in }
    }
  }

  /// Counts every row, and lends each file in the same pass, as `forEachFile` does, with its place in the list.
  ///
  /// - Parameters:
  ///   - stored: The payloads that are stored, to count what is missing; `nil` to count rows alone.
  ///   - kind: What is lent; `nil` for all. Directories are most of a list.
  ///   - body: Takes a file and its place.
  package func listing(
    against stored: StoredPayloads? = nil, lending kind: ListedFile.Kind? = nil,
    forEachFile body: (ListedFile, FilePlace) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Listing {
    note(stored)
    switch form {
    case .database(let database): return try database.listing(against: stored, lending: kind, forEachFile: body)
    case .old(let manifest):
      var listing = Listing()
      var undecoded = UndecodedNames()
      try reading(manifest) { (entry, offset) throws(KeyhaulError) in
        let file = try ListedFile(entry)
        try listing.count(file)
        if entry.hasUndecodedNames { undecoded.add(domain: file.domain, path: file.relativePath) }
        if stored?.lacks(file) == true { listing.missingCount += 1 }
        if kind == nil || file.kind == kind { try body(file, FilePlace(number: Int64(offset))) }
      }
      let names = undecoded
      undecodedNames.withLock { $0 = names }
      return listing
    }
  }

  private func note(_ stored: StoredPayloads?) {
    guard let stored else { return }
    let notes = stored.notes
    payloadNotes.withLock { $0 = notes }
  }

  /// Goes through all files in the list's order. Rows without an identifier are passed over; `listing()` counts them.
  ///
  /// - Throws: `.damaged` for a list whose own check fails, and what `body` throws.
  package func forEachFile(
    _ body: (ListedFile) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    switch form {
    case .database(let database): try database.forEachFile(body)
    case .old(let manifest):
      try reading(manifest) { (entry, _) throws(KeyhaulError) in try body(try ListedFile(entry)) }
    }
  }

  /// Reads files again by their places, for whoever comes upon them in another order than the list's.
  ///
  /// - Returns: What answers `nil` for a place that has no file. Not to be used from two threads at once.
  package func reader() throws(KeyhaulError) -> Reader {
    switch form {
    case .database(let database): Reader(.database(try database.reader()))
    case .old(let manifest): Reader(.old(manifest))
    }
  }

  /// Reads single files of the list. Not to be used from two threads at once.
  package final class Reader {
    fileprivate enum Form {
      case database(ManifestDatabase.Reader)
      case old(MBDBManifest)
    }

    private let form: Form

    fileprivate init(_ form: Form) { self.form = form }

    /// Returns the file at a place in the list; `nil` if there is no file at that place.
    ///
    /// - Throws: `.damaged` if the data at that place is not a record.
    package func file(at place: FilePlace) throws(KeyhaulError) -> ListedFile? {
      switch form {
      case .database(let reader): return try reader.file(at: place)
      case .old(let manifest):
        guard let offset = Int(exactly: place.number) else { return nil }
        var cursor = manifest.entries(from: offset)
        let entry = try explained(StoredPart.oldDatabase.path) { () throws(FormatError) in try cursor.next() }
        return try entry.map { (entry) throws(KeyhaulError) in try ListedFile(entry) }
      }
    }
  }

  /// A single file, found by its identifier without a scan where the list has an index.
  ///
  /// - Throws: `.hostile` where the list has it under an identifier that is not its hash, or twice.
  public func file(domain: String, relativePath: String) throws(KeyhaulError) -> ListedFile? {
    switch form {
    case .database(let database): return try database.file(domain: domain, relativePath: relativePath)
    case .old(let manifest):
      var found: ListedFile?
      try reading(manifest) { (entry, _) throws(KeyhaulError) in
        guard entry.domain == domain, entry.record.relativePath == relativePath, entry.undecodedDomain == nil,
          entry.record.undecodedPath == nil
        else { return }
        guard found == nil else {
          throw KeyhaulError(
            .hostile, "\(StoredPart.oldDatabase.path) lists \(quoted("\(domain)-\(relativePath)")) twice")
        }
        found = try ListedFile(entry)
      }
      return found
    }
  }

  /// The files whose names are not UTF-8 and that are shown so, in the list's order. Looks through the whole list.
  ///
  /// - Throws: `.hostile` where the list has one under an identifier that is not its hash.
  package func files(shownAs domain: String, _ relativePath: String) throws(KeyhaulError) -> [ListedFile] {
    var found: [ListedFile] = []
    try forEachFile { (file) throws(KeyhaulError) in
      guard file.domain == domain, file.relativePath == relativePath,
        file.undecodedDomain != nil || file.undecodedPath != nil
      else { return }
      guard try file.hasFittingIdentifier() else {
        throw KeyhaulError(
          .hostile,
          "the list of files has \(quoted("\(domain)/\(relativePath)")) under an identifier that is not its hash")
      }
      found.append(file)
    }
    return found
  }

  /// Keeps the two errors apart: what is wrong with the list, and what the closure throws.
  private func reading(
    _ manifest: MBDBManifest, _ body: (MBDBManifest.Entry, _ offset: Int) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var cursor = manifest.entries()
    var meter = RowMeter()
    while true {
      let offset = cursor.offset
      let entry = try explained(StoredPart.oldDatabase.path) { () throws(FormatError) in try cursor.next() }
      guard let entry else { return }
      try meter.add()
      try body(entry, offset)
    }
  }
}
