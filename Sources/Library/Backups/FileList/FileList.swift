public import Basics
import KeychainFormats

/// The list of a backup's files, in any format.
///
/// The list reads from a private copy that was created when the backup was opened. It is thread-safe and reentrant.
public final class FileList: Sendable {
  private let form: Form
  /// The names in a `Manifest.mbdb` that are not UTF-8. Empty until `listing` has counted all records.
  private let undecodedNames = Locked(UndecodedNames())
  /// The anomalies of payload names. Empty until `listing` receives the stored payloads.
  private let payloadAnomalies = Locked<[ToleratedAnomaly]>([])
  /// Anomalies that were tolerated. For a large list, complete only after the whole list was read.
  package var anomalies: [ToleratedAnomaly] {
    let anomaliesOfPayloads = payloadAnomalies.withLock { $0 }
    switch form {
    case .database(let database): return database.anomalies + anomaliesOfPayloads
    case .mbdb:
      let finding = undecodedNames.withLock { $0.finding(in: MetadataFile.oldDatabase.path) }
      guard let finding else { return anomaliesOfPayloads }
      return [.finding(finding)] + anomaliesOfPayloads
    }
  }
  /// The findings among the anomalies.
  package var findings: [BackupFinding] { anomalies.compactMap(\.finding) }

  /// A counter that limits the number of rows.
  struct RowQuota {
    private var count = 0
    let limit: Int

    init(limit: Int = BackupLimits.rowCount) { self.limit = limit }

    mutating func add() throws(KeyhaulError) {
      count += 1
      guard count <= limit else {
        throw KeyhaulError(.overLimit, "the manifest has more than \(HumanReadable.grouped(Int64(limit))) rows")
      }
    }
  }

  static func check(domainCount: Int) throws(KeyhaulError) {
    guard domainCount <= BackupLimits.domainCount else {
      throw KeyhaulError(
        .overLimit, "the manifest has more than \(HumanReadable.grouped(Int64(BackupLimits.domainCount))) domains")
    }
  }

  private enum Form: Sendable {
    case database(ManifestDatabase)
    case mbdb(MBDBManifest)
  }

  /// The number of entries of each kind.
  public struct Listing: Sendable, Equatable {
    /// The number of files.
    package var fileCount = 0
    /// The number of directories.
    package var directoryCount = 0
    /// The number of symbolic links.
    package var linkCount = 0
    /// The number of entries of an unknown type, or that the device did not complete.
    package var otherCount = 0
    /// The number of rows by domain, such as `KeychainDomain` or `AppDomain-com.example.app`.
    package var rowCountByDomain: [String: Int] = [:]
    /// The number of rows without a domain, which remain from a transfer.
    package var rowWithoutDomainCount = 0
    /// The number of rows whose identifier is not the hash of their domain and path, or whose path leaves its domain.
    package var inconsistentRowCount = 0
    /// The number of rows without a valid identifier, so that their payload cannot be located. Counted only by
    /// `listing(against:only:forEachFile:)`, among the rows of the requested kind; otherwise 0.
    package var rowWithoutIdentifierCount = 0
    /// The number of files that are not empty but have no payload. 0 if no stored payloads were given.
    package var missingCount = 0

