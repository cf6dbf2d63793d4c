/// Reads a backup that was packed into one file, or comes as a stream, in one pass.
struct ContainerSource {
  let limits: ArchiveLimits
  let storage: ManifestStorage
  let system: FileSystem

  func read(_ feed: DescriptorFeed) throws(BackupArchiveError) -> EntryLedger.Found {
    switch try Signature.checked(feed) {
    case .tar: try readTar(feed, fileByteCount: feed.fileByteCount)
    case .compressed: try readTar(try DecompressedFeed(feed, limits: limits), fileByteCount: nil)
    case .zip: try readZip(feed)
    }
  }

  /// Goes to one entry of a container that was read before, and lends its bytes in portions.
  ///
  /// - Returns: `false` where there is no such entry.
  func readEntry(
    named path: String, of feed: DescriptorFeed, _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    let reader =
      switch try Signature.checked(feed) {
      case .tar: try LibArchiveReader(feed, reading: .tar)
      case .compressed: try LibArchiveReader(try DecompressedFeed(feed, limits: limits), reading: .tar)
      case .zip: try LibArchiveReader(feed, reading: .zip)
      }
    let wanted = path.split(separator: "/")
    while try reader.nextHeader() {
      guard let entry = reader.entry, let name = entry.name, entry.kind == .file,
        let found = try? EntryPath(name, limit: limits.pathByteCount), found.components == wanted
      else {
        try reader.skipData()
        continue
      }
      var remaining = entry.byteCount
      try forEachPortion(of: reader) { (bytes) throws(BackupArchiveError) in
        remaining -= Int64(bytes.count)
        guard remaining >= 0 else {
          throw BackupArchiveError(.damaged, "\(path) has more bytes than its entry claims")
        }
        try portion(bytes)
      }
      guard remaining == 0 else { throw BackupArchiveError(.truncated, "\(path) lacks \(grouped(remaining)) bytes") }
      return true
    }
    return false
  }

  private func forEachPortion(
    of reader: LibArchiveReader, _ body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: DescriptorFeed.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try reader.read(into: buffer)
      if count == 0 { return }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private func readTar(
    _ feed: any ByteFeed, fileByteCount: Int64?
  ) throws(BackupArchiveError) -> EntryLedger.Found {
    let watched = CountingFeed(feed)
    let reader = try LibArchiveReader(watched, reading: .tar)
    var ledger = EntryLedger(limits: limits)
    var end: Int64 = 0
    while try reader.nextHeader() {
      try readEntry(reader, into: &ledger, decompressed: nil)
      end = reader.consumedByteCount
    }
    try checkEnd(of: watched, entriesEnd: end, fileByteCount: fileByteCount)
    return try ledger.finish()
  }

  /// A tar ends with two blocks of zeros. Where they aren't, more entries may have been lost with them.
  private func checkEnd(
    of feed: CountingFeed, entriesEnd: Int64, fileByteCount: Int64?
  ) throws(BackupArchiveError) {
    let block = Int64(Self.blockByteCount)
    let needed = (entriesEnd + block - 1) / block * block + 2 * block
    var remaining = Self.trailerByteCount
    // A compressed stream is read to its own end, which has a mark too; a pipe's writer is let finish its last record.
    while fileByteCount == nil, !feed.hasEnded, feed.isBounded || remaining > 0 {
      remaining -= Int64(try feed.next().count)
    }
    let found = fileByteCount ?? feed.byteCount
    guard found >= needed else {
      throw BackupArchiveError(.truncated, "the tar ends at byte \(grouped(found)) without its end mark")
    }
  }

  private func readZip(_ feed: DescriptorFeed) throws(BackupArchiveError) -> EntryLedger.Found {
    guard let fileByteCount = feed.fileByteCount else {
      throw BackupArchiveError(.notStreamable, "a zip has its directory at its end and cannot be read from a stream")
    }
    let count = try ZipDirectory.check(feed, fileByteCount: fileByteCount, entryLimit: limits.entryCount)
    var ledger = EntryLedger(limits: limits)
    // A zip without entries is one that libarchive does not recognise.
    guard count > 0 else { return try ledger.finish() }
    _ = try feed.seek(0, .start)
    let reader = try LibArchiveReader(feed, reading: .zip)
    var budget = limits.decompressionAllowance
    let (justified, overflow) = fileByteCount.multipliedReportingOverflow(by: limits.expansionFactor)
    budget = overflow ? .max : budget.addingReportingOverflow(justified).overflow ? .max : budget + justified
    while try reader.nextHeader() {
      try readEntry(reader, into: &ledger, decompressed: &budget)
    }
    return try ledger.finish()
  }

  /// - Parameter decompressed: How many bytes the container may still decompress to, where the feed doesn't watch that.
  private func readEntry(
    _ reader: LibArchiveReader, into ledger: inout EntryLedger, decompressed budget: UnsafeMutablePointer<Int64>?
  ) throws(BackupArchiveError) {
    guard let entry = reader.entry else { return }
    guard let name = entry.name else {
      throw BackupArchiveError(.hostile, "entry \(ledger.entryCount + 1) has a name that is not UTF-8")
    }
    guard let wanted = try ledger.admit(name: name, kind: entry.kind, byteCount: entry.byteCount) else {
      return try reader.skipData()
    }
    // Grown as bytes arrive: what the header claims is not memory yet.
    var bytes: [UInt8] = []
    var collector = try StoredBytesCollector(storage, system: system)
    var byteCount: Int64 = 0
    try forEachPortion(of: reader) { (portion) throws(BackupArchiveError) in
      byteCount += Int64(portion.count)
      guard byteCount <= entry.byteCount else {
        throw BackupArchiveError(.damaged, "\(wanted.part.path) has more bytes than its entry claims")
      }
      if let budget {
        budget.pointee -= Int64(portion.count)
        guard budget.pointee >= 0 else {
          throw BackupArchiveError(
            .overLimit, "its compressed bytes become more than \(limits.expansionFactor) times as many")
        }
      }
      if wanted.part == .database { try collector.append(portion) } else { bytes.append(contentsOf: portion) }
    }
    guard byteCount == entry.byteCount else {
      throw BackupArchiveError(.truncated, "\(wanted.part.path) ends at byte \(byteCount) of \(entry.byteCount)")
    }
    if wanted.part == .database {
      ledger.keep(try collector.finish(), for: wanted)
    } else {
      ledger.keep(bytes, for: wanted)
    }
  }

  static let blockByteCount = 512
  /// The largest record that tar programs pad to, which is what they still write after the end mark.
  private static let trailerByteCount: Int64 = 1 << 20
}

/// A feed that knows how many bytes it has delivered or passed over.
private final class CountingFeed: ByteFeed {
  private let feed: any ByteFeed
  private(set) var byteCount: Int64 = 0

