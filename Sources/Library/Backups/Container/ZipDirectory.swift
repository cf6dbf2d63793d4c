import Basics
import KeychainFormats

/// Checks the central directory of a zip for entries that libarchive changes or hides:
///
/// - names with a NUL, where libarchive ends them, or with a backslash, which it replaces;
/// - pipes and devices, which it reports as files;
/// - entries that are missing because the directory is incomplete.
///
/// Also finds names that are flagged as UTF-8, which libarchive would convert.
///
/// Also compares the central directory with the header before each file. libarchive and stream readers use the name in
/// the header. Python and Info-ZIP use the name in the directory. If they differ, readers see different backups.
///
/// Source: PKWARE APPNOTE 4.3.7 (local header), 4.3.12 (central directory), 4.3.14-4.3.16 (end records), 4.4.4 (bits 3
/// and 11), 4.5.3 (extra field of large zips), 4.6.9 (Unicode path).
struct ZipDirectory {
  private static let endRecordByteCount = 22
  private static let locatorByteCount = 20
  private static let largeEndRecordByteCount = 56
  private static let headerByteCount = 46
  private static let localHeaderByteCount = 30
  /// The end record may be followed by a comment whose length is a 16-bit number.
  private static let maximumTailByteCount = endRecordByteCount + 0xFFFF

  private let source: FileDescriptorSource
  private let entryCount: Int64
  private let byteCount: Int64
  private let start: Int64

  /// The findings in a complete directory.
  struct Findings {
    let entryCount: Int64
    /// The offsets of the local headers with UTF-8 names, in ascending order.
    let flaggedHeaders: [Int64]
  }

  /// Checks both headers of each entry in one pass over the directory. Uses eight bytes of memory for each flagged
  /// name.
  static func check(
    _ source: FileDescriptorSource, fileByteCount: Int64, entryLimit: Int
  ) throws(KeyhaulError) -> Findings {
    let directory = try ZipDirectory(source, fileByteCount: fileByteCount)
    // libarchive creates a record of each entry before it returns the first.
    guard directory.entryCount <= entryLimit else {
      throw KeyhaulError(.overLimit, "it has more than \(HumanReadable.grouped(Int64(entryLimit))) entries")
    }
    return Findings(entryCount: directory.entryCount, flaggedHeaders: try directory.checkEntries().sorted())
  }

  private init(_ source: FileDescriptorSource, fileByteCount: Int64) throws(KeyhaulError) {
    self.source = source
    let tailStart = max(0, fileByteCount - Int64(Self.maximumTailByteCount + Self.locatorByteCount))
    var cursor = try Cursor(source, at: tailStart)
    let tail = try cursor.read(Int(fileByteCount - tailStart))
    guard let end = Self.lastEndRecord(in: tail) else {
      throw KeyhaulError(.truncated, "the directory at the end of the zip is missing")
    }
    var count = Int64(tail.littleEndian(at: end + 10, bytes: 2))
    var size = Int64(tail.littleEndian(at: end + 12, bytes: 4))
    var offset = Int64(tail.littleEndian(at: end + 16, bytes: 4))
    var directoryLimit = tailStart + Int64(end)
    let isLarge = count == 0xFFFF || size == 0xFFFF_FFFF || offset == 0xFFFF_FFFF
    let hasLocator =
      end >= Self.locatorByteCount && tail[(end - Self.locatorByteCount)...].starts(with: [0x50, 0x4B, 6, 7])
    // A value with all bits set means that the number is in the record for large zips. libarchive reads that record
    // whenever a locator points to it.
    if isLarge || hasLocator {
      let (recordOffset, record) = try Self.largeEndRecord(source, tail: tail, end: end, fileByteCount: fileByteCount)
      let numbers = [24, 32, 40, 48].map { record.littleEndian(at: $0, bytes: 8) }
      guard numbers[0] == numbers[1], numbers.allSatisfy({ $0 <= UInt64(fileByteCount) }) else {
        throw Self.outsideFile
      }
      let large = (count: Int64(numbers[1]), size: Int64(numbers[2]), offset: Int64(numbers[3]))
      guard count == 0xFFFF || count == large.count, size == 0xFFFF_FFFF || size == large.size,
        offset == 0xFFFF_FFFF || offset == large.offset
      else { throw KeyhaulError(.damaged, "the zip's two end records do not agree") }
      (count, size, offset) = large
      directoryLimit = recordOffset
    }
    let (directoryEnd, overflow) = offset.addingReportingOverflow(size)
    guard !overflow, directoryEnd <= directoryLimit else { throw Self.outsideFile }
    // With bytes in between, libarchive would read a different directory.
    guard directoryEnd == directoryLimit else {
      throw KeyhaulError(.damaged, "the zip's directory does not end where its end record begins")
    }
    (entryCount, byteCount, start) = (count, size, offset)
  }

