import Basics
import CArchive
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A libarchive reader with its source. It never extracts files to disk.
final class LibArchiveReader {
  enum Format {
    case tar
    /// A zip with its central directory. The source must support seeking.
    case zip
    /// A single gzip or Zstandard file, which is read decompressed.
    case compressedFile
  }

  /// The header of an entry.
  struct Entry {
    /// The name, or `nil` if libarchive cannot provide it.
    let name: EntryName?
    let kind: ContainerScanner.Kind
    let byteCount: Int64
  }

  private let handle: OpaquePointer
  private var header: OpaquePointer?
  private let context: ReadContext
  private let nameEncoding: NameEncoding
  /// Whether libarchive has failed, so that no more data follows.
  private(set) var isBroken = false

  init(_ source: any ByteSource, reading format: Format) throws(KeyhaulError) {
    guard let handle = archive_read_new() else { throw ContainerLibrary.readFailure }
    self.handle = handle
    context = ReadContext(source)
    // A zip can contain a UTF-8 name in an extra field, which libarchive would convert to the locale's character set.
    nameEncoding = format == .zip ? .utf8 : .bytes
    let supportResult =
      switch format {
      case .tar: archive_read_support_format_tar(handle)
      case .zip: archive_read_support_format_zip_seekable(handle)
      case .compressedFile:
        min(
          archive_read_support_format_raw(handle), archive_read_support_filter_gzip(handle),
          archive_read_support_filter_zstd(handle))
      }
    guard supportResult == ARCHIVE_OK else {
      throw KeyhaulError(.unreadable, "libarchive was built without a format that is needed")
    }
    archive_read_set_callback_data(handle, Unmanaged.passUnretained(context).toOpaque())
    archive_read_set_read_callback(handle) { _, context, start in ReadContext.of(context).read(start) }
    if format != .compressedFile {
      archive_read_set_skip_callback(handle) { _, context, count in ReadContext.of(context).skip(count) }
    }
    if format == .zip {
      archive_read_set_seek_callback(handle) { _, context, offset, whence in
        ReadContext.of(context).seek(offset, whence)
      }
    }
    guard archive_read_open1(handle) == ARCHIVE_OK else { throw failure() }
  }

  deinit { archive_read_free(handle) }

  /// Moves to the next entry. Returns `false` at the end of the container.
  func nextHeader() throws(KeyhaulError) -> Bool {
    var entry: OpaquePointer?
    switch nameEncoding.run({ archive_read_next_header(handle, &entry) }) {
    // Warnings concern unused fields, or an entry without a name.
    case ARCHIVE_OK, ARCHIVE_WARN:
      if isZipInconsistent { throw failure() }
      header = entry
      return true
    case ARCHIVE_EOF:
      header = nil
      return false
    default: throw failure()
    }
  }

  /// Whether the central directory and the local header of a zip entry differ, which means that one of them was changed.
  private var isZipInconsistent: Bool {
    let isZip = nameEncoding == .utf8
    guard isZip, archive_errno(handle) != 0, let text = archive_error_string(handle) else { return false }
    return String(cString: text).hasPrefix("Inconsistent ")
  }

  var entry: Entry? {
    guard let header else { return nil }
    return nameEncoding.run {
      Entry(
        name: archive_entry_pathname(header).map { name in
          EntryName(bytes: Array(UnsafeRawBufferPointer(start: name, count: strlen(name))))
        },
        kind: kind(of: header),
        byteCount: archive_entry_size_is_set(header) == 0 ? 0 : archive_entry_size(header))
    }
  }

  /// The modification time of the current entry in seconds since 1970.
  var modificationTime: Int64 { header.map { Int64(archive_entry_mtime($0)) } ?? 0 }

