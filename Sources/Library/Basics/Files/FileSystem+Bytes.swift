package import SystemPackage

extension FileSystem {
  /// Reads what comes next; 0 at the end.
  package func read(_ file: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try perform(.read, omitted: 0) { isShort in
      try file.read(into: Self.half(of: buffer, isShort), retryOnInterrupt: false)
    }
  }

  /// Reads from a place of a file, wherever its own position is; 0 at the end.
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

  /// Writes every byte, in as many calls as the system takes.
  package func writeAll(_ bytes: UnsafeRawBufferPointer, to file: FileDescriptor) throws(Errno) {
    var written = 0
    while written < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
      let count = try perform(.write, omitted: 0) { isShort in
        let part = isShort ? UnsafeRawBufferPointer(rebasing: rest.prefix((rest.count + 1) / 2)) : rest
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

  /// Moves the place from which a file is read.
  package func seek(_ file: FileDescriptor, to offset: Int64) throws(Errno) {
    try perform(.seek, omitted: 0) { _ in try file.seek(offset: offset, from: .start) }
  }

  /// Asks the disk to keep what was written.
  package func sync(_ file: borrowing Descriptor) throws(Errno) {
    let raw = file.raw
    try perform(.sync, omitted: ()) { _ in try SystemCalls.synchronize(raw) }
  }

  /// Asks the disk to keep a directory's names; file systems that can't be asked are passed over.
  package func syncDirectory(_ directory: borrowing Descriptor) throws(Errno) {
    do throws(Errno) {
      try sync(directory)
    } catch {
      guard error == .notSupported || error == .invalidArgument else { throw error }
    }
  }

  /// Asks the disk to keep every file and name that was handed to it on the file system of a directory: one wait for many
  /// files, where `sync` waits for each.
  package func syncFileSystem(of directory: borrowing Descriptor) throws(Errno) {
    let raw = directory.raw
    try perform(.syncFileSystem, omitted: ()) { _ in try SystemCalls.synchronizeFileSystem(raw) }
  }

  /// Readies what was written to a file or a directory for `syncFileSystem`.
  package func handToDisk(_ file: borrowing Descriptor) throws(Errno) {
    let raw = file.raw
    try perform(.sync, omitted: ()) { _ in try SystemCalls.handToDisk(raw) }
  }

  /// Checks that a file which was written has the length it should, asks the disk to keep it, and closes it.
  package func seal(_ file: consuming Descriptor, byteCount: Int64) throws(Errno) {
    guard try status(of: file.raw).byteCount == byteCount else { throw .ioError }
    try sync(file)
    try file.close(self)
  }
}
