import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

/// The list of files of a current backup (`Manifest.db`).
///
/// Nothing in it runs: it is read-only, its schema is compared with the expected one before any other query, and it
/// must hold neither triggers nor views nor virtual tables nor computed columns. Every question opens a connection of
/// its own, so that one may be asked while another is being answered.
final class ManifestDatabase: Sendable {
  let bytes: DatabaseBytes
  private let records: RecordReader
  /// What the database's own check came to. Its bytes are a copy that nobody changes.
  private let check = Locked(Check.pending)
  /// Names that are not UTF-8, once all rows were counted.
  let undecodedNames = Locked(UndecodedNames())

  private enum Check {
    case pending, passed
    case failed(ReadableRows)
  }

  /// What was unusual, and tolerated. What a large database's own check finds is among it once all of it was read.
  var notes: [ArchiveNote] {
    let found = [readableRows?.finding, undecodedNames.withLock { $0.finding(in: StoredPart.database.path) }]
    return bytes.notes + found.compactMap { $0.map(ArchiveNote.finding) }
  }

  /// The rows that can be read, where the check failed.
  private var readableRows: ReadableRows? {
    check.withLock { if case .failed(let rows) = $0 { rows } else { nil } }
  }

  /// Up to this size the database's own check runs when it is opened. A larger one is checked when all of it is read;
  /// for a single row it would take longer than anything else.
  static let maximumByteCountCheckedAtOnce = 64 << 20

  /// - Parameter recordKey: Opens the records, where each of them is sealed.
  init(_ bytes: DatabaseBytes, recordKey: ManifestRecordKey? = nil) throws(KeyhaulError) {
    self.bytes = bytes
    records = RecordReader(key: recordKey)
    let connection = try ManifestConnection(bytes)
    try ManifestSchema.check(connection)
    if bytes.cut != nil || bytes.byteCount <= Self.maximumByteCountCheckedAtOnce { try checkPages(connection) }
  }

  /// Whether the database's own check finds nothing, whatever its size.
  func isSound() throws(KeyhaulError) -> Bool {
    _ = try checkedConnection()
    return readableRows == nil
  }

  private func checkedConnection() throws(KeyhaulError) -> ManifestConnection {
    let connection = try ManifestConnection(bytes)
    if case .pending = check.withLock({ $0 }) { try checkPages(connection) }
    return connection
  }

  /// Runs SQLite's own check of every page and index, unless the database is truncated, which would be the check's only
  /// finding. If the check fails, each row is tried separately.
  private func checkPages(_ connection: ManifestConnection) throws(KeyhaulError) {
    var fault = bytes.cut
    if fault == nil, let result = try connection.firstFault() {
      fault = "the manifest database fails its check: \(quoted(result))"
    }
    // If SQLite has no memory for a page, its check reports the page as damaged.
    if fault?.hasSuffix("unable to get the page. error code=7\"") == true {
      throw KeyhaulError(.unreadable, "the manifest database: out of memory", of: .noMemory)
    }
    guard let fault else { return check.withLock { $0 = .passed } }
    let rows = try ReadableRows(of: connection, byteCount: bytes.byteCount, columns: Self.columns, reason: fault)
    guard !rows.numbers.isEmpty else {
      throw KeyhaulError(bytes.cut == nil ? .damaged : .truncated, rows.reason)
    }
    check.withLock { $0 = .failed(rows) }
  }

