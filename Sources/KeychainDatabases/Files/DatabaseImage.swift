import KeychainFormats

/// A database as bytes that SQLite opens without any file: what its log has committed stands in its pages.
struct DatabaseImage {
  let bytes: [UInt8]

  private static let signature = Array("SQLite format 3\0".utf8)
  private static let headerByteCount = 100
  /// The most bytes of a database, its log applied; one of a full device has some tens of MiB.
  static let maximumByteCount = 256 << 20

  static func isPageByteCount(_ count: Int) -> Bool { (512...65536).contains(count) && count & (count - 1) == 0 }

  /// Takes a database as its file stands.
  init(_ file: [UInt8]) throws(KeychainDatabaseError) {
    guard file.count <= Self.maximumByteCount else { throw Self.overLimit(file.count) }
    guard file.starts(with: Self.signature), file.count >= Self.headerByteCount,
      Self.isPageByteCount(Self.pageByteCount(of: file))
    else { throw KeychainDatabaseError(.unreadable, "it does not begin as an SQLite database does") }
    bytes = Self.withoutLog(file)
  }

  private init(applied: [UInt8]) { bytes = Self.withoutLog(applied) }

  var pageByteCount: Int { Self.pageByteCount(of: bytes) }

  /// The same with what a log has committed.
  func applying(_ log: WriteAheadLog, of logBytes: [UInt8]) throws(KeychainDatabaseError) -> DatabaseImage {
    let (size, overflow) = log.pageCount.multipliedReportingOverflow(by: log.pageByteCount)
    guard !overflow, size <= Self.maximumByteCount else { throw Self.overLimit(size) }
    // Pages are added by the log alone: what neither file holds is missing, and no page of zeros.
    let present = max(bytes.count / log.pageByteCount, log.pageStarts.keys.max() ?? 0)
    var applied = bytes
    let wanted = min(size, present * log.pageByteCount)
    if applied.count < wanted { applied += [UInt8](repeating: 0, count: wanted - applied.count) }
    for (page, start) in log.pageStarts where page <= wanted / log.pageByteCount {
      let place = (page - 1) * log.pageByteCount
      applied.replaceSubrange(place..<place + log.pageByteCount, with: logBytes[start..<start + log.pageByteCount])
    }
    applied.removeLast(max(applied.count - wanted, 0))
    guard applied.starts(with: Self.signature), Self.pageByteCount(of: applied) == log.pageByteCount else {
      throw KeychainDatabaseError(.damaged, "with its log it does not begin as an SQLite database does")
    }
    return DatabaseImage(applied: applied)
  }

  /// The same as it was before the change that a journal takes back.
  func takingBack(_ journal: RollbackJournal, of journalBytes: [UInt8]) throws(KeychainDatabaseError) -> DatabaseImage {
    let (size, overflow) = journal.pageCount.multipliedReportingOverflow(by: journal.pageByteCount)
    guard !overflow, size <= Self.maximumByteCount else { throw Self.overLimit(size) }
    // What the change has cut off is in the journal; what neither file holds is missing, and no page of zeros.
    let wanted = min(size, max(bytes.count, (journal.pageStarts.keys.max() ?? 0) * journal.pageByteCount))
    var former = bytes
    if former.count < wanted { former += [UInt8](repeating: 0, count: wanted - former.count) }
    for (page, start) in journal.pageStarts {
      let place = (page - 1) * journal.pageByteCount
      former.replaceSubrange(
        place..<place + journal.pageByteCount, with: journalBytes[start..<start + journal.pageByteCount])
    }
    former.removeLast(former.count - wanted)
    guard former.starts(with: Self.signature), Self.pageByteCount(of: former) == journal.pageByteCount else {
      throw KeychainDatabaseError(.damaged, "as its journal leaves it, it does not begin as an SQLite database does")
    }
    return DatabaseImage(applied: former)
  }

  private static func pageByteCount(of file: [UInt8]) -> Int {
    let stored = Int(file[16]) << 8 | Int(file[17])
    return stored == 1 ? 65536 : stored
  }

  /// A database that wants a log beside it cannot be opened from memory; it has none any more.
  private static func withoutLog(_ file: [UInt8]) -> [UInt8] {
    var bytes = file
    bytes[18] = 1
    bytes[19] = 1
    return bytes
  }

  private static func overLimit(_ count: Int) -> KeychainDatabaseError {
    KeychainDatabaseError(
      .overLimit, "it has \(Amounts.bytes(count)); at most \(Amounts.grouped(maximumByteCount)) are read")
  }
}
