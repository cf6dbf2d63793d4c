import DataProtection
import KeychainFormats

/// The list of files of a current backup (`Manifest.db`).
///
/// Nothing in it runs: it is read-only, its schema is compared with the expected one before any other query, and it
/// must hold neither triggers nor views nor virtual tables nor computed columns. Every question opens a connection of
/// its own, so that one may be asked while another is being answered.
struct ManifestDatabase: Sendable {
  private let bytes: DatabaseBytes

  var notes: [ArchiveNote] { bytes.notes }

  /// Up to this size the database's own check runs when it is opened. A larger one is checked when all of it is read;
  /// for a single row it would take longer than anything else.
  static let largestCheckedAtOnce = 64 << 20

  init(_ bytes: DatabaseBytes) throws(BackupArchiveError) {
    self.bytes = bytes
    let connection = try DefensiveConnection(bytes)
    try ManifestSchema.check(connection)
    if bytes.byteCount <= Self.largestCheckedAtOnce { try Self.checkPages(connection) }
  }

  /// SQLite's own check of every page; `.damaged` with what it found first.
  func check() throws(BackupArchiveError) { try Self.checkPages(try DefensiveConnection(bytes)) }

  /// The check where opening has left it out.
  private func checkIfOpen(_ connection: DefensiveConnection) throws(BackupArchiveError) {
    if bytes.byteCount > Self.largestCheckedAtOnce { try Self.checkPages(connection) }
  }

  private static func checkPages(_ connection: DefensiveConnection) throws(BackupArchiveError) {
    var result: String?
    try connection.forEachRow("PRAGMA quick_check(1)") { result = $0.text(0) }
    guard result == "ok" else {
      throw BackupArchiveError(.damaged, "the manifest database fails its check: \(quoted(result ?? "no result"))")
    }
  }

  /// The row of a file, found by its identifier, which has to be the hash of its domain and path.
  func file(domain: String, relativePath: String) throws(BackupArchiveError) -> ListedFile? {
    let identifier = try ListedFile.identifier(domain: domain, relativePath: relativePath)
    let connection = try DefensiveConnection(bytes)
    var files: [ListedFile?] = []
    try connection.forEachRow(
      """
      SELECT fileID, domain, relativePath, flags, file FROM Files
      WHERE fileID = ?1 OR (domain = ?2 AND relativePath = ?3) LIMIT 2
      """, [identifier, domain, relativePath]
    ) { row in files.append(ListedFile(row)) }
    guard let first = files.first else { return nil }
    guard files.count == 1, let file = first, file.fileIdentifier == identifier, file.domain == domain,
      file.relativePath == relativePath
    else {
      throw BackupArchiveError(
        .hostile,
        "the manifest database lists \(quoted("\(domain)-\(relativePath)")) under an identifier that is not its hash")
    }
    return file
  }

  func forEachFile(
    checking: Bool = true, _ body: (ListedFile) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    let connection = try DefensiveConnection(bytes)
    if checking { try checkIfOpen(connection) }
    try connection.forEachRow("SELECT fileID, domain, relativePath, flags, file FROM Files") {
      (row) throws(BackupArchiveError) in
      if let file = ListedFile(row) { try body(file) }
    }
  }

  func listing() throws(BackupArchiveError) -> FileList.Listing {
    let connection = try DefensiveConnection(bytes)
    try checkIfOpen(connection)
    var listing = FileList.Listing()
    var domains = DomainCounter()
    let hasher = try explained("the manifest database") { () throws(DataProtectionError) in try SHA1Hasher() }
    try connection.forEachRow("SELECT fileID, domain, relativePath, flags FROM Files") {
      (row) throws(BackupArchiveError) in
      switch try Self.standing(of: row, hasher) {
      case .foreign: listing.unreadableRowCount += 1
      case .withoutDomain: listing.rowWithoutDomainCount += 1
      case .consistent:
        _ = row.withText(1) { domains.add($0) }
        // Bits beside these three are left over from the transfer.
        listing.count(FileFlags(rawValue: row.number(3) ?? 0).kind)
      }
    }
    listing.rowCountByDomain = domains.counts
    return listing
  }

  private enum Standing {
    case consistent, withoutDomain, foreign
  }

  /// Whether a row's identifier is the hash of its domain and path, without making texts of a million rows.
  private static func standing(
    of row: borrowing ForeignRow, _ hasher: borrowing SHA1Hasher
  ) throws(BackupArchiveError) -> Standing {
    guard let identifier = row.withText(0, { StoredPayloads.Name(bytes: $0) }).flatMap(\.self) else { return .foreign }
    let standing = try row.withTexts(1, 2) { (domain, path) throws(BackupArchiveError) -> Standing in
      guard ListedFile.isInsideItsDomain(domain: domain, path: path) else { return .foreign }
      let hash: StoredPayloads.Name?
      do throws(DataProtectionError) {
        hash = try hasher.hash(domain, UInt8(ascii: "-"), path) { StoredPayloads.Name(hash: $0) }
      } catch {
        throw BackupArchiveError(error, in: "the manifest database")
      }
      return identifier == hash ? .consistent : .foreign
    }
    if let standing { return standing }
    return row.isNull(1) && (row.isNull(2) || row.withText(2, { _ in true }) == true) ? .withoutDomain : .foreign
  }

  func missingPayloads(in stored: StoredPayloads) throws(BackupArchiveError) -> [String] {
    var missing: [String] = []
    try DefensiveConnection(bytes).forEachRow("SELECT fileID, flags, file FROM Files") {
      (row) throws(BackupArchiveError) in
      guard FileFlags(rawValue: row.number(1) ?? 0).kind == .file,
        let name = row.withText(0, { StoredPayloads.Name(bytes: $0) }).flatMap(\.self), !stored.contains(name)
      else { return }
      let size = row.data(2).flatMap { try? FileRecord(archive: $0) }?.size
      // An empty file need not be stored.
      if size != 0, let identifier = row.text(0) { missing.append(identifier) }
    }
    return missing
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

  private mutating func put() {
    if last.count > 0 { numbers[last.domain, default: 0] += last.count }
  }

  var counts: [String: Int] {
    var copy = self
    copy.put()
    // Bytes that are not UTF-8 are shown as what they are not; two such domains may meet in one name.
    return Dictionary(copy.numbers.map { (String(decoding: $0.key, as: UTF8.self), $0.value) }, uniquingKeysWith: +)
  }
}
