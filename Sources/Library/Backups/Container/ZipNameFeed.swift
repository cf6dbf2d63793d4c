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
