import Basics
import KeychainFormats

/// Checks the central directory of a zip for entries that libarchive changes or hides:
///
/// - names with a NUL, where libarchive ends them, or with a backslash, which it replaces;
/// - pipes and devices, which it reports as files;
/// - entries that are missing because the directory is incomplete.
///
/// The check also finds names that are flagged as UTF-8, which libarchive would convert.
///
/// The check compares the central directory with the local header before each file. libarchive and stream readers use the
/// name in the local header. Python and Info-ZIP use the name in the directory. If the names differ, readers see
/// different backups.
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
  private static let endRecordSignature: [UInt8] = [0x50, 0x4B, 5, 6]
  private static let locatorSignature: [UInt8] = [0x50, 0x4B, 6, 7]
  private static let largeEndRecordSignature: [UInt8] = [0x50, 0x4B, 6, 6]
  private static let headerSignature: [UInt8] = [0x50, 0x4B, 1, 2]
  private static let localHeaderSignature: [UInt8] = [0x50, 0x4B, 3, 4]
  /// The values with all bits set. A 16-bit or 32-bit field with such a value means that the number is stored elsewhere,
  /// with 64 bits.
  private static let all16Bits: Int64 = 0xFFFF
  private static let all32Bits: Int64 = 0xFFFF_FFFF

  private let source: FileDescriptorSource
  private let entryCount: Int64
  private let byteCount: Int64
  private let start: Int64

  /// The result of checking a complete directory.
  struct CheckResult {
    let entryCount: Int64
    /// The offsets of the local headers with UTF-8 names, in ascending order.
    let flaggedHeaders: [Int64]
  }

  /// Checks both headers of each entry in one pass over the directory. Uses eight bytes of memory for each flagged
  /// name.
  static func check(
    _ source: FileDescriptorSource, fileByteCount: Int64, entryLimit: Int
  ) throws(KeyhaulError) -> CheckResult {
    let directory = try ZipDirectory(source, fileByteCount: fileByteCount)
    // libarchive creates a record of each entry before it returns the first.
    guard directory.entryCount <= entryLimit else {
      throw KeyhaulError(.overLimit, "it has more than \(HumanReadable.grouped(Int64(entryLimit))) entries")
    }
    return CheckResult(entryCount: directory.entryCount, flaggedHeaders: try directory.checkEntries().sorted())
  }

  private init(_ source: FileDescriptorSource, fileByteCount: Int64) throws(KeyhaulError) {
    self.source = source
    let tailStart = max(0, fileByteCount - Int64(Self.maximumTailByteCount + Self.locatorByteCount))
    var cursor = try Cursor(source, at: tailStart)
    let tail = try cursor.read(Int(fileByteCount - tailStart))
    guard let end = Self.lastEndRecord(in: tail) else {
      throw KeyhaulError(.truncated, "the directory at the end of the zip is missing")
    }
    let (extent, extentLimit) = try Self.extent(
      source, tail: tail, at: tailStart, end: end, fileByteCount: fileByteCount)
    let (directoryEnd, overflow) = extent.offset.addingReportingOverflow(extent.size)
    guard !overflow, directoryEnd <= extentLimit else { throw Self.outsideFileError }
    // With bytes in between, libarchive would read a different directory.
    guard directoryEnd == extentLimit else {
      throw KeyhaulError(.damaged, "the zip's directory does not end where its end record begins")
    }
    (entryCount, byteCount, start) = (extent.count, extent.size, extent.offset)
  }

  /// The number of entries, and the position of the directory.
  private typealias Extent = (count: Int64, size: Int64, offset: Int64)

  /// Reads the extent of the directory from the end record:
  ///
  ///     offset  bytes
  ///          0      4  "PK" 5 6
  ///         10      2  number of entries
  ///         12      4  size of the directory
  ///         16      4  offset of the directory
  ///         20      2  size of the comment that follows
  ///
  /// If a number has all bits set, it is in the record for large zips, to which a locator points. A zip with exactly
  /// 65,535 entries may have no locator, and the number is then the count. libarchive reads the record for large zips
  /// whenever there is a locator.
  ///
  /// - Parameters:
  ///   - tail: The last bytes of the file.
  ///   - tailStart: The offset of these bytes in the file.
  ///   - end: The position of the end record in these bytes.
  /// - Returns: The extent, and the offset of the record at which the directory must end.
  private static func extent(
    _ source: FileDescriptorSource, tail: [UInt8], at tailStart: Int64, end: Int, fileByteCount: Int64
  ) throws(KeyhaulError) -> (Extent, limit: Int64) {
    let count = Int64(tail.littleEndian(at: end + 10, bytes: 2))
    let size = Int64(tail.littleEndian(at: end + 12, bytes: 4))
    let offset = Int64(tail.littleEndian(at: end + 16, bytes: 4))
    let isLarge = size == all32Bits || offset == all32Bits
    let hasLocator = end >= locatorByteCount && tail[(end - locatorByteCount)...].starts(with: locatorSignature)
    guard isLarge || hasLocator else { return ((count, size, offset), tailStart + Int64(end)) }
    let (recordOffset, large) = try largeExtent(
      source, tail: tail, at: tailStart, end: end, fileByteCount: fileByteCount)
    guard count == all16Bits || count == large.count, size == all32Bits || size == large.size,
      offset == all32Bits || offset == large.offset
    else { throw KeyhaulError(.damaged, "the zip's two end records do not agree") }
    return (large, recordOffset)
  }

  private static var outsideFileError: KeyhaulError {
    KeyhaulError(.damaged, "the zip's directory lies outside the file")
  }

  /// Checks the entries and returns the offsets of the flagged local headers.
  private func checkEntries() throws(KeyhaulError) -> [Int64] {
    var flaggedOffsets: [Int64] = []
    var cursor = try Cursor(source, at: start)
    var remainingByteCount = byteCount
    // The local headers of a valid zip do not overlap. If many entries shared one long header, checking it again for each
    // entry would take very long.
    var remainingLocalByteCount = source.fileByteCount ?? 0
    for index in 0..<entryCount {
      let number = index + 1
      let (entry, localOffset) = try readEntry(number, from: &cursor, &remainingByteCount)
      let local = try localHeader(at: localOffset, number: number, nameByteCount: entry.name.count)
      remainingLocalByteCount -= Int64(Self.localHeaderByteCount + local.name.count + local.extraByteCount)
      guard remainingLocalByteCount >= 0 else {
        throw KeyhaulError(.hostile, "entries of the zip share a local header")
      }
      try Self.check(local, against: entry, number: number)
      // libarchive uses the flag in the local header.
      if local.hasUTF8Flag, let localOffset { flaggedOffsets.append(localOffset) }
    }
    guard remainingByteCount == 0 else {
      throw KeyhaulError(.damaged, "the zip's directory has more than the \(entryCount) entries that it claims")
    }
    return flaggedOffsets
  }

  /// Reads an entry of the directory, and checks its name and type:
  ///
  ///     offset  bytes
  ///          0      4  "PK" 1 2
  ///          5      1  system of the attributes
  ///          8     20  the fields that both headers have (`Header`)
  ///         28      2  size of the name
  ///         30      2  size of the extra field
  ///         32      2  size of the comment
  ///         40      2  upper half of the attributes
  ///         42      4  offset of the local header
  ///         46         name, extra field, comment
  ///
  /// - Parameter remainingByteCount: The number of bytes up to the end of the directory.
  /// - Returns: The header, and the offset of the local header, or `nil` if it is missing.
  private func readEntry(
    _ number: Int64, from cursor: inout Cursor, _ remainingByteCount: inout Int64
  ) throws(KeyhaulError) -> (Header, localOffset: Int64?) {
    let cutShort = KeyhaulError(.damaged, "the zip's directory ends at entry \(number) of \(entryCount)")
    guard remainingByteCount >= Self.headerByteCount else { throw cutShort }
    let bytes = try cursor.read(Self.headerByteCount)
    guard bytes.starts(with: Self.headerSignature) else { throw cutShort }
    let nameByteCount = Int(bytes.littleEndian(at: 28, bytes: 2))
    let extraByteCount = Int(bytes.littleEndian(at: 30, bytes: 2))
    let commentByteCount = Int(bytes.littleEndian(at: 32, bytes: 2))
    remainingByteCount -= Int64(Self.headerByteCount + nameByteCount + extraByteCount + commentByteCount)
    guard remainingByteCount >= 0 else { throw cutShort }
    let name = try cursor.read(nameByteCount)
    let header = Header(bytes, flagsAt: 8, name: name, extra: try cursor.read(extraByteCount))
    _ = try cursor.read(commentByteCount)
    if let fault = Self.fault(name: name, system: bytes[5], mode: UInt32(bytes.littleEndian(at: 40, bytes: 2))) {
      throw KeyhaulError(.hostile, "entry \(number) is named \(quoted(EntryName(bytes: name))); \(fault)")
    }
    return (header, header.localOffset(bytes.littleEndian(at: 42, bytes: 4)))
  }

  /// A size in bytes that few extra fields exceed. Reading as many bytes after the name usually gets the whole local
  /// header in one call.
  private static let usualExtraByteCount = 128

  /// Reads an entry's local header, which precedes its content:
  ///
  ///     offset  bytes
  ///          0      4  "PK" 3 4
  ///          6     20  the fields that both headers have (`Header`)
  ///         26      2  size of the name
  ///         28      2  size of the extra field
  ///         30         name, extra field
  private func localHeader(
    at offset: Int64?, number: Int64, nameByteCount: Int
  ) throws(KeyhaulError) -> Header {
    let missing = KeyhaulError(.damaged, "entry \(number) has no local header")
    guard let offset, offset < source.fileByteCount ?? 0 else { throw missing }
    var bytes = try source.read(
      at: offset, upTo: Self.localHeaderByteCount + nameByteCount + Self.usualExtraByteCount)
    guard bytes.count >= Self.localHeaderByteCount, bytes.starts(with: Self.localHeaderSignature) else { throw missing }
    let nameEnd = Self.localHeaderByteCount + Int(bytes.littleEndian(at: 26, bytes: 2))
    let end = nameEnd + Int(bytes.littleEndian(at: 28, bytes: 2))
    if bytes.count < end { bytes = try source.read(at: offset, upTo: end) }
    guard bytes.count >= end else {
      throw KeyhaulError(.truncated, "the zip ends inside the header of entry \(number)")
    }
    return Header(
      bytes, flagsAt: 6, name: Array(bytes[Self.localHeaderByteCount..<nameEnd]), extra: Array(bytes[nameEnd..<end]))
  }

  /// Compares the two headers of an entry.
  private static func check(_ local: Header, against entry: Header, number: Int64) throws(KeyhaulError) {
    // Only errors need the name: quoting is slow for long names that are not UTF-8.
    var name: String { quoted(EntryName(bytes: entry.name)) }
    guard local.name == entry.name else {
      throw KeyhaulError(
        .hostile,
        "entry \(number) is named \(name) in the zip's directory and \(quoted(EntryName(bytes: local.name))) in its "
          + "local header")
    }
    let unicodeNames = entry.unicodeNames + local.unicodeNames
    if let unicodeName = unicodeNames.first(where: { !isSame($0, asNamed: entry.name) || $0 != unicodeNames[0] }) {
      throw KeyhaulError(
        .hostile, "entry \(number) is named \(name), and \(quoted(EntryName(bytes: unicodeName))) in its Unicode path")
    }
    if let field = differingField(local, entry) {
      throw KeyhaulError(
        .damaged, "entry \(number), \(name), has different \(field) in the zip's directory and in its local header")
    }
  }

  /// Returns the name of a field that differs between the two headers of an entry, or `nil` if all are equal.
  private static func differingField(_ local: Header, _ entry: Header) -> String? {
    guard local.method == entry.method else { return "compressions" }
    let fields: [(name: String, local: UInt64, directory: UInt64)] = [
      ("compressed sizes", local.compressedByteCount, entry.compressedByteCount),
      ("sizes", local.byteCount, entry.byteCount), ("checksums", local.checksum, entry.checksum),
    ]
    // A program that writes a stream knows the sizes and the checksum only after the content, so the local header has
    // zeros.
    let mayBeZero = local.hasDataDescriptor
    return fields.first { $0.local != $0.directory && !(mayBeZero && $0.local == 0) }?.name
  }

  /// Returns whether a Unicode path may name the same file as a header. Each component must have equal bytes in both
  /// names, or be non-ASCII in both names, because a header may use a different character set.
  private static func isSame(_ unicode: [UInt8], asNamed name: [UInt8]) -> Bool {
    let separator = UInt8(ascii: "/")
    let unicodeComponents = unicode.split(separator: separator, omittingEmptySubsequences: false)
    let nameComponents = name.split(separator: separator, omittingEmptySubsequences: false)
    return unicodeComponents.elementsEqual(nameComponents) {
      $0 == $1 || ($0.contains { $0 >= 0x80 } && $1.contains { $0 >= 0x80 })
    }
  }

  /// Bit 11 of the flags, in their upper byte: the name is UTF-8.
  static let nameFlag: UInt8 = 0x08

  /// The fields that an entry's two headers have in common, by their offset from the flags:
  ///
  ///     offset  bytes
  ///          0      2  flags
  ///          2      2  compression method
  ///          8      4  CRC-32 checksum
  ///         12      4  compressed size
  ///         16      4  size
  ///
  /// The extra field consists of fields with a 16-bit kind, a 16-bit size, and their content.
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

    /// The kind of the extra field with 64-bit numbers.
    private static let largeZipField: UInt64 = 1
    /// The kind of the extra field with a Unicode path, after a version byte and a checksum of four bytes.
    private static let unicodePathField: UInt64 = 0x7075
    private static let unicodePathOffset = 5

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
        if kind == Self.largeZipField, large.isEmpty {
          large = stride(from: 0, through: field.count - 8, by: 8).map { field.littleEndian(at: $0, bytes: 8) }
        } else if kind == Self.unicodePathField, field.count >= Self.unicodePathOffset {
          unicodeNames.append(Array(field[Self.unicodePathOffset...]))
        }
      }
      self.unicodeNames = unicodeNames
      // The large-zip field has only the numbers that do not fit in the header, in this order.
      var numbers = large[...]
      byteCount = Self.number(header.littleEndian(at: flags + 16, bytes: 4), in: &numbers)
      compressedByteCount = Self.number(header.littleEndian(at: flags + 12, bytes: 4), in: &numbers)
      largeNumbers = Array(numbers)
    }

    /// Returns the offset of the entry's local header, or `nil` if a 64-bit offset is required but missing.
    ///
    /// - Parameter stored: The 32-bit offset in the directory.
    func localOffset(_ stored: UInt64) -> Int64? {
      if stored != UInt64(all32Bits) { return Int64(stored) }
      return largeNumbers.first.flatMap { Int64(exactly: $0) }
    }

    /// Returns a 32-bit number of the header, or the next 64-bit number if all of its bits are set.
    private static func number(_ stored: UInt64, in largeNumbers: inout ArraySlice<UInt64>) -> UInt64 {
      stored == UInt64(all32Bits) ? largeNumbers.popFirst() ?? stored : stored
    }
  }

  private static let unix: UInt8 = 3
  private static let macOS: UInt8 = 19

  /// Returns why an entry is rejected, as a clause; `nil` if it is valid.
  ///
  /// - Parameters:
  ///   - system: The system of the entry's attributes.
  ///   - mode: The upper half of the attributes, which is `st_mode` for Unix and macOS.
  private static func fault(name: [UInt8], system: UInt8, mode: UInt32) -> String? {
    if name.contains(0) { return "its name has a NUL" }
    if name.contains(UInt8(ascii: "\\")) { return "its name has a backslash" }
    let hasType = mode & 0o170000 != 0
    guard system == unix || system == macOS, hasType else { return nil }
    if case .other(let description) = ContainerScanner.Kind(mode: mode) { return "it is \(description)" }
    return nil
  }

  /// Returns the start of the last end record, which libarchive reads, or `nil` if its comment does not end at the end
  /// of the file.
  private static func lastEndRecord(in tail: [UInt8]) -> Int? {
    var offset = tail.count - endRecordByteCount
    while offset >= 0 {
      if tail[offset] == endRecordSignature[0], tail[offset...].starts(with: endRecordSignature) {
        let commentByteCount = tail.littleEndian(at: offset + 20, bytes: 2)
        return commentByteCount == UInt64(tail.count - offset - endRecordByteCount) ? offset : nil
      }
      offset -= 1
    }
    return nil
  }

  /// Reads the extent of the directory from the end record with 64-bit numbers. A locator directly before the ordinary
  /// record has its offset in the bytes 8 to 15.
  ///
  ///     offset  bytes
  ///          0      4  "PK" 6 6
  ///          4      8  number of bytes that follow
  ///         24      8  number of entries on this disk
  ///         32      8  number of entries
  ///         40      8  size of the directory
  ///         48      8  offset of the directory
  ///
  /// - Returns: The extent, and the offset of the record.
  private static func largeExtent(
    _ source: FileDescriptorSource, tail: [UInt8], at tailStart: Int64, end: Int, fileByteCount: Int64
  ) throws(KeyhaulError) -> (recordOffset: Int64, Extent) {
    let locator = end - locatorByteCount
    guard locator >= 0, tail[locator...].starts(with: locatorSignature),
      let recordOffset = Int64(exactly: tail.littleEndian(at: locator + 8, bytes: 8)),
      recordOffset <= fileByteCount - Int64(largeEndRecordByteCount)
    else { throw KeyhaulError(.damaged, "the zip's end does not say where its directory is") }
    var cursor = try Cursor(source, at: recordOffset)
    let record = try cursor.read(largeEndRecordByteCount)
    guard record.starts(with: largeEndRecordSignature) else { throw outsideFileError }
    // Some readers use the record directly before the locator, others the one that the locator names.
    let byteCountAfterField = record.littleEndian(at: 4, bytes: 8)
    guard byteCountAfterField == UInt64(clamping: tailStart + Int64(locator) - recordOffset - 12) else {
      throw KeyhaulError(.damaged, "the zip's record of 64-bit numbers is not directly before its locator")
    }
    let countOnDisk = record.littleEndian(at: 24, bytes: 8)
    let count = record.littleEndian(at: 32, bytes: 8)
    let size = record.littleEndian(at: 40, bytes: 8)
    let offset = record.littleEndian(at: 48, bytes: 8)
    guard countOnDisk == count, [count, size, offset].allSatisfy({ $0 <= UInt64(fileByteCount) }) else {
      throw outsideFileError
    }
    return (recordOffset, (Int64(count), Int64(size), Int64(offset)))
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
