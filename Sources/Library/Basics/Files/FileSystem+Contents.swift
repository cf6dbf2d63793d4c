package import SystemPackage

/// Reads, writes and syncs open files.
extension FileSystem {
  /// Reads the next bytes; returns 0 at the end of the file.
  package func read(_ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try perform(.read, omitted: 0) { isShort in
      try file.read(into: Self.half(of: buffer, isShort), retryOnInterrupt: false)
    }
  }

  /// Reads from an offset of a file, independently of its current position; returns 0 at the end of the file.
  package func read(
    _ file: FileDescriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try perform(.read, omitted: 0) { isShort in
      try file.read(fromAbsoluteOffset: offset, into: Self.half(of: buffer, isShort), retryOnInterrupt: false)
    }
  }

  private static func half(
    of buffer: UnsafeMutableRawBufferPointer, _ isShort: Bool
  ) -> UnsafeMutableRawBufferPointer {
    isShort ? .init(rebasing: buffer.prefix((buffer.count + 1) / 2)) : buffer
  }

  /// Writes all bytes, in as many calls as needed.
  package func writeAll(_ bytes: UnsafeRawBufferPointer, to file: FileDescriptor) throws(Errno) {
    var written = 0
    while written < bytes.count {
      let remaining = UnsafeRawBufferPointer(rebasing: bytes[written...])
      let count = try perform(.write, omitted: 0) { isShort in
        let part = isShort ? UnsafeRawBufferPointer(rebasing: remaining.prefix((remaining.count + 1) / 2)) : remaining
        return try file.write(part, retryOnInterrupt: false)
      }
      if count == 0 { throw .ioError }
      written += count
    }
  }

  package func writeAll(_ bytes: [UInt8], to file: FileDescriptor) throws(Errno) {
    try bytes.withUnsafeBytes { bytes in
      Result { () throws(Errno) in try writeAll(bytes, to: file) }
    }.get()
  }

  /// Sets the position from which a file is read next.
  package func seek(_ file: FileDescriptor, to offset: Int64) throws(Errno) {
    try perform(.seek, omitted: 0) { _ in try file.seek(offset: offset, from: .start) }
  }

  /// Syncs a file's content to the disk.
  package func sync(_ file: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = file.raw
    try perform(.sync, omitted: ()) { _ in try SystemCalls.synchronize(raw) }
  }

  /// Syncs a directory's entries to the disk; does nothing if the file system does not support it.
  package func syncDirectory(_ directory: borrowing OwnedFileDescriptor) throws(Errno) {
    do throws(Errno) {
      try sync(directory)
    } catch {
      guard error == .notSupported || error == .invalidArgument else { throw error }
    }
  }

  /// Syncs all data that was passed to a directory's file system: one wait for many files, whereas `sync` waits for
  /// each.
  package func syncFileSystem(of directory: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = directory.raw
    try perform(.syncFileSystem, omitted: ()) { _ in try SystemCalls.synchronizeFileSystem(raw) }
  }

  /// Prepares the written content of a file or directory for `syncFileSystem(of:)`. On Apple's systems, the content
  /// moves to the disk's cache; other systems need no preparation.
  package func startWriteback(_ file: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = file.raw
    try perform(.sync, omitted: ()) { _ in try SystemCalls.startWriteback(raw) }
  }

  /// Checks that a written file has the expected size, syncs it, and closes it.
  package func finalize(_ file: consuming OwnedFileDescriptor, expectedByteCount byteCount: Int64) throws(Errno) {
    guard try status(of: file.raw).byteCount == byteCount else { throw .ioError }
    try sync(file)
    try file.close(self)
  }
}
