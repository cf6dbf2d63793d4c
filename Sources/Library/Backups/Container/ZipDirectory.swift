import Basics
import KeychainFormats

/// Reads a zip's own directory for what libarchive hides: names with a NUL, which it cuts there, or a backslash, which it
/// replaces; pipes and devices, which it shows as files; and a directory that isn't whole. And for which names are marked
/// as UTF-8, which it would convert.
///
/// Source: PKWARE APPNOTE 4.3.12 (central directory), 4.3.14-4.3.16 (its end records), 4.4.4 (bit 11), 4.5.3 (extra
/// field of large zips).
struct ZipDirectory {
  private static let endRecordByteCount = 22
  private static let locatorByteCount = 20
  private static let largeEndRecordByteCount = 56
  private static let headerByteCount = 46
  /// The end record may be followed by a comment whose length is a 16-bit number.
  private static let maximumTailByteCount = endRecordByteCount + 0xFFFF

  private let feed: DescriptorFeed
  private let entryCount: Int64
  private let byteCount: Int64
  private let start: Int64

  /// What was found in one that is whole.
  struct Findings {
    let entryCount: Int64
    /// Where the local headers stand whose names are marked as UTF-8, in order.
    let markedHeaders: [Int64]
  }

  /// Checks every entry's header, in one pass; keeps eight bytes of an entry whose name is marked.
  static func check(
    _ feed: DescriptorFeed, fileByteCount: Int64, entryLimit: Int
  ) throws(BackupArchiveError) -> Findings {
    let directory = try ZipDirectory(feed, fileByteCount: fileByteCount)
    // libarchive keeps a record of every entry before it shows the first.
    guard directory.entryCount <= entryLimit else {
      throw BackupArchiveError(.overLimit, "it has more than \(Amounts.grouped(Int64(entryLimit))) entries")
    }
    return Findings(entryCount: directory.entryCount, markedHeaders: try directory.checkEntries().sorted())
  }

  private init(_ feed: DescriptorFeed, fileByteCount: Int64) throws(BackupArchiveError) {
    self.feed = feed
    let tailStart = max(0, fileByteCount - Int64(Self.maximumTailByteCount + Self.locatorByteCount))
    var cursor = try Cursor(feed, at: tailStart)
    let tail = try cursor.take(Int(fileByteCount - tailStart))
    guard let end = Self.lastEndRecord(in: tail) else {
      throw BackupArchiveError(.truncated, "the directory at the end of the zip is missing")
    }
    var count = Int64(tail.littleEndian(at: end + 10, bytes: 2))
    var size = Int64(tail.littleEndian(at: end + 12, bytes: 4))
    var offset = Int64(tail.littleEndian(at: end + 16, bytes: 4))
    // A value with all bits set says that the record for large zips has the number.
    if count == 0xFFFF || size == 0xFFFF_FFFF || offset == 0xFFFF_FFFF {
      let record = try Self.largeEndRecord(feed, tail: tail, end: end, fileByteCount: fileByteCount)
      let numbers = [24, 32, 40, 48].map { record.littleEndian(at: $0, bytes: 8) }
      guard numbers[0] == numbers[1], numbers.allSatisfy({ $0 <= UInt64(fileByteCount) }) else { throw Self.outside }
      (count, size, offset) = (Int64(numbers[1]), Int64(numbers[2]), Int64(numbers[3]))
    }
    let (directoryEnd, overflow) = offset.addingReportingOverflow(size)
    guard !overflow, directoryEnd <= tailStart + Int64(end) else { throw Self.outside }
    (entryCount, byteCount, start) = (count, size, offset)
  }

  private static var outside: BackupArchiveError {
    BackupArchiveError(.damaged, "the zip's directory lies outside the file")
  }