  private func kind(of header: OpaquePointer) -> ContainerScanner.Kind {
    if archive_entry_hardlink(header) != nil { return .other("a hard link") }
    if archive_entry_symlink(header) != nil { return .other("a symbolic link") }
    if archive_entry_is_encrypted(header) != 0 { return .other("encrypted by the container") }
    if archive_entry_sparse_count(header) > 0 { return .other("a sparse file") }
    return ContainerScanner.Kind(mode: UInt32(archive_entry_filetype(header)))
  }

  /// Reads bytes of the current entry. Returns 0 at its end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) -> Int {
    let count = archive_read_data(handle, buffer.baseAddress, buffer.count)
    guard count >= 0 else {
      isBroken = count <= Int(ARCHIVE_FATAL)
      throw failure()
    }
    return count
  }

  /// Passes the content of the current entry to a closure in chunks.
  func forEachChunk(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: FileDescriptorSource.chunkByteCount, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try read(into: buffer)
      if count == 0 { return }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Skips the rest of the current entry.
  func skipData() throws(KeyhaulError) {
    guard archive_read_data_skip(handle) >= ARCHIVE_WARN else { throw failure() }
  }

  /// The number of decompressed container bytes that were read.
  var consumedByteCount: Int64 { archive_filter_bytes(handle, 0) }

  /// The number of stored container bytes that were read.
  var consumedCompressedByteCount: Int64 { archive_filter_bytes(handle, -1) }

  /// The number of compression filters: 2 for a file that was compressed twice.
  var filterCount: Int { max(0, Int(archive_filter_count(handle)) - 1) }

  private func failure() -> KeyhaulError {
    if let failure = context.failure { return failure }
    let errno = Errno(rawValue: archive_errno(handle))
    if errno.isResourceShortage { return KeyhaulError(.unreadable, "libarchive: \(errno.reason)", of: errno) }
    let text = archive_error_string(handle).map { String(cString: $0) } ?? "it cannot be read"
    // libarchive has no error number for this failure. Source: zstd, `ZSTD_getErrorString`.
    if text.hasPrefix("Zstd decompression failed: Allocation error") {
      return KeyhaulError(.unreadable, "libarchive: \(Errno.noMemory.reason)", of: .noMemory)
    }
    return KeyhaulError(context.source.hasEnded ? .truncated : .damaged, clause(of: text))
  }

  /// Returns libarchive's message as a clause. It is quoted if it has unusual characters, because it may contain a name
  /// from the container.
  private func clause(of message: String) -> String {
    let isPlain = message.unicodeScalars.allSatisfy { $0.isASCII && $0.value >= 32 }
    guard isPlain else { return quoted(message) }
    let beginsWithAcronym = message.dropFirst().first?.isUppercase == true
    return beginsWithAcronym ? message : message.prefix(1).lowercased() + message.dropFirst()
  }
}

/// The state that libarchive's callbacks access through their context pointer.
private final class ReadContext {
  let source: any ByteSource
  /// The error of a callback. libarchive only receives a failure code.
  private(set) var failure: KeyhaulError?

  init(_ source: any ByteSource) { self.source = source }

  static func of(_ context: UnsafeMutableRawPointer?) -> ReadContext {
    guard let context else { preconditionFailure("libarchive calls back with the pointer that it was given") }
    return Unmanaged<ReadContext>.fromOpaque(context).takeUnretainedValue()
  }

  func read(_ start: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
    do throws(KeyhaulError) {
      let bytes = try source.next()
      start?.pointee = bytes.baseAddress
      return bytes.count
    } catch {
      failure = error
      return Int(ARCHIVE_FATAL)
    }
  }

  func skip(_ count: Int64) -> Int64 {
    do throws(KeyhaulError) {
      return try source.skip(count)
    } catch {
      failure = error
      return Int64(ARCHIVE_FATAL)
    }
  }

  func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
    let origin: SeekOrigin = whence == SEEK_SET ? .start : whence == SEEK_CUR ? .current : .end
    do throws(KeyhaulError) {
      return try source.seek(offset, origin) ?? Int64(ARCHIVE_FATAL)
    } catch {
      failure = error
      return Int64(ARCHIVE_FATAL)
    }
  }
}
