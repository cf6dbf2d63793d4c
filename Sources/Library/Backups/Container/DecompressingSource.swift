package import Basics

/// The decompressed bytes of another source.
///
/// Limits the ratio of decompressed to compressed bytes, so that a small file cannot cause unlimited work.
package final class DecompressingSource: ByteSource {
  private let reader: LibArchiveReader
  /// Checks gzip checksums. The Zstandard decoder checks its own.
  private let checksumVerifier: GzipChecksumVerifier?
  private let source: FileDescriptorSource
  private let limits: BackupLimits
  private let buffer: UnsafeMutableRawBufferPointer
  private var producedByteCount: Int64 = 0
  private var isOpen = false
  package private(set) var hasEnded = false

  package init(
    _ source: FileDescriptorSource, as format: ContainerFormat, limits: BackupLimits
  ) throws(KeyhaulError) {
    self.source = source
    self.limits = limits
    checksumVerifier = format == .gzippedTar ? GzipChecksumVerifier(source) : nil
    reader = try LibArchiveReader(checksumVerifier ?? source, reading: .compressedBytes)
    // With several layers of compression, no checksum would cover the inner data.
    guard reader.filterCount <= 1 else { throw KeyhaulError(.unsupported, "it is compressed more than once") }
    buffer = .allocate(byteCount: FileDescriptorSource.chunkByteCount, alignment: 16)
  }

  deinit { buffer.deallocate() }

  package func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    if !isOpen {
      guard try reader.nextHeader() else { throw KeyhaulError(.truncated, "it is empty") }
      isOpen = true
    }
    // The checksum verifier needs the position before these bytes.
    let consumed = reader.consumedCompressedByteCount
    let count = hasEnded ? 0 : try reader.read(into: buffer)
    if count > 0 {
      checksumVerifier?.process(UnsafeRawBufferPointer(rebasing: buffer[..<count]), consumed: consumed)
    } else if !hasEnded {
      try checksumVerifier?.finish(consumed: reader.consumedCompressedByteCount)
    }
    hasEnded = count == 0
    producedByteCount += Int64(count)
    let (allowedByteCount, overflow) = source.position.multipliedReportingOverflow(by: limits.expansionFactor)
    guard overflow || producedByteCount - limits.decompressionAllowance <= allowedByteCount else {
      throw KeyhaulError(
        .overLimit,
        "\(HumanReadable.grouped(source.position)) compressed bytes expand to more than \(limits.expansionFactor) times "
          + "their size")
    }
    return UnsafeRawBufferPointer(rebasing: buffer[..<count])
  }

  package func skip(_ count: Int64) -> Int64 { 0 }
  package func seek(_ offset: Int64, _ origin: SeekOrigin) -> Int64? { nil }
}