  /// - Returns: Where the marked local headers stand.
  private func checkEntries() throws(BackupArchiveError) -> [Int64] {
    var marked: [Int64] = []
    var cursor = try Cursor(feed, at: start)
    var remaining = byteCount
    for number in 0..<entryCount {
      let cut = BackupArchiveError(.damaged, "the zip's directory ends at entry \(number + 1) of \(entryCount)")
      guard remaining >= Self.headerByteCount else { throw cut }
      let header = try cursor.take(Self.headerByteCount)
      guard header.starts(with: [0x50, 0x4B, 1, 2]) else { throw cut }
      let lengths = [28, 30, 32].map { Int(header.littleEndian(at: $0, bytes: 2)) }
      remaining -= Int64(Self.headerByteCount + lengths.reduce(0, +))
      guard remaining >= 0 else { throw cut }
      let name = try cursor.take(lengths[0])
      let extra = try cursor.take(lengths[1])
      _ = try cursor.take(lengths[2])
      if header[9] & Self.nameMark != 0, let offset = Self.localHeader(of: header, extra: extra) {
        marked.append(offset)
      }
      if let fault = Self.fault(
        name: name, system: header[5], mode: UInt32(header.littleEndian(at: 40, bytes: 2)))
      {
        let shown = quoted(EntryName(bytes: name))
        throw BackupArchiveError(.hostile, "entry \(number + 1) is named \(shown); \(fault)")
      }
    }
    return marked
  }

  /// Bit 11 of the flags, in their upper byte: the name is UTF-8.
  static let nameMark: UInt8 = 0x08

  /// The offset of an entry's local header; `nil` if the entry needs a 64-bit offset but does not contain one.
  private static func localHeader(of header: [UInt8], extra: [UInt8]) -> Int64? {
    let offset = header.littleEndian(at: 42, bytes: 4)
    guard offset == 0xFFFF_FFFF else { return Int64(offset) }
    // Only those numbers stand in the extra field that the header has no room for, the two sizes first.
    let before = [24, 20].count { header.littleEndian(at: $0, bytes: 4) == 0xFFFF_FFFF }
    var position = 0
    while position + 4 <= extra.count {
      let (kind, length) = (extra.littleEndian(at: position, bytes: 2), extra.littleEndian(at: position + 2, bytes: 2))
      position += 4
      if kind == 1, length >= UInt64(8 * before + 8), position + 8 * before + 8 <= extra.count {
        return Int64(exactly: extra.littleEndian(at: position + 8 * before, bytes: 8))
      }
      position += Int(length)
    }
    return nil
  }

  /// - Parameter system: Which system's attributes the entry has; 3 is Unix and 19 macOS, whose upper half is `st_mode`.
  private static func fault(name: [UInt8], system: UInt8, mode: UInt32) -> String? {
    if name.contains(0) { return "its name has a NUL" }
    if name.contains(UInt8(ascii: "\\")) { return "its name has a backslash" }
    guard system == 3 || system == 19, mode & 0o170000 != 0 else { return nil }
    if case .odd(let what) = EntryLedger.Kind(mode: mode) { return "it is \(what)" }
    return nil
  }

  /// Where the last end record begins whose comment fills the rest of the file exactly.
  private static func lastEndRecord(in tail: [UInt8]) -> Int? {
    var offset = tail.count - endRecordByteCount
    while offset >= 0 {
      if tail[offset] == 0x50, tail[offset...].starts(with: [0x50, 0x4B, 5, 6]),
        tail.littleEndian(at: offset + 20, bytes: 2) == UInt64(tail.count - offset - endRecordByteCount)
      {
        return offset
      }
      offset -= 1
    }
    return nil
  }

  /// The end record with 64-bit numbers, which a locator right before the ordinary one points to.
  private static func largeEndRecord(
    _ feed: DescriptorFeed, tail: [UInt8], end: Int, fileByteCount: Int64
  ) throws(BackupArchiveError) -> [UInt8] {
    let locator = end - locatorByteCount
    guard locator >= 0, tail[locator...].starts(with: [0x50, 0x4B, 6, 7]),
      let offset = Int64(exactly: tail.littleEndian(at: locator + 8, bytes: 8)),
      offset <= fileByteCount - Int64(largeEndRecordByteCount)
    else { throw BackupArchiveError(.damaged, "the zip's end does not say where its directory is") }
    var cursor = try Cursor(feed, at: offset)
    let record = try cursor.take(largeEndRecordByteCount)
    guard record.starts(with: [0x50, 0x4B, 6, 6]) else { throw outside }
    return record
  }
}

