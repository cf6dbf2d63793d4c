package import Basics
package import KeychainCrypto
import KeychainFormats

/// The bytes of a manifest database as SQLite gets to see them: out of the private copy, decrypted where they are read.
package final class DatabaseBytes: Sendable {
  /// Of the plain database, in whole pages: as many as its header says that it has, where the header says it.
  package let byteCount: Int
  /// Of these, the bytes that are there. What is behind them was cut off, and reads as zeros, which are no page, unless it
  /// is among the replaced pages.
  package let presentByteCount: Int
  /// What was unusual, and tolerated.
  package let notes: [ArchiveNote]
  private let sections: StoredSections
  /// The pages of a log or a journal that are read instead.
  private let replaced: ReplacedPages?

  package static let magic = Array("SQLite format 3\0".utf8)
  private static let headerByteCount = 100
  private static let blockSize = StoredSections.blockByteCount

  /// A database that is stored in clear.
  package convenience init(_ stored: StoredBytes) throws(KeyhaulError) { try self.init(stored, replacing: nil) }

  /// An unencrypted database in which other pages replace some of its own.
  init(_ stored: StoredBytes, replacing replaced: ReplacedPages?) throws(KeyhaulError) {
    sections = StoredSections(of: stored, key: nil, called: StoredPart.database.path)
    self.replaced = replaced
    if let replaced {
      byteCount = replaced.databaseByteCount(over: stored.byteCount)
      presentByteCount = min(stored.byteCount, byteCount)
      notes = []
      return
    }
    let header = try Self.checkedHeader(in: try sections.reader(), byteCount: stored.byteCount)
    (byteCount, presentByteCount) = (header.byteCount, header.presentByteCount)
    notes = header.notes
  }

  /// A database that is stored encrypted.
  ///
  /// - Throws: `.damaged` for less than a block of bytes, and for ones whose plain form is no SQLite database.
  package init(_ stored: StoredBytes, key: borrowing Secret) throws(KeyhaulError) {
    guard stored.byteCount >= Self.blockSize else {
      throw KeyhaulError(
        .damaged, "\(StoredPart.database.path) has \(stored.byteCount) bytes, less than one block of its cipher")
    }
    // What is no whole block behind the last one is not part of what was encrypted.
    let rest = stored.byteCount % Self.blockSize
    let whole = stored.byteCount - rest
    sections = StoredSections(of: stored, key: key.copy(), called: StoredPart.database.path)
    replaced = nil
    let reader = try sections.reader()
    let padding = try reader.paddingByteCount(endingAt: whole)
    // Not padded at all, though its last bytes may happen to look like a padding: then what is left is no whole pages.
    let isPadded = padding.map { (whole - $0).isMultiple(of: 512) } ?? false
    let header = try Self.checkedHeader(
      in: reader, byteCount: isPadded ? whole - (padding ?? 0) : whole, trailing: rest)
    (byteCount, presentByteCount) = (header.byteCount, header.presentByteCount)
    notes = (isPadded || header.isTrailed || header.isCut ? [] : [.databaseUnpadded]) + header.notes
  }

  /// Why its last pages cannot be read; `nil` if all of them are there.
  package var cut: String? {
    guard presentByteCount < byteCount, replaced == nil else { return nil }
    return "the manifest database has only \(HumanReadable.grouped(Int64(presentByteCount))) of its "
      + "\(HumanReadable.grouped(Int64(byteCount))) bytes"
  }

  /// Reads on behalf of one connection.
  package func reader() throws(KeyhaulError) -> Reader {
    Reader(self, try sections.reader())
  }

  /// Reads ahead, so that going through a whole database asks the system and the cipher a few thousand times and not
  /// once for every page. Not to be used from two threads at once.
  ///
  /// What is read at once is doubled as long as what follows it is asked for: around a page here and another there nothing
  /// else is read.
  package final class Reader: DatabaseContent {
    private let source: DatabaseBytes
    private let sections: StoredSections.Reader
    private let window: UnsafeMutableRawBufferPointer
    /// The bytes of the database that are in the window.
    private var range = 0..<0
    /// Why the system refused to read, if it did. SQLite has no words for it, and takes it for damage in places.
    package private(set) var refusal: KeyhaulError?

    private static let windowByteCount = 64 << 10
    private static let leastByteCount = 4 << 10
    /// How many bytes were read last, some fewer at the end of the database.
    private var loadedByteCount = leastByteCount

    fileprivate init(_ source: DatabaseBytes, _ sections: StoredSections.Reader) {
      self.source = source
      self.sections = sections
      window = .allocate(byteCount: Self.windowByteCount, alignment: 16)
    }

    deinit { window.deallocate() }

    package var byteCount: Int { source.byteCount }

    package var isRefused: Bool { refusal != nil }

    package func copyBytes(from offset: Int, to buffer: UnsafeMutableRawBufferPointer) -> Bool {
      do throws(KeyhaulError) {
        try read(at: offset, into: buffer)
        return true
      } catch {
        return false
      }
    }

    /// Fills the whole buffer with the bytes from `offset` on, all of which the database has.
    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
      guard offset >= 0, buffer.count <= byteCount, offset <= byteCount - buffer.count else {
        throw KeyhaulError(.truncated, "a page lies beyond the end of the manifest database")
      }
      var done = 0
      while done < buffer.count {
        if !range.contains(offset + done) { try load(offset + done) }
        let start = offset + done - range.lowerBound
        let part = window[start..<min(range.count, start + buffer.count - done)]
        UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).copyMemory(from: .init(rebasing: part))
        done += part.count
      }
      // A database that a device left in write-ahead mode is read like any other once these two bytes say so.
      // Source: SQLite, "Database File Format", section 1.3.3.
      for place in 18...19 where place >= offset && place < offset + buffer.count && buffer[place - offset] == 2 {
        buffer[place - offset] = 1
      }
    }

    private func load(_ offset: Int) throws(KeyhaulError) {
      let follows = offset == range.upperBound
      loadedByteCount = follows ? min(2 * loadedByteCount, Self.windowByteCount) : Self.leastByteCount
      let start = offset / Self.leastByteCount * Self.leastByteCount
      let end = min(start + loadedByteCount, byteCount)
      let present = max(0, min(end, source.presentByteCount) - start)
      range = 0..<0
      do throws(KeyhaulError) {
        try sections.read(at: start, into: UnsafeMutableRawBufferPointer(rebasing: window[..<present]))
      } catch {
        if error.code == .unreadable { refusal = error }
        throw error
      }
      UnsafeMutableRawBufferPointer(rebasing: window[present..<(end - start)])
        .initializeMemory(as: UInt8.self, repeating: 0)
      source.replaced?.copy(into: UnsafeMutableRawBufferPointer(rebasing: window[..<(end - start)]), from: start)
      range = start..<end
    }
  }

  /// What the header says of the database.
  private struct Header {
    /// Of the pages that it should have.
    let byteCount: Int
    /// Of those that are there.
    let presentByteCount: Int
    /// Bytes behind the last page.
    let trailingByteCount: Int
    let pageByteCount: Int
    let isInWriteAheadMode: Bool

    var isTrailed: Bool { trailingByteCount > 0 }
    var isCut: Bool { presentByteCount < byteCount }

    var notes: [ArchiveNote] {
      (isInWriteAheadMode ? [.databaseInWriteAheadMode] : [])
        + (isTrailed
          ? [
            .finding(
              .listTrailingBytes(
                count: trailingByteCount, isWholePages: trailingByteCount.isMultiple(of: pageByteCount)))
          ] : [])
    }
  }

  /// How many times as large as what is there a database may have been before it was cut. Each absent page that is asked
  /// for is read as zeros.
  private static let maximumCutFactor = 64

  /// Checks the header before SQLite sees it: how many of the pages that the file is made of are there.
  ///
  /// Like SQLite it takes the header's count of pages where the two change counters agree: pages behind those are no
  /// part of the database, as bytes are none that are no whole page.
  ///
  /// - Parameter rest: Bytes that stand behind those.
  ///
  /// Source: SQLite, "Database File Format", section 1.3, of the count 1.3.8.
  private static func checkedHeader(
    in reader: StoredSections.Reader, byteCount: Int, trailing rest: Int = 0
  ) throws(KeyhaulError) -> Header {
    let noDatabase = KeyhaulError(.damaged, "the manifest database is not an SQLite database")
    guard byteCount >= headerByteCount else { throw noDatabase }
    // Whole blocks, which a database of any page size begins with.
    let end = reader.isEncrypted ? (headerByteCount + blockSize - 1) / blockSize * blockSize : headerByteCount
    guard end <= reader.stored.byteCount else { throw noDatabase }
    let header = try reader.bytes(0..<end)
    guard header.starts(with: magic) else { throw noDatabase }
    let size = Int(header[16]) << 8 | Int(header[17])
    let pageByteCount = size == 1 ? 65_536 : size
    guard pageByteCount >= 512, pageByteCount <= 65_536, pageByteCount & (pageByteCount - 1) == 0 else {
      throw KeyhaulError(.damaged, "the manifest database has pages of \(pageByteCount) bytes")
    }
    let pageCount = header[28..<32].reduce(0) { $0 << 8 | Int($1) }
    let isCountValid = pageCount > 0 && header[24..<28].elementsEqual(header[92..<96])
    let wholePageCount = byteCount / pageByteCount
    // Without a count nothing tells what was cut off from what was added.
    guard
      isCountValid
        ? wholePageCount > 0 && pageCount / maximumCutFactor <= wholePageCount
        : byteCount.isMultiple(of: pageByteCount)
    else {
      throw KeyhaulError(
        .truncated,
        "the manifest database has \(HumanReadable.grouped(Int64(byteCount))) bytes, which is not \(pageCount) whole pages"
      )
    }
    let pagesEnd = (isCountValid ? pageCount : wholePageCount) * pageByteCount
    let isCut = pageCount > wholePageCount && isCountValid
    return Header(
      byteCount: pagesEnd, presentByteCount: isCut ? wholePageCount * pageByteCount : pagesEnd,
      trailingByteCount: isCut ? 0 : byteCount + rest - pagesEnd, pageByteCount: pageByteCount,
      isInWriteAheadMode: header[18] == 2 || header[19] == 2)
  }
}
