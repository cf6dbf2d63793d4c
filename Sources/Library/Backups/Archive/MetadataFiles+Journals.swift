import Basics
import KeychainFormats

extension MetadataFiles {
  /// Applies the write-ahead log or the rollback journal next to the manifest database, as SQLite would.
  ///
  /// The log contains the new pages of committed changes, and the journal the original pages of an unfinished change.
  /// If there is a log, the journal is ignored.
  ///
  /// - Returns: An anomaly for the file that was applied, and a finding for each file that was not applied completely.
  mutating func applyJournals() throws(KeyhaulError) -> [ToleratedAnomaly] {
    guard let database else { return [] }
    var anomalies: [ToleratedAnomaly] = []
    var applicable: (pages: ReplacementPages, part: MetadataFile)?
    for part in MetadataFile.journals {
      if let journal = unreadJournals[part] {
        anomalies.append(Self.ignored(part, journal.byteCount, because: journal.reason))
      }
      guard let stored = self[large: part] else { continue }
      switch try content(of: part, stored, over: database) {
      case .none: break
      case .notApplicable(let reason):
        anomalies.append(Self.ignored(part, Int64(stored.byteCount), because: reason))
      case .pages(let pages, let uncommittedByteCount):
        applicable = (pages, part)
        if uncommittedByteCount > 0 {
          anomalies.append(
            Self.ignored(
              part, Int64(uncommittedByteCount),
              because: "they are not part of a finished change; the finished changes before them are read"))
        }
      }
    }
    guard let (pages, part) = applicable, try !pages.areStored(in: database) else { return anomalies }
    guard try Self.isSound(DatabaseBytes(database, replacing: pages)) else {
      anomalies.removeAll { $0.finding?.file == part.path }
      let byteCount = Int64(self[large: part]?.byteCount ?? 0)
      return anomalies + [Self.ignored(part, byteCount, because: "if they are read, the manifest fails its check")]
    }
    replacementPages = (pages, part)
    return [.listJournalRead(name: part.path)] + anomalies
  }

  /// Returns the finding for ignored bytes of a log or journal.
  ///
  /// - Parameter reason: The reason for ignoring the bytes, as a clause that calls them "they".
  private static func ignored(_ part: MetadataFile, _ byteCount: Int64, because reason: String) -> ToleratedAnomaly {
    .finding(.listJournalUnread(name: part.path, byteCount: byteCount, reason: reason))
  }

  /// Returns the manifest with the changes of its log or journal, if it is an unencrypted database.
  func plaintextDatabase() throws(KeyhaulError) -> DatabaseBytes {
    guard let database else {
      throw KeyhaulError(.payloadMissing, "it has no \(MetadataFile.database.path)")
    }
    return try DatabaseBytes(database, replacing: replacementPages?.pages)
  }

  /// Returns whether the manifest is an unencrypted database whose rows can be read without a password.
  ///
  /// - Throws: A system error, such as for an unreadable file. Other errors mean that the rows cannot be read.
  func hasPlaintextList() throws(KeyhaulError) -> Bool {
    var parts = self
    do throws(KeyhaulError) {
      _ = try parts.applyJournals()
      guard let database = parts.database else { return false }
      switch try PlaintextManifest(database, replacing: parts.replacementPages?.pages) {
      case .filesHaveKeys?, .nothingIsEncrypted?: return true
      case .rowsAreEncrypted?, nil: return false
      }
    } catch {
      guard error.category != .failed else { throw error }
      return false
    }
  }

  /// The content of a log or journal.
  private enum JournalContent {
    /// The file contains no changes.
    case none
    /// The file cannot be applied to the database, for a reason.
    case notApplicable(String)
    /// The pages of the file, and the number of bytes after its last commit.
    case pages(ReplacementPages, uncommittedByteCount: Int)
  }

  private func content(
    of part: MetadataFile, _ stored: SpooledData, over database: SpooledData
  ) throws(KeyhaulError) -> JournalContent {
    let bytes = try stored.bytes()
    if part == .databaseJournal, RollbackJournal.isFinished(bytes) { return .none }
    guard part == .databaseLog || !contains(.databaseLog) else { return .notApplicable("there is also a log") }
    guard let storedPageByteCount = try Self.pageByteCount(of: database) else {
      return .notApplicable("\(MetadataFile.database.path) is encrypted, or not a database")
    }
    let content = part == .databaseLog ? Self.content(ofLog: bytes) : Self.content(ofJournal: bytes)
    guard case .pages(let pages, _) = content, pages.pageByteCount != storedPageByteCount else { return content }
    return .notApplicable(
      "their pages have \(HumanReadable.bytes(pages.pageByteCount)), but the manifest's have "
        + HumanReadable.grouped(storedPageByteCount))
  }

  private static func content(ofLog bytes: [UInt8]) -> JournalContent {
    guard let log = WriteAheadLog(bytes) else { return .notApplicable("they do not begin like an SQLite log") }
    guard log.hasFrames || log.hasUncommittedFrames else { return .none }
    guard log.pageCount > 0 else {
      return .notApplicable(
        log.hasUncommittedFrames ? "they contain no finished change" : "the frames' salts do not match the header's")
    }
    return .pages(
      ReplacementPages(log, in: bytes),
      uncommittedByteCount: log.hasUncommittedFrames ? bytes.count - log.committedByteCount : 0)
  }

  private static func content(ofJournal bytes: [UInt8]) -> JournalContent {
    guard let journal = RollbackJournal(bytes) else {
      return .notApplicable("they do not begin like an SQLite journal")
    }
    return .pages(ReplacementPages(journal, in: bytes), uncommittedByteCount: 0)
  }

  /// Returns the page size in bytes, or `nil` if the stored bytes are not an unencrypted database.
  ///
  /// Source: SQLite file format, "The Database Header": bytes 16 and 17 contain the page size, and 1 means 65,536.
  private static func pageByteCount(of database: SpooledData) throws(KeyhaulError) -> Int? {
    let headerStartByteCount = 18
    guard database.byteCount >= headerStartByteCount else { return nil }
    let start = try [UInt8](count: headerStartByteCount) { (buffer) throws(KeyhaulError) in
      try database.read(at: 0, into: buffer)
    }
    guard start.starts(with: DatabaseBytes.magic) else { return nil }
    let size = Int(start[16]) << 8 | Int(start[17])
    return size == 1 ? 65_536 : size
  }

  /// Returns whether the database has the tables of a manifest, and SQLite finds no error in its pages.
  private static func isSound(_ bytes: DatabaseBytes) throws(KeyhaulError) -> Bool {
    do throws(KeyhaulError) {
      return try ManifestDatabase(bytes).isSound()
    } catch {
      guard error.category == .damaged || error.code == .hostile || error.code == .overLimit else { throw error }
      return false
    }
  }
}
