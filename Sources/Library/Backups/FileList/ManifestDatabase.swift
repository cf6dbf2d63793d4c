import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

/// The list of files of a newer backup (`Manifest.db`).
///
/// The database is read-only and executes nothing: its schema is checked first, and it must not contain triggers,
/// views, virtual tables, or computed columns. Each query uses its own connection, so queries can be nested.
final class ManifestDatabase: Sendable {
  let bytes: DatabaseBytes
  private let records: RecordReader
  /// The result of the integrity check. It stays valid, because the bytes are a private copy.
  private let check = Locked(Check.pending)
  /// The non-UTF-8 names, once all rows were counted.
  let undecodedNames = Locked(UndecodedNames())

  private enum Check {
    case pending, passed
    case failed(SalvagedRows)
  }

  /// Anomalies that were tolerated. For a large database, complete only after the database was read completely.
  var anomalies: [ToleratedAnomaly] {
    let findings = [salvagedRows?.finding, undecodedNames.withLock { $0.finding(in: MetadataFile.database.path) }]
    return bytes.anomalies + findings.compactMap { $0.map(ToleratedAnomaly.finding) }
  }

  /// The readable rows, if the check failed.
  private var salvagedRows: SalvagedRows? {
    check.withLock { if case .failed(let rows) = $0 { rows } else { nil } }
  }

  /// The maximum size at which the database is checked when it is opened. A larger one is checked when it is read
  /// completely, because a single row does not justify the time.
  static let maximumByteCountCheckedAtOnce = 64 << 20

  /// Creates a list.
  ///
  /// - Parameter recordKey: The key of the records, if each is encrypted.
  init(_ bytes: DatabaseBytes, recordKey: ManifestRecordKey? = nil) throws(KeyhaulError) {
    self.bytes = bytes
    records = RecordReader(key: recordKey)
    let connection = try ManifestConnection(bytes)
    try ManifestSchema.check(connection)
    if bytes.truncation != nil || bytes.byteCount <= Self.maximumByteCountCheckedAtOnce { try checkPages(connection) }
  }

  /// Returns whether the integrity check finds no fault, for any size.
  func isSound() throws(KeyhaulError) -> Bool {
    _ = try checkedConnection()
    return salvagedRows == nil
  }

  /// Opens a connection, and checks the database if this was not done before.
  private func checkedConnection() throws(KeyhaulError) -> ManifestConnection {
    let connection = try ManifestConnection(bytes)
    if case .pending = check.withLock({ $0 }) { try checkPages(connection) }
    return connection
  }

  /// Runs SQLite's own check of every page and index. A truncated database is not checked, because it certainly fails.
  /// If the database fails the check, each row is tried separately.
  private func checkPages(_ connection: ManifestConnection) throws(KeyhaulError) {
    var fault = bytes.truncation
    if fault == nil, let firstFault = try connection.firstFault() {
      fault = "the manifest database fails its check: \(quoted(firstFault))"
    }
    // If SQLite has no memory for a page (`SQLITE_NOMEM` is 7), its check reports the page as damaged.
    if fault?.hasSuffix("unable to get the page. error code=7\"") == true {
      throw KeyhaulError(.unreadable, "the manifest database: out of memory", of: .noMemory)
    }
    guard let fault else { return check.withLock { $0 = .passed } }
    let rows = try SalvagedRows(of: connection, byteCount: bytes.byteCount, columns: Self.columns, reason: fault)
    guard !rows.rowNumbers.isEmpty else {
      throw KeyhaulError(bytes.truncation == nil ? .damaged : .truncated, rows.reason)
    }
    check.withLock { $0 = .failed(rows) }
  }