  /// Lends the rows, those of a damaged database as far as they can be read.
  ///
  /// - Parameters:
  ///   - columns: What of a row is read.
  ///   - condition: Leaves rows out.
  ///   - limit: The most rows that are lent.
  func forEachRow(
    _ columns: String, where condition: String = "1", atMost limit: Int = .max,
    _ body: (borrowing UntrustedRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let connection = try checkedConnection()
    guard let rows = readableRows else {
      let end = limit == .max ? "" : " LIMIT \(limit)"
      return try connection.forEachRow("SELECT \(columns) FROM Files WHERE \(condition)\(end)", [], body)
    }
    var count = 0
    for number in rows.numbers where count < limit {
      let query = "SELECT \(columns) FROM Files WHERE rowid = \(number) AND \(condition)"
      try connection.forEachRow(query) { (row) throws(KeyhaulError) in
        count += 1
        try body(row)
      }
    }
  }

  /// The row of a file, found by its identifier, which has to be the hash of its domain and path.
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

  /// Those under an identifier or a name; more than one where the two are of different rows.
  private func files(
    _ identifier: String, domain: String, relativePath: String
  ) throws(KeyhaulError) -> [ListedFile?] {
    var files: [ListedFile?] = []
    guard readableRows == nil else {
      // An index of a damaged database may name any row.
      try forEachRow(Self.columns) { row in
        let isNamed = row.text(1) == domain && row.text(2) == relativePath
        if isNamed || row.text(0) == identifier { files.append(ListedFile(row, records)) }
      }
      return files
    }
    let connection = try ManifestConnection(bytes)
    // An unchecked index may lack a row that the table has.
    for order in ["", "NOT INDEXED"] where files.isEmpty {
      try connection.forEachRow(
        """
        SELECT \(Self.columns) FROM Files \(order)
        WHERE fileID = ?1 OR (domain = ?2 AND relativePath = ?3) LIMIT 2
        """, [.text(identifier), .text(domain), .text(relativePath)]
      ) { row in files.append(ListedFile(row, records)) }
    }
    return files
  }

  private static let columns = "fileID, domain, relativePath, flags, file"

  func forEachFile(_ body: (ListedFile) throws(KeyhaulError) -> Void) throws(KeyhaulError) {
    var meter = FileList.RowMeter()
    try forEachRow(Self.columns) { (row) throws(KeyhaulError) in
      try meter.add()
      if let file = ListedFile(row, records) { try body(file) }
    }
  }

  /// Counts without making values of a million rows.
  func listing(against stored: StoredPayloads?) throws(KeyhaulError) -> FileList.Listing {
    try listing(against: stored, Self.columns) { (_) throws(KeyhaulError) in }
  }

  func listing(
    against stored: StoredPayloads?, lending kind: ListedFile.Kind?,
    forEachFile body: (ListedFile, FilePlace) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> FileList.Listing {
    var withoutIdentifier = 0
    var listing = try listing(against: stored, "\(Self.columns), rowid") { (row) throws(KeyhaulError) in
      guard kind == nil || ListedFile.Kind(row, records) == kind else { return }
      guard let file = ListedFile(row, records), let place = row.number(5) else {
        withoutIdentifier += 1
        return
      }
      try body(file, FilePlace(number: place))
    }
    listing.rowWithoutIdentifierCount = withoutIdentifier
    return listing
  }

  private func listing(
    against stored: StoredPayloads?, _ columns: String,
    _ body: (borrowing UntrustedRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> FileList.Listing {
    var listing = FileList.Listing()
    var domains = DomainCounter()
    var undecoded = UndecodedNames()
    var meter = FileList.RowMeter()
    let hasher = try explained("the manifest database") { () throws(DataProtectionError) in try DigestStream(.sha1) }
    try forEachRow(columns) { (row) throws(KeyhaulError) in
      try meter.add()
      let kind = ListedFile.Kind(row, records)
      switch try Self.standing(of: row, hasher) {
      case .foreign: listing.unreadableRowCount += 1
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

  /// Whether the domain, the path or the link's target of a row is not UTF-8.
  private func hasUndecodedNames(_ row: borrowing UntrustedRow, _ kind: ListedFile.Kind) -> Bool {
    for column: Int32 in 1...2 where row.withText(column, DecodedName.isUTF8) == false { return true }
    return kind == .link && records.file(in: row, 4)?.undecodedTarget != nil
  }

  /// As `StoredPayloads.lacks` says it of a file.
  private func isMissing(_ row: borrowing UntrustedRow, in stored: StoredPayloads) -> Bool {
    guard let name = row.withText(0, { StoredPayloads.Name(bytes: $0) }).flatMap(\.self) else { return false }
    return !stored.contains(name) && records.file(in: row, 4)?.needsPayload ?? true
  }

  func reader() throws(KeyhaulError) -> Reader { try Reader(try checkedConnection(), records) }

  /// Reads single rows by their numbers.
  final class Reader {
    private let query: ManifestConnection.Statement
    private let records: RecordReader

    fileprivate init(_ connection: ManifestConnection, _ records: RecordReader) throws(KeyhaulError) {
      query = try connection.statement("SELECT \(ManifestDatabase.columns) FROM Files WHERE rowid = ?1")
      self.records = records
    }

    func file(at place: FilePlace) throws(KeyhaulError) -> ListedFile? {
      var file: ListedFile?
      try query.forEachRow([.integer(place.number)]) { file = ListedFile($0, records) }
      return file
    }
  }

  private static let hyphen = Array("-".utf8)

  private enum Standing {
    case consistent, withoutDomain, foreign
  }

  /// Whether a row's identifier is the hash of its domain and path, without making texts of a million rows.
  private static func standing(
    of row: borrowing UntrustedRow, _ hasher: DigestStream
  ) throws(KeyhaulError) -> Standing {
    guard let identifier = row.withText(0, { StoredPayloads.Name(bytes: $0) }).flatMap(\.self) else { return .foreign }
    let standing = try row.withTexts(1, 2) { (domain, path) throws(KeyhaulError) -> Standing in
      guard ListedFile.isInsideItsDomain(domain: domain, path: path) else { return .foreign }
      let hash: StoredPayloads.Name?
      do throws(DataProtectionError) {
        try hasher.update(domain)
        try hasher.update(hyphen)
        try hasher.update(path)
        hash = try hasher.finish { StoredPayloads.Name(hash: $0) }
      } catch {
        throw KeyhaulError(error, in: "the manifest database")
      }
      return identifier == hash ? .consistent : .foreign
    }
    if let standing { return standing }
    return row.isNull(1) && (row.isNull(2) || row.withText(2, { _ in true }) == true) ? .withoutDomain : .foreign
  }
}

/// Counts texts without making one of each row's.
private struct DomainCounter {
  private var numbers: [[UInt8]: Int] = [:]
  /// Rows of one domain stand together for the most part.
  private var last: (domain: [UInt8], count: Int) = ([], 0)

  mutating func add(_ domain: UnsafeRawBufferPointer) {
    if last.count > 0, domain.elementsEqual(last.domain) {
      last.count += 1
      return
    }
    put()
    last = (Array(domain), 1)
  }

  /// Of the domains, that of the last row apart.
  var count: Int { numbers.count }

  private mutating func put() {
    if last.count > 0 { numbers[last.domain, default: 0] += last.count }
  }

  var counts: [String: Int] {
    var copy = self
    copy.put()
    // A domain that is not UTF-8 may meet one whose name has the escape itself.
    return Dictionary(copy.numbers.map { (DecodedName($0.key).text, $0.value) }, uniquingKeysWith: +)
  }
}
