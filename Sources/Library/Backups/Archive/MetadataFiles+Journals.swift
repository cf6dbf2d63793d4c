import Basics
import KeychainFormats

extension MetadataFiles {
  /// Applies the log or the journal next to the manifest database, as SQLite would: committed pages of the log, or the
  /// original pages of an unfinished change. If there is a log, the journal is ignored.
  ///
  /// - Returns: A note for the file that was applied, and a finding for each file that was not applied completely.
  mutating func applyJournals() throws(KeyhaulError) -> [BackupAnomaly] {
    guard let database else { return [] }
    var notes: [BackupAnomaly] = []
    var applicable: (pages: ReplacedPages, part: MetadataFile)?
    func reportUnread(_ part: MetadataFile, _ byteCount: Int64, _ reason: String) {
      notes.append(.finding(.listJournalUnread(name: part.path, byteCount: byteCount, reason: reason)))
    }
    for part in MetadataFile.journals {
      if let unread = unreadJournals[part] { reportUnread(part, unread.byteCount, unread.reason) }
      guard let stored = self[large: part] else { continue }
      let byteCount = Int64(stored.byteCount)
      let bytes = try stored.bytes()
      if part == .databaseJournal, RollbackJournal.isFinished(bytes) { continue }
      guard part == .databaseLog || !contains(.databaseLog) else {
        reportUnread(part, byteCount, "there is also a log")
        continue
      }
      switch try Self.pages(of: part, bytes, over: database) {
      case .none: break
      case .notApplicable(let reason): reportUnread(part, byteCount, reason)
      case .pages(let pages, let uncommittedByteCount):
        applicable = (pages, part)
        if uncommittedByteCount > 0 {
          reportUnread(
            part, Int64(uncommittedByteCount),
            "they are not part of a finished change; the finished changes before them are read")
        }
      }
    }
    guard let (pages, part) = applicable, try !pages.areStored(in: database) else { return notes }
    guard try Self.isSound(DatabaseBytes(database, replacing: pages)) else {
      notes.removeAll { $0.finding?.file == part.path }
      reportUnread(part, Int64(self[large: part]?.byteCount ?? 0), "if they are read, the manifest fails its check")
      return notes
    }
    replacedPages = (pages, part)
    return [.listJournalRead(name: part.path)] + notes
  }

  /// Returns the manifest with the changes of its log or journal, if it is an unencrypted database.
  func plaintextDatabase() throws(KeyhaulError) -> DatabaseBytes {
    guard let database else {
      throw KeyhaulError(.payloadMissing, "it has no \(MetadataFile.database.path)")
    }
    return try DatabaseBytes(database, replacing: replacedPages?.pages)
  }

  /// Returns whether the manifest is an unencrypted database whose rows can be read without a password.
  ///
  /// - Throws: A system error, such as of an unreadable file.
  func hasPlaintextList() throws(KeyhaulError) -> Bool {
    var parts = self
    do throws(KeyhaulError) {
      _ = try parts.applyJournals()
      guard let database = parts.database else { return false }
      switch try PlaintextManifest(database, replacing: parts.replacedPages?.pages) {
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
    /// The file does not belong to the database, for a reason.
    case notApplicable(String)
    /// The pages of the file, and the number of bytes after its last commit.
    case pages(ReplacedPages, uncommittedByteCount: Int)
  }

  private static func pages(
    of part: MetadataFile, _ bytes: [UInt8], over database: SpooledData
  ) throws(KeyhaulError) -> JournalContent {
    guard let storedPageByteCount = try pageByteCount(of: database) else {
      return .notApplicable("\(MetadataFile.database.path) is encrypted, or not a database")
    }
    let pages: ReplacedPages
    var uncommittedByteCount = 0
    if part == .databaseLog {
      guard let log = WriteAheadLog(bytes) else { return .notApplicable("they do not begin like an SQLite log") }
      guard log.hasFrames || log.hasUncommittedFrames else { return .none }
      guard log.pageCount > 0 else {
        return .notApplicable(
          log.hasUncommittedFrames ? "they contain no finished change" : "the frames' salts do not match the header's")
      }
      if log.hasUncommittedFrames { uncommittedByteCount = bytes.count - log.committedByteCount }
      pages = ReplacedPages(log, of: bytes)
    } else {
      guard let journal = RollbackJournal(bytes) else {
        return .notApplicable("they do not begin like an SQLite journal")
      }
      pages = ReplacedPages(journal, of: bytes)
    }
    guard pages.pageByteCount == storedPageByteCount else {
      return .notApplicable(
        "their pages have \(HumanReadable.bytes(pages.pageByteCount)), but the manifest's have "
          + HumanReadable.grouped(storedPageByteCount))
    }
    return .pages(pages, uncommittedByteCount: uncommittedByteCount)
  }

  /// Returns the page size in bytes, or `nil` if the stored bytes are not an unencrypted database.
  private static func pageByteCount(of database: SpooledData) throws(KeyhaulError) -> Int? {
    guard database.byteCount >= 18 else { return nil }
    let start = try [UInt8](count: 18) { (buffer) throws(KeyhaulError) in try database.read(at: 0, into: buffer) }
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
