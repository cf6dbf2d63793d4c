import Basics

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
  /// - Parameter offsets: The offsets of the local headers with flagged names.
  init(_ source: FileDescriptorSource, flaggedHeaders offsets: [Int64]) {
    self.source = source
    // The flags are in the bytes 6 and 7 of a local header. The UTF-8 flag is in the second one.
    flagOffsets = offsets.map { $0.addingReportingOverflow(7).partialValue }
    copy = .allocate(byteCount: FileDescriptorSource.chunkByteCount, alignment: 16)
  }

  /// Finds the flagged names in the zip, and creates a source.
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
    var (first, end) = (0, flagOffsets.count)
    while first < end {
      let middle = (first + end) / 2
      if flagOffsets[middle] < offset { first = middle + 1 } else { end = middle }
    }
    return first
  }
}