/// Takes bytes in order from a place of a file on.
private struct Cursor {
  private let feed: DescriptorFeed
  private var pending: ArraySlice<UInt8> = []

  init(_ feed: DescriptorFeed, at offset: Int64) throws(BackupArchiveError) {
    guard try feed.seek(offset, .start) != nil else {
      throw BackupArchiveError(.damaged, "the zip's directory lies outside the file")
    }
    self.feed = feed
  }

  mutating func take(_ count: Int) throws(BackupArchiveError) -> [UInt8] {
    while pending.count < count {
      let chunk = try feed.next()
      if chunk.isEmpty { throw BackupArchiveError(.truncated, "the zip ends inside its directory") }
      pending = ArraySlice(Array(pending) + Array(chunk))
    }
    defer { pending = pending.dropFirst(count) }
    return Array(pending.prefix(count))
  }
}

extension [UInt8] {
  /// A little-endian number at an offset that the caller has checked.
  fileprivate func littleEndian(at offset: Int, bytes: Int) -> UInt64 {
    (0..<bytes).reversed().reduce(0) { $0 << 8 | UInt64(self[offset + $1]) }
  }
}

/// A zip whose names libarchive takes as they are: it does not see the mark that they are UTF-8.
///
/// Of a name with that mark it would give the composed form, or nothing where it cannot convert it. In both cases a copy
/// of the zip would have another name than the zip has.
final class ZipNameFeed: ByteFeed {
  private let feed: DescriptorFeed
  /// Where the bytes with the mark stand, in order.
  private let places: [Int64]
  private let copy: UnsafeMutableRawBufferPointer

  /// - Parameter marked: Where the local headers stand whose names have the mark.
  init(_ feed: DescriptorFeed, markedHeaders marked: [Int64]) {
    self.feed = feed
    // The flags are two bytes after the signature and the version; the mark is in the second.
    places = marked.map { $0.addingReportingOverflow(7).partialValue }
    copy = .allocate(byteCount: DescriptorFeed.chunkByteCount, alignment: 16)
  }

  /// Looks for the marks itself, and leaves the feed at its start.
  convenience init(_ feed: DescriptorFeed, limits: ArchiveLimits) throws(BackupArchiveError) {
    guard let fileByteCount = feed.fileByteCount else {
      throw BackupArchiveError(
        .notStreamable,
        "a zip file has its directory at the end and cannot be read from a stream")
    }
    let found = try ZipDirectory.check(feed, fileByteCount: fileByteCount, entryLimit: limits.entryCount)
    _ = try feed.seek(0, .start)
    self.init(feed, markedHeaders: found.markedHeaders)
  }

  deinit { copy.deallocate() }

  var hasEnded: Bool { feed.hasEnded }

  func next() throws(BackupArchiveError) -> UnsafeRawBufferPointer {
    let bytes = try feed.next()
    let start = feed.position - Int64(bytes.count)
    var index = firstPlace(from: start)
    guard index < places.count, places[index] < feed.position else { return bytes }
    copy.copyMemory(from: bytes)
    while index < places.count, places[index] < feed.position {
      copy[Int(places[index] - start)] &= ~ZipDirectory.nameMark
      index += 1
    }
    return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
  }

  func skip(_ count: Int64) throws(BackupArchiveError) -> Int64 { try feed.skip(count) }

  func seek(_ offset: Int64, _ origin: SeekOrigin) throws(BackupArchiveError) -> Int64? {
    try feed.seek(offset, origin)
  }

  /// The first of the places that is not before an offset.
  private func firstPlace(from offset: Int64) -> Int {
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle] < offset { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
