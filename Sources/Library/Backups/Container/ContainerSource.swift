import Basics
import KeychainFormats

/// Reads a backup from a container file or a stream in one pass.
struct ContainerSource {
  let limits: ArchiveLimits
  let storage: ManifestStorage
  let system: FileSystem

  func read(
    _ feed: DescriptorFeed, as format: ContainerFormat
  ) throws(KeyhaulError) -> EntryLedger.Found {
    if format == .zip { return try readZip(feed) }
    guard format.isCompressedTar else {
      return try readTar(feed, of: feed.fileByteCount, fileByteCount: feed.fileByteCount)
    }
    return try readTar(
      try DecompressedFeed(feed, as: format, limits: limits), of: feed.fileByteCount, fileByteCount: nil)
  }

  /// Reads a tar.
  ///
  /// - Parameters:
  ///   - storedByteCount: The size of the file, compressed or not.
  ///   - fileByteCount: The size of the tar, if it is known in advance.
  private func readTar(
    _ feed: any ByteFeed, of storedByteCount: Int64?, fileByteCount: Int64?
  ) throws(KeyhaulError) -> EntryLedger.Found {
    let watched = CountingFeed(feed)
    let reader = try LibArchiveReader(watched, reading: .tar)
    var ledger = EntryLedger(limits: limits, containerByteCount: storedByteCount)
    var end: Int64 = 0
    while try reader.nextHeader() {
      try readEntry(reader, into: &ledger, decompressed: nil)
      end = reader.consumedByteCount
    }
    try checkEnd(of: watched, entriesEnd: end, fileByteCount: fileByteCount)
    return try ledger.finish()
  }

  /// Checks the two zero blocks at the end of a tar. Without them, entries may be missing as well.
  private func checkEnd(
    of feed: CountingFeed, entriesEnd: Int64, fileByteCount: Int64?
  ) throws(KeyhaulError) {
    let block = Int64(Self.blockByteCount)
    let needed = (entriesEnd + block - 1) / block * block + 2 * block
    var remaining = Self.trailerByteCount
    // A compressed stream is read to its end, which has a checksum. The writer of a pipe can finish its last record.
    while fileByteCount == nil, !feed.hasEnded, feed.isBounded || remaining > 0 {
      remaining -= Int64(try feed.next().count)
    }
    let found = fileByteCount ?? feed.byteCount
    guard found >= needed else {
      throw KeyhaulError(.truncated, "the tar file ends at byte \(HumanReadable.grouped(found)) without its end marker")
    }
  }

  private func readZip(_ feed: DescriptorFeed) throws(KeyhaulError) -> EntryLedger.Found {
    guard let fileByteCount = feed.fileByteCount else {
      throw KeyhaulError(
        .notStreamable,
        "a zip file has its directory at the end and cannot be read from a stream")
    }
    let directory = try ZipDirectory.check(feed, fileByteCount: fileByteCount, entryLimit: limits.entryCount)
    var ledger = EntryLedger(limits: limits, containerByteCount: fileByteCount)
    // libarchive does not recognize a zip without entries.
    guard directory.entryCount > 0 else { return try ledger.finish() }
    _ = try feed.seek(0, .start)
    let reader = try LibArchiveReader(ZipNameFeed(feed, markedHeaders: directory.markedHeaders), reading: .zip)
    var budget = limits.decompressedByteCount(of: fileByteCount)
    while try reader.nextHeader() {
      try readEntry(reader, into: &ledger, decompressed: &budget)
    }
    return try ledger.finish()
  }

  /// Reads an entry.
  ///
  /// - Parameter decompressed: The remaining number of decompressed bytes, if the source does not limit them.
  private func readEntry(
    _ reader: LibArchiveReader, into ledger: inout EntryLedger, decompressed budget: UnsafeMutablePointer<Int64>?
  ) throws(KeyhaulError) {
    guard let entry = reader.entry else { return }
    guard let name = entry.name else {
      throw KeyhaulError(.hostile, "entry \(ledger.entryCount + 1) has a name that cannot be read")
    }
    guard let wanted = try ledger.admit(name: name, kind: entry.kind, byteCount: entry.byteCount) else {
      return try reader.skipData()
    }
    // The size in the header is untrusted, so the array grows with the actual data.
    var bytes: [UInt8] = []
    var collector = try StoredBytesCollector(
      storage, system: system, expecting: wanted.part.isLarge ? entry.byteCount : 0)
    var byteCount: Int64 = 0
    try reader.forEachPortion { (portion) throws(KeyhaulError) in
      byteCount += Int64(portion.count)
      guard byteCount <= entry.byteCount else {
        throw KeyhaulError(.damaged, "\(wanted.part.path) has more bytes than its entry claims")
      }
      if let budget {
        budget.pointee -= Int64(portion.count)
        guard budget.pointee >= 0 else { throw limits.expansionError }
      }
      if wanted.part.isLarge { try collector.append(portion) } else { bytes.append(contentsOf: portion) }
    }
    guard byteCount == entry.byteCount else {
      throw KeyhaulError(
        .truncated,
        "\(wanted.part.path) ends at byte \(HumanReadable.grouped(byteCount)) of \(HumanReadable.grouped(entry.byteCount))"
      )
    }
    if wanted.part.isLarge {
      ledger.keep(try collector.finish(), for: wanted)
    } else {
      ledger.keep(bytes, for: wanted)
    }
  }

  static let blockByteCount = 512
  /// The maximum record size of tar programs, which pad the end of the file to it.
  private static let trailerByteCount: Int64 = 1 << 20
}

/// A source that counts the delivered and skipped bytes.
private final class CountingFeed: ByteFeed {
  private let feed: any ByteFeed
  private(set) var byteCount: Int64 = 0

  init(_ feed: any ByteFeed) { self.feed = feed }

  var hasEnded: Bool { feed.hasEnded }
  /// Whether the limits bound the cost of reading to the end.
  var isBounded: Bool { feed is DecompressedFeed }

  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    let bytes = try feed.next()
    byteCount += Int64(bytes.count)
    return bytes
  }

  func skip(_ count: Int64) throws(KeyhaulError) -> Int64 {
    let skipped = try feed.skip(count)
    byteCount += skipped
    return skipped
  }

  func seek(_ offset: Int64, _ origin: SeekOrigin) -> Int64? { nil }
}