  private static var outsideFile: KeyhaulError {
    KeyhaulError(.damaged, "the zip's directory lies outside the file")
  }

  /// Checks the entries and returns the offsets of the flagged local headers.
  private func checkEntries() throws(KeyhaulError) -> [Int64] {
    var flagged: [Int64] = []
    var cursor = try Cursor(source, at: start)
    var remaining = byteCount
    // The headers of a valid zip do not overlap. One long header for many entries would take very long to check.
    var remainingLocalByteCount = source.fileByteCount ?? 0
    for number in 0..<entryCount {
      let cutShort = KeyhaulError(.damaged, "the zip's directory ends at entry \(number + 1) of \(entryCount)")
      guard remaining >= Self.headerByteCount else { throw cutShort }
      let header = try cursor.read(Self.headerByteCount)
      guard header.starts(with: [0x50, 0x4B, 1, 2]) else { throw cutShort }
      let lengths = [28, 30, 32].map { Int(header.littleEndian(at: $0, bytes: 2)) }
      remaining -= Int64(Self.headerByteCount + lengths.reduce(0, +))
      guard remaining >= 0 else { throw cutShort }
      let name = try cursor.read(lengths[0])
      let entry = Header(header, flagsAt: 8, name: name, extra: try cursor.read(lengths[1]))
      _ = try cursor.read(lengths[2])
      if let fault = Self.fault(
        name: name, system: header[5], mode: UInt32(header.littleEndian(at: 40, bytes: 2)))
      {
        let shown = quoted(EntryName(bytes: name))
        throw KeyhaulError(.hostile, "entry \(number + 1) is named \(shown); \(fault)")
      }
      let offset = entry.localOffset(header.littleEndian(at: 42, bytes: 4))
      let local = try localHeader(at: offset, number: number + 1, nameByteCount: name.count)
      remainingLocalByteCount -= Int64(Self.localHeaderByteCount + local.name.count + local.extraByteCount)
      guard remainingLocalByteCount >= 0 else {
        throw KeyhaulError(.hostile, "entries of the zip share a local header")
      }
      try Self.check(local, against: entry, number: number + 1)
      // libarchive uses the flag in the local header.
      if local.hasUTF8Flag, let offset { flagged.append(offset) }
    }
    guard remaining == 0 else {
      throw KeyhaulError(.damaged, "the zip's directory has more than the \(entryCount) entries that it claims")
    }
    return flagged
  }

  /// Reads an entry's local header, which precedes its content.
  private func localHeader(
    at offset: Int64?, number: Int64, nameByteCount: Int
  ) throws(KeyhaulError) -> Header {
    let missing = KeyhaulError(.damaged, "entry \(number) has no local header")
    guard let offset, offset < source.fileByteCount ?? 0 else { throw missing }
    // Most extra fields are shorter than this, so that one call reads the whole header.
    var bytes = try source.read(at: offset, upTo: Self.localHeaderByteCount + nameByteCount + 128)
    guard bytes.count >= Self.localHeaderByteCount, bytes.starts(with: [0x50, 0x4B, 3, 4]) else { throw missing }
    let nameEnd = Self.localHeaderByteCount + Int(bytes.littleEndian(at: 26, bytes: 2))
    let end = nameEnd + Int(bytes.littleEndian(at: 28, bytes: 2))
    if bytes.count < end { bytes = try source.read(at: offset, upTo: end) }
    guard bytes.count >= end else {
      throw KeyhaulError(.truncated, "the zip ends inside the header of entry \(number)")
    }
    return Header(
      bytes, flagsAt: 6, name: Array(bytes[Self.localHeaderByteCount..<nameEnd]), extra: Array(bytes[nameEnd..<end]))
  }

  private static func check(_ local: Header, against entry: Header, number: Int64) throws(KeyhaulError) {
    guard local.name == entry.name else {
      throw KeyhaulError(
        .hostile,
        "entry \(number) is named \(quoted(EntryName(bytes: entry.name))) in the zip's directory and "
          + "\(quoted(EntryName(bytes: local.name))) in its local header")
    }
    let unicodeNames = entry.unicodeNames + local.unicodeNames
    if let unicodeName = unicodeNames.first(where: { !isSame($0, asNamed: entry.name) || $0 != unicodeNames[0] }) {
      throw KeyhaulError(
        .hostile,
        "entry \(number) is named \(quoted(EntryName(bytes: entry.name))), and "
          + "\(quoted(EntryName(bytes: unicodeName))) in its Unicode path")
    }
    // A program that writes a stream knows the sizes and the checksum only after the content, so the local header has
    // zeros.
    let mayBeZero = local.hasDataDescriptor
    let fields: [(name: String, local: UInt64, directory: UInt64)] = [
      ("compressed sizes", local.compressedByteCount, entry.compressedByteCount),
      ("sizes", local.byteCount, entry.byteCount), ("checksums", local.checksum, entry.checksum),
    ]
    let differing =
      local.method == entry.method
      ? fields.first { $0.local != $0.directory && !(mayBeZero && $0.local == 0) }?.name : "compressions"
    if let differing {
      throw KeyhaulError(
        .damaged,
        "entry \(number), \(quoted(EntryName(bytes: entry.name))), has different \(differing) in the zip's directory "
          + "and in its local header")
    }
  }

