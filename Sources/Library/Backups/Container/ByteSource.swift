package import Basics
package import SystemPackage

/// A source of bytes for a libarchive reader.
package protocol ByteSource: AnyObject {
  /// Returns the next bytes, which are valid until the next call, or an empty buffer at the end.
  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer
  /// Skips up to `count` bytes if that is cheaper than reading them. Returns the number of skipped bytes.
  func skip(_ count: Int64) throws(KeyhaulError) -> Int64
  /// Moves to an offset from an origin. Returns the offset from the start, or `nil` if the source cannot move there.
  func seek(_ offset: Int64, _ origin: SeekOrigin) throws(KeyhaulError) -> Int64?
  /// Whether `next` has reached the end.
  var hasEnded: Bool { get }
}

package enum SeekOrigin {
  case start, current, end
}

/// The bytes of an open file, pipe or terminal.
package final class FileDescriptorSource: ByteSource {
  private let system: FileSystem
  private let descriptor: FileDescriptor
  /// The size of a regular file, which supports seeking, or `nil` if the source is a stream.
  package let fileByteCount: Int64?
  private let buffer: UnsafeMutableRawBufferPointer
  /// The number of bytes at the start of the buffer that `peek` has read and `next` has not returned yet.
  private var peekedCount = 0
  private(set) var position: Int64 = 0
  package private(set) var hasEnded = false

  package static let chunkByteCount = 256 << 10

  /// Creates a source. The caller keeps the descriptor open during the source's lifetime.
  package init(descriptor: FileDescriptor, system: FileSystem) throws(KeyhaulError) {
    self.system = system
    self.descriptor = descriptor
    let status: FileStatus
    do throws(Errno) {
      status = try system.status(of: descriptor)
    } catch {
      throw KeyhaulError(.unreadable, error.reason, of: error)
    }
    guard status.kind != .directory else { throw KeyhaulError(.notABackup, "the stream is a folder") }
    fileByteCount = status.kind == .file ? status.byteCount : nil
    buffer = .allocate(byteCount: Self.chunkByteCount, alignment: 16)
  }

  deinit { buffer.deallocate() }

  /// Returns at least `count` bytes from the start without consuming them, or fewer at the end.
  package func peek(_ count: Int) throws(KeyhaulError) -> UnsafeRawBufferPointer {
    while peekedCount < count {
      let read = try readOnce(into: UnsafeMutableRawBufferPointer(rebasing: buffer[peekedCount...]))
      if read == 0 { break }
      peekedCount += read
    }
    return UnsafeRawBufferPointer(rebasing: buffer[..<peekedCount])
  }

  package func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    let count = peekedCount > 0 ? peekedCount : try readOnce(into: buffer)
    peekedCount = 0
    hasEnded = count == 0
    position += Int64(count)
    return UnsafeRawBufferPointer(rebasing: buffer[..<count])
  }

  package func skip(_ count: Int64) throws(KeyhaulError) -> Int64 {
    // The count comes from a header and is untrusted.
    guard let fileByteCount, count > 0, position < fileByteCount else { return 0 }
    let target = position + min(count, fileByteCount - position)
    let start = position
    _ = try seek(target, .start)
    return target - start
  }

  package func seek(_ offset: Int64, _ origin: SeekOrigin) throws(KeyhaulError) -> Int64? {
    guard let fileByteCount else { return nil }
    let base: Int64 =
      switch origin {
      case .start: 0
      case .current: position
      case .end: fileByteCount
      }
    let (target, overflow) = base.addingReportingOverflow(offset)
    guard !overflow, target >= 0, target <= fileByteCount else { return nil }
    do {
      try system.seek(descriptor, to: target)
    } catch {
      throw KeyhaulError(.unreadable, error.reason, of: error)
    }
    peekedCount = 0
    position = target
    hasEnded = false
    return target
  }

  /// Reads up to `count` bytes at a file offset without moving the position. Returns fewer at the end of the file.
  func read(at offset: Int64, upTo count: Int) throws(KeyhaulError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filledCount = 0
    while filledCount < count {
      let readResult = bytes.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in
          try system.read(
            descriptor, at: offset + Int64(filledCount),
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[filledCount...]))
        }
      }
      switch readResult {
      case .success(0): return Array(bytes.prefix(filledCount))
      case .success(let readCount): filledCount += readCount
      case .failure(let error):
        throw KeyhaulError(.unreadable, "\(error.reason), at byte \(HumanReadable.grouped(offset))", errno: error)
      }
    }
    return bytes
  }

  private func readOnce(into target: UnsafeMutableRawBufferPointer) throws(KeyhaulError) -> Int {
    do {
      return try system.read(descriptor, into: target)
    } catch {
      throw KeyhaulError(.unreadable, "\(error.reason), at byte \(HumanReadable.grouped(position))", of: error)
    }
  }
}

/// The decompressed bytes of another source.
///
/// Limits the ratio of decompressed to compressed bytes, so that a small file cannot cause unlimited work.
package final class DecompressingSource: ByteSource {
  private let reader: LibArchiveReader
  /// The verifier of gzip checksums. The Zstandard decoder checks its own checksums.
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
    reader = try LibArchiveReader(checksumVerifier ?? source, reading: .compressedFile)
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
