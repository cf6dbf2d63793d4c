import Basics
import CArchive
import SystemPackage

/// A writer that packs a backup in a container. Equal inputs result in equal bytes, independent of time, owner, and
/// host.
final class LibArchiveWriter {
  private let handle: OpaquePointer
  private let sink: Sink
  private let supportedTimes: ClosedRange<Int64>
  /// The remaining size of the current entry.
  private var remainingByteCount: Int64 = 0

  /// A receiver of the stream's bytes in order.
  final class Sink {
    private let system: FileSystem
    private let descriptor: FileDescriptor
    fileprivate(set) var failure: Errno?
    private(set) var byteCount: Int64 = 0

    init(descriptor: FileDescriptor, system: FileSystem) {
      self.descriptor = descriptor
      self.system = system
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) -> Int {
      // libarchive flushes again when it is freed, but nothing may follow a failure.
      guard failure == nil else { return Int(ARCHIVE_FATAL) }
      do throws(Errno) {
        try system.writeAll(bytes, to: descriptor)
        byteCount += Int64(bytes.count)
        return bytes.count
      } catch {
        failure = error
        return Int(ARCHIVE_FATAL)
      }
    }
  }

  /// Creates a writer.
  ///
  /// - Parameter compresses: Whether to compress. If not, zip entries and gzip blocks stay uncompressed, because compressing a
  ///   gigabyte of ciphertext takes half a minute without benefit. Zstandard detects such data itself.
  init(_ format: ContainerFormat, compresses: Bool, to sink: Sink) throws(KeyhaulError) {
    guard let handle = archive_write_new() else { throw ContainerLibrary.writeFailure }
    self.handle = handle
    self.sink = sink
    supportedTimes = Self.supportedTimes(of: format)
    try setFormat(format, compresses: compresses)
    // By default, libarchive pads the compressed stream with zeros, which Zstandard readers reject. A last block of one
    // byte prevents this.
    try check(archive_write_set_bytes_per_block(handle, Self.blockByteCount(format, compresses)))
    try check(archive_write_set_bytes_in_last_block(handle, 1))
    try check(
      archive_write_open2(
        handle, Unmanaged.passUnretained(sink).toOpaque(), nil,
        { _, context, bytes, count in
          guard let context else { return Int(ARCHIVE_FATAL) }
          return Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
            .write(UnsafeRawBufferPointer(start: bytes, count: count))
        }, nil, nil))
  }

  private func setFormat(_ format: ContainerFormat, compresses: Bool) throws(KeyhaulError) {
    if format != .zip { try check(archive_write_set_format_pax_restricted(handle)) }
    switch format {
    case .tar: break
    case .gzippedTar:
      try check(archive_write_add_filter_gzip(handle))
      try check(archive_write_set_filter_option(handle, "gzip", "timestamp", nil))
      if !compresses { try check(archive_write_set_filter_option(handle, "gzip", "compression-level", "0")) }
    case .zstandardTar: try check(archive_write_add_filter_zstd(handle))
    case .zip:
      try check(archive_write_set_format_zip(handle))
      if !compresses { try check(archive_write_zip_set_compression_store(handle)) }
    }
  }

  /// The size of the blocks that are written to the sink. Data longer than a block is not buffered. Uncompressed gzip has
  /// larger blocks, because zlib makes a copy for each one.
  private static func blockByteCount(_ format: ContainerFormat, _ compresses: Bool) -> Int32 {
    format == .gzippedTar && !compresses ? 1 << 18 : 1 << 16
  }

  deinit { archive_write_free(handle) }

  /// Begins an entry.
  ///
  /// - Parameters:
  ///   - name: The full name, which is written unchanged. In a zip, UTF-8 names are marked.
  ///   - modificationTime: The time in seconds since 1970. The closest supported time is used.
  func begin(_ name: EntryName, byteCount: Int64, modificationTime: Int64) throws(KeyhaulError) {
    guard let entry = archive_entry_new() else { throw .writing("out of memory", .noMemory) }
    defer { archive_entry_free(entry) }
    let isText = name.text != nil
    (Array(name.bytes) + [0]).withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { archive_entry_copy_pathname(entry, $0.baseAddress) }
    }
    archive_entry_set_mode(entry, 0o100600)
    archive_entry_set_uid(entry, 0)
    archive_entry_set_gid(entry, 0)
    archive_entry_set_size(entry, byteCount)
    let time = min(max(modificationTime, supportedTimes.lowerBound), supportedTimes.upperBound)
    archive_entry_set_mtime(entry, time_t(time), 0)
    // Runs with a locale in which libarchive does not change the name.
    let result = (isText ? NameEncoding.utf8 : .bytes).run { archive_write_header(handle, entry) }
    // libarchive warns about a tar entry whose name is not text, but writes it, marked as bytes (`hdrcharset`).
    if result != ARCHIVE_WARN || name.bytes.allSatisfy({ $0 < 0x80 }) { try check(result) }
    remainingByteCount = byteCount
  }

  /// The modification times that a format supports, in seconds since 1970.
  ///
  /// A tar's field has 11 octal digits (POSIX pax, `ustar` interchange format). A zip supports years up to 2107 (PKWARE
  /// APPNOTE 4.4.6) and an additional 32-bit time. libarchive 3.6 truncates larger values, and dereferences a null
  /// pointer if the year does not fit into 32 bits.
  private static func supportedTimes(of format: ContainerFormat) -> ClosedRange<Int64> {
    format == .zip ? 0...Int64(UInt32.max) : 0...0o77_777_777_777
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    var remaining = bytes
    while !remaining.isEmpty {
      let written = archive_write_data(handle, remaining.baseAddress, remaining.count)
      guard written > 0 else { throw failure() }
      remainingByteCount -= Int64(written)
      remaining = UnsafeRawBufferPointer(rebasing: remaining[written...])
    }
  }

  func end() throws(KeyhaulError) {
    // libarchive would fill the entry with zeros.
    guard remainingByteCount == 0 else { throw .writing("an entry's length differs from its declared length") }
    try check(archive_write_finish_entry(handle))
  }

  /// Writes the end of the container, without which it is truncated.
  func finish() throws(KeyhaulError) { try check(archive_write_close(handle)) }

  private func check(_ result: Int32) throws(KeyhaulError) {
    guard result == ARCHIVE_OK else { throw failure() }
  }

  private func failure() -> KeyhaulError {
    if let failure = sink.failure { return .writing(failure) }
    return .writing(archive_error_string(handle).map { String(cString: $0) } ?? "libarchive gave no reason")
  }
}

/// A sink that writes a backup's files to a container.
final class ContainerSink: StoredFileSink {
  private let writer: LibArchiveWriter
  private let directoryName: String?

  init(_ writer: LibArchiveWriter, directoryName: String?) {
    self.writer = writer
    self.directoryName = directoryName
  }

  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(KeyhaulError) {
    let name = directoryName.map { EntryName($0) / path } ?? path
    try writer.begin(name, byteCount: byteCount, modificationTime: modificationTime)
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) { try writer.write(bytes) }
  func end() throws(KeyhaulError) { try writer.end() }
}