    /// Counts a file by its validity, domain, and kind.
    fileprivate mutating func count(_ file: ListedFile) throws(KeyhaulError) {
      guard let domain = file.domain else {
        rowWithoutDomainCount += 1
        return
      }
      guard try file.hasMatchingIdentifier() else {
        inconsistentRowCount += 1
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
    form = .mbdb(manifest)
  }

  /// Counts all rows in one pass. The time is proportional to their number, which is about 500,000 in a large backup.
  ///
  /// - Parameter stored: The stored payloads, to count missing ones. If a file has no payload, its record is read,
  ///   because an empty file needs none.
  /// - Throws: `.damaged` if the list's integrity check fails.
  package func listing(against stored: StoredPayloads? = nil) throws(KeyhaulError) -> Listing {
    recordAnomalies(of: stored)
    switch form {
    case .database(let database): return try database.listing(against: stored)
    case .mbdb: return try listing(against: stored) { (_, _) throws(KeyhaulError) in }
    }
  }

  /// Counts all rows and passes each entry with its location to a closure, in one pass.
  ///
  /// - Parameters:
  ///   - stored: The stored payloads, to count missing ones; `nil` to count only rows.
  ///   - kind: The kind of entries to pass, or `nil` to pass all. Most entries are directories.
  ///   - body: Receives an entry and its location. Database rows without a valid identifier are not passed.
  package func listing(
    against stored: StoredPayloads? = nil, only kind: ListedFile.Kind? = nil,
    forEachFile body: (ListedFile, FileLocation) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Listing {
    recordAnomalies(of: stored)
    switch form {
    case .database(let database): return try database.listing(against: stored, only: kind, forEachFile: body)
    case .mbdb(let manifest):
      var listing = Listing()
      var undecoded = UndecodedNames()
      try forEachEntry(of: manifest) { (entry, offset) throws(KeyhaulError) in
        let file = try ListedFile(entry)
        try listing.count(file)
        if entry.hasUndecodedNames { undecoded.add(domain: file.domain, path: file.relativePath) }
        if stored?.lacks(file) == true { listing.missingCount += 1 }
        if kind == nil || file.kind == kind { try body(file, FileLocation(value: Int64(offset))) }
      }
      let names = undecoded
      undecodedNames.withLock { $0 = names }
      return listing
    }
  }

  private func recordAnomalies(of stored: StoredPayloads?) {
    guard let stored else { return }
    let anomalies = stored.anomalies
    payloadAnomalies.withLock { $0 = anomalies }
  }

  /// Passes all entries to a closure in the list's order, without the database rows that have no valid identifier.
  /// `listing(against:only:forEachFile:)` counts those rows.
  ///
  /// - Throws: `.damaged` if the list's integrity check fails, or the errors of `body`.
  package func forEachFile(
    _ body: (ListedFile) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    switch form {
    case .database(let database): try database.forEachFile(body)
    case .mbdb(let manifest):
      try forEachEntry(of: manifest) { (entry, _) throws(KeyhaulError) in try body(try ListedFile(entry)) }
    }
  }

  /// Creates a reader of single files by their locations. It is not thread-safe.
  package func reader() throws(KeyhaulError) -> Reader {
    switch form {
    case .database(let database): Reader(.database(try database.reader()))
    case .mbdb(let manifest): Reader(.mbdb(manifest))
    }
  }

  /// A reader of single files by their locations. It is not thread-safe.
  package final class Reader {
    fileprivate enum Form {
      case database(ManifestDatabase.Reader)
      case mbdb(MBDBManifest)
    }

    private let form: Form

    fileprivate init(_ form: Form) { self.form = form }

    /// Returns the file at a location in the list, or `nil` if there is none.
    ///
    /// - Throws: `.damaged` if the data at that location is not a record.
    package func file(at location: FileLocation) throws(KeyhaulError) -> ListedFile? {
      switch form {
      case .database(let reader): return try reader.file(at: location)
      case .mbdb(let manifest):
        guard let offset = Int(exactly: location.value) else { return nil }
        var cursor = manifest.entries(from: offset)
        let entry = try translatingErrors(in: MetadataFile.oldDatabase.path) { () throws(FormatError) in
          try cursor.next()
        }
        return try entry.map { (entry) throws(KeyhaulError) in try ListedFile(entry) }
      }
    }
  }

  /// Finds a file by its identifier, without a scan if the list has an index.
  ///
  /// - Parameters:
  ///   - domain: The file's domain, such as `KeychainDomain`.
  ///   - relativePath: The file's path in the domain.
  /// - Returns: The file, or `nil` if the list has no file with this domain and path.
  /// - Throws: `.hostile` if the identifier in the list is not the file's hash, or occurs twice.
  public func file(domain: String, relativePath: String) throws(KeyhaulError) -> ListedFile? {
    switch form {
    case .database(let database): return try database.file(domain: domain, relativePath: relativePath)
    case .mbdb(let manifest):
      var match: ListedFile?
      try forEachEntry(of: manifest) { (entry, _) throws(KeyhaulError) in
        guard entry.domain == domain, entry.record.relativePath == relativePath, entry.undecodedDomain == nil,
          entry.record.undecodedPath == nil
        else { return }
        guard match == nil else {
          throw KeyhaulError(
            .hostile, "\(MetadataFile.oldDatabase.path) lists \(quoted("\(domain)-\(relativePath)")) twice")
        }
        match = try ListedFile(entry)
      }
      return match
    }
  }

  /// Returns the files whose domain or path is not UTF-8 and is displayed as the given text, in the list's order.
  /// Several files may be displayed alike. This scans the whole list.
  ///
  /// - Throws: `.hostile` if an identifier in the list is not the file's hash.
  package func files(shownAs domain: String, _ relativePath: String) throws(KeyhaulError) -> [ListedFile] {
    var files: [ListedFile] = []
    try forEachFile { (file) throws(KeyhaulError) in
      guard file.domain == domain, file.relativePath == relativePath,
        file.undecodedDomain != nil || file.undecodedPath != nil
      else { return }
      guard try file.hasMatchingIdentifier() else {
        throw KeyhaulError(
          .hostile,
          "the list of files has \(quoted("\(domain)/\(relativePath)")) under an identifier that is not its hash")
      }
      files.append(file)
    }
    return files
  }

  /// Passes each entry of a `Manifest.mbdb` with its offset to a closure.
  private func forEachEntry(
    of manifest: MBDBManifest, _ body: (MBDBManifest.Entry, _ offset: Int) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var cursor = manifest.entries()
    var quota = RowQuota()
    while true {
      let offset = cursor.offset
      let entry = try translatingErrors(in: MetadataFile.oldDatabase.path) { () throws(FormatError) in
        try cursor.next()
      }
      guard let entry else { return }
      try quota.add()
      try body(entry, offset)
    }
  }
}
