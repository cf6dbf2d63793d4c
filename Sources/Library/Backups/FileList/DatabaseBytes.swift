package import Basics
package import KeychainCrypto
import KeychainFormats

/// The plaintext of a manifest database for SQLite. It is decrypted when it is read, from the private copy that was
/// made when the backup was opened.
package final class DatabaseBytes: Sendable {
  /// The size of the plaintext in whole pages, according to the header if it has a page count.
  package let byteCount: Int
  /// The size of the available part. Missing pages are read as zeros, which is not a valid page, unless a log or
  /// journal contains them.
  package let presentByteCount: Int
  /// Anomalies that were tolerated.
  package let anomalies: [ToleratedAnomaly]
  private let decryptor: RandomAccessDecryptor
  /// The pages of a log or journal that replace stored ones, if there are any.
  private let replacementPages: ReplacementPages?

  package static let magic = Array("SQLite format 3\0".utf8)
  private static let headerByteCount = 100
  private static let blockSize = RandomAccessDecryptor.blockByteCount

  /// Creates the bytes of an unencrypted database.
  package convenience init(_ stored: SpooledData) throws(KeyhaulError) { try self.init(stored, replacing: nil) }

  /// Creates the bytes of an unencrypted database, some of whose pages a log or journal replaces.
  init(_ stored: SpooledData, replacing replacementPages: ReplacementPages?) throws(KeyhaulError) {
    decryptor = RandomAccessDecryptor(of: stored, key: nil, called: MetadataFile.database.path)
    self.replacementPages = replacementPages
    if let replacementPages {
      byteCount = replacementPages.databaseByteCount(storedByteCount: stored.byteCount)
      presentByteCount = min(stored.byteCount, byteCount)
      anomalies = []
      return
    }
    let header = try Self.checkedHeader(in: try decryptor.reader(), byteCount: stored.byteCount)
    (byteCount, presentByteCount) = (header.byteCount, header.presentByteCount)
    anomalies = header.anomalies
  }

  /// Creates the bytes of an encrypted database.
  ///
  /// - Throws: `.damaged` if there is less than a block, or if the plaintext is not an SQLite database.
  package init(_ stored: SpooledData, key: borrowing Secret) throws(KeyhaulError) {
    guard stored.byteCount >= Self.blockSize else {
      throw KeyhaulError(
        .damaged, "\(MetadataFile.database.path) has \(stored.byteCount) bytes, less than one block of its cipher")
    }
    // An incomplete block at the end is not part of the ciphertext.
    let incompleteByteCount = stored.byteCount % Self.blockSize
    let encryptedByteCount = stored.byteCount - incompleteByteCount
    decryptor = RandomAccessDecryptor(of: stored, key: key.copy(), called: MetadataFile.database.path)
    replacementPages = nil
    let reader = try decryptor.reader()
    let padding = try reader.paddingByteCount(endingAt: encryptedByteCount)
    // Some databases have no padding, although their last bytes may look like it. Then the size without these bytes is
    // not a multiple of any page size.
    let isPadded = padding.map { (encryptedByteCount - $0).isMultiple(of: Self.minimumPageByteCount) } ?? false
    let header = try Self.checkedHeader(
      in: reader, byteCount: isPadded ? encryptedByteCount - (padding ?? 0) : encryptedByteCount,
      trailing: incompleteByteCount)
    (byteCount, presentByteCount) = (header.byteCount, header.presentByteCount)
    anomalies =
      (isPadded || header.hasTrailingBytes || header.isTruncated ? [] : [.databaseUnpadded]) + header.anomalies
  }

  /// The description of the missing last pages, or `nil` if all pages are available.
  package var truncation: String? {
    guard presentByteCount < byteCount, replacementPages == nil else { return nil }
    return "the manifest database has only \(HumanReadable.grouped(Int64(presentByteCount))) of its "
      + "\(HumanReadable.grouped(Int64(byteCount))) bytes"
  }

  /// Creates a reader for a connection.
  package func reader() throws(KeyhaulError) -> Reader {
    Reader(self, try decryptor.reader())
  }

  /// A reader with read-ahead, so that reading a whole database takes a few thousand system calls instead of one for
  /// each page. Not thread-safe.
  ///
  /// The amount that is read ahead doubles as long as reads are sequential. Other reads load 4 KiB.
  package final class Reader: DatabaseContent {
    private let source: DatabaseBytes
    private let decryptor: RandomAccessDecryptor.Reader
    private let window: UnsafeMutableRawBufferPointer
    /// The range of the database in the window.
    private var range = 0..<0
    /// The system's error, if a read failed. SQLite would report damage instead.
    package private(set) var readError: KeyhaulError?

    private static let windowByteCount = 64 << 10
    private static let minimumByteCount = 4 << 10
    /// The size of the last read-ahead, which may be smaller at the end of the database.
    private var loadedByteCount = minimumByteCount

    fileprivate init(_ source: DatabaseBytes, _ decryptor: RandomAccessDecryptor.Reader) {
      self.source = source
      self.decryptor = decryptor
      window = .allocate(byteCount: Self.windowByteCount, alignment: 16)
    }

    deinit { window.deallocate() }

    package var byteCount: Int { source.byteCount }

    package var isRefused: Bool { readError != nil }

    package func copyBytes(from offset: Int, to buffer: UnsafeMutableRawBufferPointer) -> Bool {
      do throws(KeyhaulError) {
        try read(at: offset, into: buffer)
        return true
      } catch {
        return false
      }
    }

    /// Fills the buffer with the bytes from an offset. The range must exist.
    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
      guard offset >= 0, buffer.count <= byteCount, offset <= byteCount - buffer.count else {
        throw KeyhaulError(.truncated, "a page lies beyond the end of the manifest database")
      }
      var copiedCount = 0
      while copiedCount < buffer.count {
        if !range.contains(offset + copiedCount) { try load(offset + copiedCount) }
        let start = offset + copiedCount - range.lowerBound
        let section = window[start..<min(range.count, start + buffer.count - copiedCount)]
        UnsafeMutableRawBufferPointer(rebasing: buffer[copiedCount...]).copyMemory(from: .init(rebasing: section))
        copiedCount += section.count
      }
      // SQLite reads a database in write-ahead mode like any other if the header has the versions of a rollback
      // journal.
      for position in DatabaseBytes.versionOffsets where (offset..<offset + buffer.count).contains(position) {
        if buffer[position - offset] == DatabaseBytes.writeAheadVersion {
          buffer[position - offset] = DatabaseBytes.rollbackVersion
        }
      }
    }

    /// Reads the window that contains an offset.
    private func load(_ offset: Int) throws(KeyhaulError) {
      let isSequential = offset == range.upperBound
      loadedByteCount = isSequential ? min(2 * loadedByteCount, Self.windowByteCount) : Self.minimumByteCount
      let start = offset / Self.minimumByteCount * Self.minimumByteCount
      let end = min(start + loadedByteCount, byteCount)
      let presentCount = max(0, min(end, source.presentByteCount) - start)
      range = 0..<0
      do throws(KeyhaulError) {
        try decryptor.read(at: start, into: UnsafeMutableRawBufferPointer(rebasing: window[..<presentCount]))
      } catch {
        if error.code == .unreadable { readError = error }
        throw error
      }
      UnsafeMutableRawBufferPointer(rebasing: window[presentCount..<(end - start)])
        .initializeMemory(as: UInt8.self, repeating: 0)
      source.replacementPages?.overwrite(
        UnsafeMutableRawBufferPointer(rebasing: window[..<(end - start)]), at: start)
      range = start..<end
    }
  }

  /// The values of the header.
  private struct Header {
    /// The size of all pages.
    let byteCount: Int
    /// The size of the available pages.
    let presentByteCount: Int
    /// The number of bytes after the last page.
    let trailingByteCount: Int
    let pageByteCount: Int
    let isInWriteAheadMode: Bool

    var hasTrailingBytes: Bool { trailingByteCount > 0 }
    var isTruncated: Bool { presentByteCount < byteCount }

    var anomalies: [ToleratedAnomaly] {
      (isInWriteAheadMode ? [.databaseInWriteAheadMode] : [])
        + (hasTrailingBytes
          ? [
            .finding(
              .listTrailingBytes(
                count: trailingByteCount, isWholePages: trailingByteCount.isMultiple(of: pageByteCount)))
          ] : [])
    }
  }

  /// The maximum ratio of the original to the available size. Each missing page is read as zeros.
  private static let maximumTruncationFactor = 64
  private static let minimumPageByteCount = 512
  private static let maximumPageByteCount = 65_536
  /// The offsets of the versions for writing and reading in the header.
  private static let versionOffsets = 18...19
  private static let rollbackVersion: UInt8 = 1
  private static let writeAheadVersion: UInt8 = 2

  /// Checks the header before SQLite reads it, and determines the available pages. All numbers are big-endian:
  ///
  ///     offset  bytes
  ///          0     16  "SQLite format 3" and NUL
  ///         16      2  page size, in which 1 means 65,536
  ///         18      1  version for writing: 2 in write-ahead mode
  ///         19      1  version for reading: 2 in write-ahead mode
  ///         24      4  change counter
  ///         28      4  number of pages
  ///         92      4  change counter at which the number of pages was stored
  ///
  /// The number of pages is used if the two change counters are equal, as in SQLite. Pages and bytes beyond that number
  /// are not part of the database.
  ///
  /// - Parameter incompleteByteCount: The number of bytes after the encrypted blocks.
  ///
  /// Source: SQLite, "Database File Format", sections 1.3, 1.3.3 and 1.3.8.
  private static func checkedHeader(
    in reader: RandomAccessDecryptor.Reader, byteCount: Int, trailing incompleteByteCount: Int = 0
  ) throws(KeyhaulError) -> Header {
    let header = try headerBytes(in: reader, byteCount: byteCount)
    let pageByteCount = try pageByteCount(of: header)
    let pageCount = header[28..<32].reduce(0) { $0 << 8 | Int($1) }
    let isPageCountValid = pageCount > 0 && header[24..<28].elementsEqual(header[92..<96])
    let wholePageCount = byteCount / pageByteCount
    let isPlausible =
      isPageCountValid
      ? wholePageCount > 0 && pageCount / maximumTruncationFactor <= wholePageCount
      // Without a page count, missing and additional pages cannot be distinguished.
      : byteCount.isMultiple(of: pageByteCount)
    guard isPlausible else {
      throw KeyhaulError(
        .truncated,
        "the manifest database has \(HumanReadable.grouped(Int64(byteCount))) bytes, which is not \(pageCount) whole pages"
      )
    }
    let allPagesByteCount = (isPageCountValid ? pageCount : wholePageCount) * pageByteCount
    let isTruncated = isPageCountValid && pageCount > wholePageCount
    return Header(
      byteCount: allPagesByteCount,
      presentByteCount: isTruncated ? wholePageCount * pageByteCount : allPagesByteCount,
      trailingByteCount: isTruncated ? 0 : byteCount + incompleteByteCount - allPagesByteCount,
      pageByteCount: pageByteCount,
      isInWriteAheadMode: versionOffsets.contains { header[$0] == writeAheadVersion })
  }

  /// Returns at least the bytes of the header.
  private static func headerBytes(
    in reader: RandomAccessDecryptor.Reader, byteCount: Int
  ) throws(KeyhaulError) -> [UInt8] {
    let notADatabase = KeyhaulError(.damaged, "the manifest database is not an SQLite database")
    guard byteCount >= headerByteCount else { throw notADatabase }
    // Only whole blocks can be decrypted.
    let end = reader.isEncrypted ? (headerByteCount + blockSize - 1) / blockSize * blockSize : headerByteCount
    guard end <= reader.stored.byteCount else { throw notADatabase }
    let header = try reader.bytes(0..<end)
    guard header.starts(with: magic) else { throw notADatabase }
    return header
  }

  /// Returns the page size in a header, which must be a power of two.
  private static func pageByteCount(of header: [UInt8]) throws(KeyhaulError) -> Int {
    let storedSize = Int(header[16]) << 8 | Int(header[17])
    let pageByteCount = storedSize == 1 ? maximumPageByteCount : storedSize
    let isPowerOfTwo = pageByteCount & (pageByteCount - 1) == 0
    guard (minimumPageByteCount...maximumPageByteCount).contains(pageByteCount), isPowerOfTwo else {
      throw KeyhaulError(.damaged, "the manifest database has pages of \(pageByteCount) bytes")
    }
    return pageByteCount
  }
}
