import CSQLite

/// The bytes of an SQLite database in memory that SQLite itself allocated, so that it can take them over.
final class DatabaseImage {
  private let base: UnsafeMutablePointer<UInt8>
  private var isOwner = true
  private(set) var count: Int
  private let capacity: Int

  /// Room for `capacity` bytes, none of them filled yet.
  init(capacity: Int) throws(BackupArchiveError) {
    let size = UInt64(max(capacity, 1))
    guard let memory = sqlite3_malloc64(size) else {
      throw BackupArchiveError(.unreadable, "no memory for a manifest database of \(grouped(Int64(capacity))) bytes")
    }
    base = memory.assumingMemoryBound(to: UInt8.self)
    count = 0
    self.capacity = capacity
  }

  deinit { if isOwner { sqlite3_free(base) } }

  func append(_ bytes: [UInt8]) throws(BackupArchiveError) {
    guard bytes.count <= capacity - count else {
      throw BackupArchiveError(.damaged, "the manifest database is longer than its stored form")
    }
    bytes.withUnsafeBufferPointer { source in
      if let start = source.baseAddress { base.advanced(by: count).update(from: start, count: source.count) }
    }
    count += bytes.count
  }

  /// Whether the length is that of whole pages, of any size that SQLite has.
  var isWholePages: Bool { count > 0 && count.isMultiple(of: 512) }

  /// A database that a device left in write-ahead mode is read like any other once its two format bytes say so.
  ///
  /// Source: SQLite, `sqlite3_deserialize`, on bytes 18 and 19 of the header.
  func leaveWriteAheadMode() -> Bool {
    guard count >= 20, base[18] == 2 || base[19] == 2 else { return false }
    base[18] = 1
    base[19] = 1
    return true
  }

  subscript(range: Range<Int>) -> [UInt8] {
    guard range.lowerBound >= 0, range.upperBound <= count else { return [] }
    return Array(UnsafeBufferPointer(rebasing: UnsafeBufferPointer(start: base, count: count)[range]))
  }

  /// Opens the image as the main database of a connection, for reading only; SQLite owns the bytes from now on.
  func attach(to connection: OpaquePointer) -> Int32 {
    let size = Int64(count)
    isOwner = false
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY)
    return sqlite3_deserialize(connection, "main", base, size, size, flags)
  }
}

extension DatabaseImage {
  static let magic = Array("SQLite format 3\0".utf8)
  static let headerByteCount = 100

  /// Checks the header before SQLite sees it: that the pages the file is made of are all there.
  ///
  /// Source: SQLite, "Database File Format", section 1.3.
  func checkHeader() throws(BackupArchiveError) {
    guard count >= Self.headerByteCount, self[0..<16] == Self.magic else {
      throw BackupArchiveError(.damaged, "the manifest database is not an SQLite database")
    }
    let header = self[0..<Self.headerByteCount]
    let stored = Int(header[16]) << 8 | Int(header[17])
    let pageByteCount = stored == 1 ? 65_536 : stored
    guard pageByteCount >= 512, pageByteCount <= 65_536, pageByteCount & (pageByteCount - 1) == 0 else {
      throw BackupArchiveError(.damaged, "the manifest database has pages of \(pageByteCount) bytes")
    }
    let pageCount = header[28..<32].reduce(0) { $0 << 8 | Int($1) }
    let isCountValid = header[24..<28].elementsEqual(header[92..<96])
    guard count.isMultiple(of: pageByteCount), !isCountValid || pageCount <= count / pageByteCount else {
      throw BackupArchiveError(
        .truncated, "the manifest database has \(grouped(Int64(count))) bytes, which is not \(pageCount) whole pages")
    }
  }
}