  /// Passes the rows to a closure. In a damaged database, only the readable rows are passed.
  ///
  /// - Parameters:
  ///   - columns: The columns to read.
  ///   - condition: The condition for the rows.
  ///   - limit: The maximum number of rows.
  func forEachRow(
    _ columns: String, where condition: String = "1", atMost limit: Int = .max,
    _ body: (borrowing UntrustedRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let connection = try checkedConnection()
    guard let rows = salvagedRows else {
      let limitClause = limit == .max ? "" : " LIMIT \(limit)"
      return try connection.forEachRow("SELECT \(columns) FROM Files WHERE \(condition)\(limitClause)", [], body)
    }
    var count = 0
    for number in rows.rowNumbers where count < limit {
      let query = "SELECT \(columns) FROM Files WHERE rowid = \(number) AND \(condition)"
      try connection.forEachRow(query) { (row) throws(KeyhaulError) in
        count += 1
        try body(row)
      }
    }
  }

  /// Finds the row of a file by its identifier, which must be the hash of its domain and path.
  func file(domain: String, relativePath: String) throws(KeyhaulError) -> ListedFile? {
    let identifier = try ListedFile.identifier(domain: domain, relativePath: relativePath)
    let files = try files(identifier, domain: domain, relativePath: relativePath)
    guard let first = files.first else { return nil }
    guard files.count == 1, let file = first, file.fileIdentifier == identifier, file.domain == domain,
      file.relativePath == relativePath
    else {
      throw KeyhaulError(
        .hostile,
        "the manifest database lists \(quoted("\(domain)-\(relativePath)")) under an identifier that is not the hash "
          + "of its path")
    }
    return file
  }

  /// Returns the files with an identifier or a name. A valid list has one row with both. An element is `nil` if its row
  /// has no valid identifier.
  private func files(
    _ identifier: String, domain: String, relativePath: String
  ) throws(KeyhaulError) -> [ListedFile?] {
    var files: [ListedFile?] = []
    guard salvagedRows == nil else {
      // The index of a damaged database may refer to any row.
      try forEachRow(Self.columns) { row in
        let hasName = row.text(1) == domain && row.text(2) == relativePath
        if hasName || row.text(0) == identifier { files.append(ListedFile(row, records)) }
      }
      return files
    }
    let connection = try ManifestConnection(bytes)
    // An unchecked index may lack a row of the table.
    for indexClause in ["", "NOT INDEXED"] where files.isEmpty {
      try connection.forEachRow(
        """
        SELECT \(Self.columns) FROM Files \(indexClause)
        WHERE fileID = ?1 OR (domain = ?2 AND relativePath = ?3) LIMIT 2
        """, [.text(identifier), .text(domain), .text(relativePath)]
      ) { row in files.append(ListedFile(row, records)) }
    }
    return files
  }

  private static let columns = "fileID, domain, relativePath, flags, file"

  /// Passes all files to a closure, without rows that have no valid identifier.
  func forEachFile(_ body: (ListedFile) throws(KeyhaulError) -> Void) throws(KeyhaulError) {
    var quota = FileList.RowQuota()
    try forEachRow(Self.columns) { (row) throws(KeyhaulError) in
      try quota.add()
      if let file = ListedFile(row, records) { try body(file) }
    }
  }

  /// Counts the rows without creating a `ListedFile` for each row.
  func listing(against stored: StoredPayloads?) throws(KeyhaulError) -> FileList.Listing {
    try listing(against: stored, Self.columns) { (_) throws(KeyhaulError) in }
  }

  /// Counts the rows, and passes each file of a kind to a closure, as `FileList.listing(against:only:forEachFile:)`.
  func listing(
    against stored: StoredPayloads?, only kind: ListedFile.Kind?,
    forEachFile body: (ListedFile, FileLocation) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> FileList.Listing {
    var withoutIdentifierCount = 0
    var listing = try listing(against: stored, "\(Self.columns), rowid") { (row) throws(KeyhaulError) in
      guard kind == nil || ListedFile.Kind(row, records) == kind else { return }
      guard let file = ListedFile(row, records), let rowNumber = row.integer(5) else {
        withoutIdentifierCount += 1
        return
      }
      try body(file, FileLocation(value: rowNumber))
    }
    listing.rowWithoutIdentifierCount = withoutIdentifierCount
    return listing
  }

  private func listing(
    against stored: StoredPayloads?, _ columns: String,
    _ body: (borrowing UntrustedRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> FileList.Listing {
    var listing = FileList.Listing()
    var domains = DomainCounter()
    var undecoded = UndecodedNames()
    var quota = FileList.RowQuota()
    let hasher = try translatingErrors(in: "the manifest database") { () throws(DataProtectionError) in
      try DigestStream(.sha1)
    }
    try forEachRow(columns) { (row) throws(KeyhaulError) in
      try quota.add()
      let kind = ListedFile.Kind(row, records)
      switch try Self.consistency(of: row, hasher) {
      case .inconsistent: listing.inconsistentRowCount += 1
      case .withoutDomain: listing.rowWithoutDomainCount += 1
      case .consistent:
        _ = row.withText(1) { domains.add($0) }
        try FileList.check(domainCount: domains.count)
        listing.count(kind)
      }
      if hasUndecodedNames(row, kind) { undecoded.add(domain: row.name(1)?.text, path: row.name(2)?.text) }
      if kind == .file, let stored, isMissing(row, in: stored) { listing.missingCount += 1 }
      try body(row)
    }
    listing.rowCountByDomain = domains.counts
    let names = undecoded
    undecodedNames.withLock { $0 = names }
    return listing
  }

  /// Returns whether the domain, path, or link target of a row is not UTF-8.
  private func hasUndecodedNames(_ row: borrowing UntrustedRow, _ kind: ListedFile.Kind) -> Bool {
    for column: Int32 in 1...2 where row.withText(column, DecodedName.isUTF8) == false { return true }
    return kind == .link && records.file(in: row, 4)?.undecodedTarget != nil
  }

  /// Returns whether the payload is missing, as `StoredPayloads.lacks` does.
  private func isMissing(_ row: borrowing UntrustedRow, in stored: StoredPayloads) -> Bool {
    guard let identifier = row.withText(0, { StoredPayloads.Identifier(digits: $0) }).flatMap(\.self) else {
      return false
    }
    return !stored.contains(identifier) && records.file(in: row, 4)?.needsPayload ?? true
  }

  func reader() throws(KeyhaulError) -> Reader { try Reader(try checkedConnection(), records) }

  /// A reader of single rows by number.
  final class Reader {
    private let query: ManifestConnection.Statement
    private let records: RecordReader

    fileprivate init(_ connection: ManifestConnection, _ records: RecordReader) throws(KeyhaulError) {
      query = try connection.statement("SELECT \(ManifestDatabase.columns) FROM Files WHERE rowid = ?1")
      self.records = records
    }

    func file(at location: FileLocation) throws(KeyhaulError) -> ListedFile? {
      var file: ListedFile?
      try query.forEachRow([.integer(location.value)]) { file = ListedFile($0, records) }
      return file
    }
  }

  private static let hyphen = Array("-".utf8)

  private enum RowConsistency {
    case consistent, withoutDomain, inconsistent
  }

  /// Checks whether a row's identifier is the hash of its domain and path, without creating strings.
  private static func consistency(
    of row: borrowing UntrustedRow, _ hasher: DigestStream
  ) throws(KeyhaulError) -> RowConsistency {
    guard let identifier = row.withText(0, { StoredPayloads.Identifier(digits: $0) }).flatMap(\.self) else {
      return .inconsistent
    }
    let consistency = try row.withTexts(1, 2) { (domain, path) throws(KeyhaulError) -> RowConsistency in
      guard ListedFile.isInsideItsDomain(domain: domain, path: path) else { return .inconsistent }
      let hash: StoredPayloads.Identifier?
      do throws(DataProtectionError) {
        try hasher.update(domain)
        try hasher.update(hyphen)
        try hasher.update(path)
        hash = try hasher.finish { StoredPayloads.Identifier(hash: $0) }
      } catch {
        throw KeyhaulError(error, in: "the manifest database")
      }
      return identifier == hash ? .consistent : .inconsistent
    }
    if let consistency { return consistency }
    let hasTextPath = row.withText(2, { _ in true }) == true
    return row.isNull(1) && (row.isNull(2) || hasTextPath) ? .withoutDomain : .inconsistent
  }
}

/// Counts the rows of each domain without creating strings.
private struct DomainCounter {
  private var rowCounts: [[UInt8]: Int] = [:]
  /// The last domain, because rows of a domain are usually adjacent.
  private var last: (domain: [UInt8], count: Int) = ([], 0)

  mutating func add(_ domain: UnsafeRawBufferPointer) {
    if last.count > 0, domain.elementsEqual(last.domain) {
      last.count += 1
      return
    }
    flush()
    last = (Array(domain), 1)
  }

  /// The number of domains, without the domain of the last row.
  var count: Int { rowCounts.count }

  private mutating func flush() {
    if last.count > 0 { rowCounts[last.domain, default: 0] += last.count }
  }

  /// The number of rows by domain, as displayed.
  var counts: [String: Int] {
    var copy = self
    copy.flush()
    // The displayed form of a non-UTF-8 domain may equal another domain's name.
    return Dictionary(copy.rowCounts.map { (DecodedName($0.key).text, $0.value) }, uniquingKeysWith: +)
  }
}