  /// Whether a Unicode path names the same file as a header. Each part must have equal bytes in both, or be non-ASCII
  /// in both, because a header may use another character set.
  private static func isSame(_ unicode: [UInt8], asNamed name: [UInt8]) -> Bool {
    let separator = UInt8(ascii: "/")
    let components = unicode.split(separator: separator, omittingEmptySubsequences: false)
    let otherComponents = name.split(separator: separator, omittingEmptySubsequences: false)
    return components.elementsEqual(otherComponents) {
      $0 == $1 || ($0.contains { $0 >= 0x80 } && $1.contains { $0 >= 0x80 })
    }
  }

  /// Bit 11 of the flags, in their upper byte: the name is UTF-8.
  static let nameFlag: UInt8 = 0x08

  /// The fields that an entry's two headers have in common.
  private struct Header {
    let name: [UInt8]
    let extraByteCount: Int
    /// Whether the name is flagged as UTF-8.
    let hasUTF8Flag: Bool
    /// Whether the sizes and the checksum follow the content, as bit 3 of the flags states.
    let hasDataDescriptor: Bool
    let method: UInt64
    let checksum: UInt64
    let compressedByteCount: UInt64
    let byteCount: UInt64
    /// The names in the Unicode path fields, even if their checksum does not match the name.
    let unicodeNames: [[UInt8]]
    /// The remaining numbers of the large-zip field, after the two sizes.
    private let largeNumbers: [UInt64]

    /// Parses a header.
    ///
    /// - Parameter flags: The position of the flags in the header.
    init(_ header: [UInt8], flagsAt flags: Int, name: [UInt8], extra: [UInt8]) {
      self.name = name
      extraByteCount = extra.count
      hasUTF8Flag = header[flags + 1] & ZipDirectory.nameFlag != 0
      hasDataDescriptor = header[flags] & 0x08 != 0
      method = header.littleEndian(at: flags + 2, bytes: 2)
      checksum = header.littleEndian(at: flags + 8, bytes: 4)
      var (large, unicodeNames): ([UInt64], [[UInt8]]) = ([], [])
      var position = 0
      while position + 4 <= extra.count {
        let kind = extra.littleEndian(at: position, bytes: 2)
        let start = position + 4
        position = start + Int(extra.littleEndian(at: position + 2, bytes: 2))
        let field = Array(extra[start..<min(position, extra.count)])
        if kind == 1, large.isEmpty {
          large = stride(from: 0, through: field.count - 8, by: 8).map { field.littleEndian(at: $0, bytes: 8) }
        } else if kind == 0x7075, field.count >= 5 {
          unicodeNames.append(Array(field[5...]))
        }
      }
      self.unicodeNames = unicodeNames
      // The extra field has only the numbers that do not fit in the header.
      var numbers = large[...]
      byteCount = Self.number(header.littleEndian(at: flags + 16, bytes: 4), in: &numbers)
      compressedByteCount = Self.number(header.littleEndian(at: flags + 12, bytes: 4), in: &numbers)
      largeNumbers = Array(numbers)
    }

    /// Returns the offset of the entry's local header, or `nil` if a 64-bit offset is required but missing.
    func localOffset(_ stored: UInt64) -> Int64? {
      if stored != 0xFFFF_FFFF { return Int64(stored) }
      return largeNumbers.first.flatMap { Int64(exactly: $0) }
    }

    private static func number(_ stored: UInt64, in large: inout ArraySlice<UInt64>) -> UInt64 {
      stored == 0xFFFF_FFFF ? large.popFirst() ?? stored : stored
    }
  }

  /// Returns the problem of an entry, if there is one.
  ///
  /// - Parameter system: The system of the entry's attributes. For Unix (3) and macOS (19), the upper half is
  ///   `st_mode`.
  private static func fault(name: [UInt8], system: UInt8, mode: UInt32) -> String? {
    if name.contains(0) { return "its name has a NUL" }
    if name.contains(UInt8(ascii: "\\")) { return "its name has a backslash" }
    guard system == 3 || system == 19, mode & 0o170000 != 0 else { return nil }
    if case .other(let description) = ContainerScanner.Kind(mode: mode) { return "it is \(description)" }
    return nil
  }

