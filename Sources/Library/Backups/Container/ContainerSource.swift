import Basics
import KeychainFormats

/// Reads a backup from a container file or a stream in one pass.
struct ContainerSource {
  let limits: BackupLimits
  let storage: ManifestStorage
  let system: FileSystem

  func read(
    _ source: FileDescriptorSource, as format: ContainerFormat
  ) throws(KeyhaulError) -> ContainerScanner.Contents {
    if format == .zip { return try readZip(source) }
    guard format.isCompressedTar else {
      return try readTar(source, of: source.fileByteCount, fileByteCount: source.fileByteCount)
    }
    return try readTar(
      try DecompressingSource(source, as: format, limits: limits), of: source.fileByteCount, fileByteCount: nil)
  }

  /// Reads a tar.
  ///
  /// - Parameters:
  ///   - storedByteCount: The size of the file, compressed or not.
  ///   - fileByteCount: The size of the tar, if it is known in advance.
  private func readTar(
    _ source: any ByteSource, of storedByteCount: Int64?, fileByteCount: Int64?
  ) throws(KeyhaulError) -> ContainerScanner.Contents {
    let countingSource = CountingSource(source)
    let reader = try LibArchiveReader(countingSource, reading: .tar)
    var scanner = ContainerScanner(limits: limits, containerByteCount: storedByteCount)
    var entriesEnd: Int64 = 0
    while try reader.nextHeader() {
      try readEntry(reader, into: &scanner, remainingByteCount: nil)
      entriesEnd = reader.consumedByteCount
    }
    try checkEnd(of: countingSource, entriesEnd: entriesEnd, fileByteCount: fileByteCount)
    return try scanner.finish()
  }

  /// Checks that a tar is long enough for the two blocks that mark its end. Without these blocks, entries may be missing
  /// as well.
  private func checkEnd(
    of source: CountingSource, entriesEnd: Int64, fileByteCount: Int64?
  ) throws(KeyhaulError) {
    let block = Int64(Self.blockByteCount)
    let lastEntryEnd = (entriesEnd + block - 1) / block * block
    let minimumByteCount = lastEntryEnd + 2 * block
    var remainingRecordByteCount = Self.maximumRecordByteCount
    // A compressed stream is read to its end, which has a checksum. A pipe is read to the end of its last record, so
    // that its writer does not fail.
    while fileByteCount == nil, !source.hasEnded, source.isBounded || remainingRecordByteCount > 0 {
      remainingRecordByteCount -= Int64(try source.next().count)
    }
    let byteCount = fileByteCount ?? source.byteCount
    guard byteCount >= minimumByteCount else {
      throw KeyhaulError(
        .truncated, "the tar file ends at byte \(HumanReadable.grouped(byteCount)) without its end marker")
    }
  }

  private func readZip(_ source: FileDescriptorSource) throws(KeyhaulError) -> ContainerScanner.Contents {
    guard let fileByteCount = source.fileByteCount else {
      throw KeyhaulError(
        .notStreamable,
        "a zip file has its directory at the end and cannot be read from a stream")
    }
    let directory = try ZipDirectory.check(source, fileByteCount: fileByteCount, entryLimit: limits.entryCount)
    var scanner = ContainerScanner(limits: limits, containerByteCount: fileByteCount)
    // libarchive does not recognize a zip without entries.
    guard directory.entryCount > 0 else { return try scanner.finish() }
    _ = try source.seek(0, .start)
    let reader = try LibArchiveReader(ZipNameRewriter(source, flaggedHeaders: directory.flaggedHeaders), reading: .zip)
    var remainingByteCount = limits.decompressedByteCount(of: fileByteCount)
    while try reader.nextHeader() {
      try readEntry(reader, into: &scanner, remainingByteCount: &remainingByteCount)
    }
    return try scanner.finish()
  }

  /// Reads an entry, and stores it if it is a metadata file.
  ///
  /// - Parameter remainingByteCount: The remaining number of decompressed bytes, or `nil` if the source limits them.
  private func readEntry(
    _ reader: LibArchiveReader, into scanner: inout ContainerScanner, remainingByteCount: UnsafeMutablePointer<Int64>?
  ) throws(KeyhaulError) {
    guard let entry = reader.entry else { return }
    guard let name = entry.name else {
      throw KeyhaulError(.hostile, "entry \(scanner.entryCount + 1) has a name that cannot be read")
    }
    guard let requested = try scanner.accept(name: name, kind: entry.kind, byteCount: entry.byteCount) else {
      return try reader.skipData()
    }
    if requested.part.isLarge {
      var builder = try SpooledDataBuilder(storage, system: system, expecting: entry.byteCount)
      try forEachChunk(of: entry, requested.part, reader, remainingByteCount) { (chunk) throws(KeyhaulError) in
        try builder.append(chunk)
      }
      scanner.store(try builder.finish(), for: requested)
    } else {
      // The size in the header is untrusted, so the array grows with the actual data.
      var bytes: [UInt8] = []
      try forEachChunk(of: entry, requested.part, reader, remainingByteCount) { (chunk) throws(KeyhaulError) in
        bytes.append(contentsOf: chunk)
      }
      scanner.store(bytes, for: requested)
    }
  }

  /// Passes the content of an entry to a closure in chunks.
  ///
  /// - Throws: `.damaged` or `.truncated` if the entry claims a different size, `.overLimit`, or the errors of `body`.
  private func forEachChunk(
    of entry: LibArchiveReader.Entry, _ part: MetadataFile, _ reader: LibArchiveReader,
    _ remainingByteCount: UnsafeMutablePointer<Int64>?,
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var byteCount: Int64 = 0
    try reader.forEachChunk { (chunk) throws(KeyhaulError) in
      byteCount += Int64(chunk.count)
      guard byteCount <= entry.byteCount else {
        throw KeyhaulError(.damaged, "\(part.path) has more bytes than its entry claims")
      }
      if let remainingByteCount {
        remainingByteCount.pointee -= Int64(chunk.count)
        guard remainingByteCount.pointee >= 0 else { throw limits.expansionError }
      }
      try body(chunk)
    }
    guard byteCount == entry.byteCount else {
      let position = HumanReadable.grouped(byteCount)
      throw KeyhaulError(
        .truncated, "\(part.path) ends at byte \(position) of \(HumanReadable.grouped(entry.byteCount))")
    }
  }

  static let blockByteCount = 512
  /// The maximum record size of tar programs, which pad the last record of a file.
  private static let maximumRecordByteCount: Int64 = 1 << 20
}

/// A source that counts the delivered and skipped bytes.
private final class CountingSource: ByteSource {
  private let source: any ByteSource
  private(set) var byteCount: Int64 = 0

  init(_ source: any ByteSource) { self.source = source }

  var hasEnded: Bool { source.hasEnded }
  /// Whether the limits bound the cost of reading to the end.
  var isBounded: Bool { source is DecompressingSource }

  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    let bytes = try source.next()
    byteCount += Int64(bytes.count)
    return bytes
  }

  func skip(_ count: Int64) throws(KeyhaulError) -> Int64 {
    let skipped = try source.skip(count)
    byteCount += skipped
    return skipped
  }

  func seek(_ offset: Int64, _ origin: SeekOrigin) -> Int64? { nil }
}