  init(_ feed: any ByteFeed) { self.feed = feed }

  var hasEnded: Bool { feed.hasEnded }
  /// Whether reading to the end costs no more than the limits allow.
  var isBounded: Bool { feed is DecompressedFeed }

  func next() throws(BackupArchiveError) -> UnsafeRawBufferPointer {
    let bytes = try feed.next()
    byteCount += Int64(bytes.count)
    return bytes
  }

  func skip(_ count: Int64) throws(BackupArchiveError) -> Int64 {
    let skipped = try feed.skip(count)
    byteCount += skipped
    return skipped
  }

  func seek(_ offset: Int64, _ origin: SeekOrigin) -> Int64? { nil }
}

/// What the first bytes of a file say that it is.
private enum Signature {
  case tar, compressed, zip

  /// Looks at a feed's first bytes without taking them away.
  static func checked(_ feed: DescriptorFeed) throws(BackupArchiveError) -> Signature {
    let start = try feed.peek(ContainerSource.blockByteCount)
    if start.isEmpty { throw BackupArchiveError(.notABackup, "it is empty") }
    if let signature = Signature(start) { return signature }
    // Too short to be any of them.
    guard start.count >= ContainerSource.blockByteCount else {
      throw BackupArchiveError(.truncated, "it ends after \(start.count) bytes")
    }
    throw BackupArchiveError(.notABackup, "it is neither a folder nor a tar nor a zip")
  }

  /// Sources: POSIX pax ("ustar" at 257; older tars have only a checksum), RFC 1952, RFC 8878, PKWARE APPNOTE 4.3.7.
  init?(_ bytes: UnsafeRawBufferPointer) {
    if bytes.starts(with: [0x1F, 0x8B]) || bytes.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
      self = .compressed
    } else if bytes.starts(with: [0x50, 0x4B, 3, 4]) || bytes.starts(with: [0x50, 0x4B, 5, 6]) {
      self = .zip
    } else {
      guard bytes.count >= ContainerSource.blockByteCount else { return nil }
      let block = bytes[..<ContainerSource.blockByteCount]
      guard block.allSatisfy({ $0 == 0 }) || Self.checksumFits(block) else { return nil }
      self = .tar
    }
  }

  /// The header's bytes added up, its own checksum field taken as spaces, equal the octal number in that field.
  private static func checksumFits(_ block: Slice<UnsafeRawBufferPointer>) -> Bool {
    let field = 148..<156
    var sum = 0
    for (index, byte) in block.enumerated() { sum += field.contains(index) ? 32 : Int(byte) }
    var stored = 0
    for (index, byte) in block.enumerated() where field.contains(index) && (48...55).contains(byte) {
      stored = stored << 3 | Int(byte - 48)
    }
    return sum == stored
  }
}