  /// Returns the start of the last end record, which libarchive reads, or `nil` if its comment does not end at the end
  /// of the file.
  private static func lastEndRecord(in tail: [UInt8]) -> Int? {
    var offset = tail.count - endRecordByteCount
    while offset >= 0 {
      if tail[offset] == 0x50, tail[offset...].starts(with: [0x50, 0x4B, 5, 6]) {
        let isAtEnd = tail.littleEndian(at: offset + 20, bytes: 2) == UInt64(tail.count - offset - endRecordByteCount)
        return isAtEnd ? offset : nil
      }
      offset -= 1
    }
    return nil
  }

  /// Returns the end record with 64-bit numbers, and its offset. A locator directly before the ordinary record points
  /// to it.
  private static func largeEndRecord(
    _ source: FileDescriptorSource, tail: [UInt8], end: Int, fileByteCount: Int64
  ) throws(KeyhaulError) -> (offset: Int64, record: [UInt8]) {
    let locator = end - locatorByteCount
    guard locator >= 0, tail[locator...].starts(with: [0x50, 0x4B, 6, 7]),
      let offset = Int64(exactly: tail.littleEndian(at: locator + 8, bytes: 8)),
      offset <= fileByteCount - Int64(largeEndRecordByteCount)
    else { throw KeyhaulError(.damaged, "the zip's end does not say where its directory is") }
    var cursor = try Cursor(source, at: offset)
    let record = try cursor.read(largeEndRecordByteCount)
    guard record.starts(with: [0x50, 0x4B, 6, 6]) else { throw outsideFile }
    return (offset, record)
  }
}

/// Reads bytes in order, starting at a position of a file.
private struct Cursor {
  private let source: FileDescriptorSource
  private var pending: ArraySlice<UInt8> = []

  init(_ source: FileDescriptorSource, at offset: Int64) throws(KeyhaulError) {
    guard try source.seek(offset, .start) != nil else {
      throw KeyhaulError(.damaged, "the zip's directory lies outside the file")
    }
    self.source = source
  }

  mutating func read(_ count: Int) throws(KeyhaulError) -> [UInt8] {
    while pending.count < count {
      let chunk = try source.next()
      if chunk.isEmpty { throw KeyhaulError(.truncated, "the zip ends inside its directory") }
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

/// A zip source that removes the UTF-8 flags of names, so that libarchive returns the names unchanged.
///
/// libarchive would return a flagged name in composed form, or nothing if it cannot convert it. In both cases, the name
/// in a copy of the zip would differ.
final class ZipNameRewriter: ByteSource {
  private let source: FileDescriptorSource
  /// The offsets of the bytes with the flag, in ascending order.
  private let flagOffsets: [Int64]
  private let copy: UnsafeMutableRawBufferPointer

  /// Creates a source.
  ///
  /// - Parameter flagged: The offsets of the local headers with flagged names.
  init(_ source: FileDescriptorSource, flaggedHeaders flagged: [Int64]) {
    self.source = source
    // The flags follow the signature and the version. The UTF-8 flag is in their second byte.
    flagOffsets = flagged.map { $0.addingReportingOverflow(7).partialValue }
    copy = .allocate(byteCount: FileDescriptorSource.chunkByteCount, alignment: 16)
  }

  /// Creates a source after it has found the flags in the zip.
  convenience init(_ source: FileDescriptorSource, limits: BackupLimits) throws(KeyhaulError) {
    guard let fileByteCount = source.fileByteCount else {
      throw KeyhaulError(
        .notStreamable,
        "a zip file has its directory at the end and cannot be read from a stream")
    }
    let directory = try ZipDirectory.check(source, fileByteCount: fileByteCount, entryLimit: limits.entryCount)
    _ = try source.seek(0, .start)
    self.init(source, flaggedHeaders: directory.flaggedHeaders)
  }

  deinit { copy.deallocate() }

  var hasEnded: Bool { source.hasEnded }

  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    let bytes = try source.next()
    let start = source.position - Int64(bytes.count)
    var index = firstFlag(from: start)
    guard index < flagOffsets.count, flagOffsets[index] < source.position else { return bytes }
    copy.copyMemory(from: bytes)
    while index < flagOffsets.count, flagOffsets[index] < source.position {
      copy[Int(flagOffsets[index] - start)] &= ~ZipDirectory.nameFlag
      index += 1
    }
    return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
  }

  func skip(_ count: Int64) throws(KeyhaulError) -> Int64 { try source.skip(count) }

  func seek(_ offset: Int64, _ origin: SeekOrigin) throws(KeyhaulError) -> Int64? {
    try source.seek(offset, origin)
  }

  /// Returns the index of the first offset that is not before the given one.
  private func firstFlag(from offset: Int64) -> Int {
    var (low, high) = (0, flagOffsets.count)
    while low < high {
      let middle = (low + high) / 2
      if flagOffsets[middle] < offset { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
