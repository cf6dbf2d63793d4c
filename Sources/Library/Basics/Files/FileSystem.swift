package import SystemPackage

/// All access to the file system, except SQLite's own.
///
/// Tests can make every call fail, to interrupt a change at each of its steps. Calls that a signal interrupts are
/// repeated. A link at the end of a path is followed only in a path that the user entered.
package struct FileSystem: Sendable {
  /// A kind of system call.
  package enum Call: String, Sendable, Hashable, CaseIterable {
    case open, create, read, write, sync, syncFileSystem, close, rename, exchange, makeDirectory, permissions, remove,
      list, status, seek
    case lock, link
    /// A change that SQLite makes on its own.
    case database
  }

  /// A failure that a test injects into a call.
  package enum InjectedFault: Sendable, Hashable {
    /// The call fails for this reason and has no effect.
    case failure(Errno)
    /// A read or write handles only the first half of its bytes.
    case short
    /// The call has no effect but reports success, like `fsync` on a disk that does not sync. A call that opens
    /// something is still made.
    case omitted
  }

  /// Called before each call. Returns the fault to inject, or `nil` to make the call.
  private let intercept: (@Sendable (Call) -> InjectedFault?)?

  package static let real = FileSystem(intercept: nil)

  package init(faults: @escaping @Sendable (Call) -> InjectedFault?) { self.init(intercept: faults) }

  private init(intercept: (@Sendable (Call) -> InjectedFault?)?) { self.intercept = intercept }

  /// Makes a call, and repeats it while signals interrupt it.
  ///
  /// - Parameters:
  ///   - call: The kind of call, for injected faults.
  ///   - omitted: The result if a test omits the call (`InjectedFault.omitted`); `nil` if the call is made even then.
  ///   - body: Makes the call; throws only `Errno`.
  @discardableResult
  func perform<Value>(
    _ call: Call, omitted: Value? = nil, _ body: (_ isShort: Bool) throws -> Value
  ) throws(Errno) -> Value {
    while true {
      var isShort = false
      switch intercept?(call) {
      case .failure(.interrupted): continue
      case .failure(let reason): throw reason
      case .short: isShort = true
      case .omitted: if let omitted { return omitted }
      case nil: break
      }
      do {
        return try body(isShort)
      } catch {
        let reason = error as? Errno ?? .ioError
        if reason != .interrupted { throw reason }
      }
    }
  }

  /// Returns the error to inject into a call that must still take effect, such as `close`.
  func fault(in call: Call) -> Errno? {
    if case .failure(let reason) = intercept?(call), reason != .interrupted { reason } else { nil }
  }

  /// Announces a change that SQLite is about to make on its own, so that a test can prevent it.
  package func announceDatabaseChange() throws(Errno) { try perform(.database, omitted: ()) { _ in } }

  /// The directory for temporary files: `TMPDIR`, or else `/tmp`.
  package static var temporaryDirectory: String { SystemCalls.temporaryDirectory }
}

extension FileSystem {
  /// A file name as the system stores it: bytes with a NUL at the end, not always UTF-8.
  package typealias Name = [CChar]
}

extension String {
  package var systemName: FileSystem.Name { Array(utf8CString) }
}

extension FileSystem.Name {
  private var bytes: [UInt8] { dropLast().map { UInt8(bitPattern: $0) } }

  /// The name as text, or `nil` if it is not UTF-8.
  package var validText: String? { String(validating: bytes, as: UTF8.self) }

  /// The name for display and comparison; bytes that are not UTF-8 are replaced.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// Finds and removes the entries that interrupted writes left.
extension FileSystem {
  /// An entry that an interrupted process left next to a destination.
  package struct Leftover {
    package let name: String
    package let status: FileStatus
  }

  /// Calls a closure for each file or directory that a killed process left next to a destination. Such an entry has a
  /// temporary name and belongs to the current user.
  ///
  /// Entries that cannot be read are skipped, and so are entries that a running process is writing and has locked.
  ///
  /// - Parameters:
  ///   - destination: The destination.
  ///   - parent: The directory of the destination.
  ///   - body: Called with an entry and its directory.
  /// - Throws: The system's error if the directory cannot be listed.
  package func forEachLeftover(
    of destination: DestinationPath, in parent: borrowing OwnedFileDescriptor,
    _ body: (_ leftover: Leftover, _ parent: borrowing OwnedFileDescriptor) -> Void
  ) throws(Errno) {
    for bytes in try names(in: parent) {
      guard let name = bytes.validText, destination.isSibling(name), let file = try? openForReading(name, in: parent),
        let status = try? status(of: file.raw), status.kind == .file || status.kind == .directory,
        status.belongsToCurrentUser,
        claim(file)
      else { continue }
      defer { unclaim(file) }
      body(Leftover(name: name, status: status), parent)
    }
  }

  /// Removes the temporary files or directories that interrupted writes left, but no replaced originals.
  ///
  /// - Parameters:
  ///   - destination: The destination of the writes.
  ///   - kind: The kind of entry to remove.
  ///   - parent: The directory of the destination.
  ///   - keeping: Returns whether to keep an entry because another process may have put something into it.
  package func removeLeftovers(
    of destination: DestinationPath, _ kind: FileStatus.Kind, in parent: borrowing OwnedFileDescriptor,
    keeping: (_ name: Name, _ parent: borrowing OwnedFileDescriptor) -> Bool = { _, _ in false }
  ) {
    try? forEachLeftover(of: destination, in: parent) { leftover, parent in
      guard destination.isTemporarySibling(leftover.name), leftover.status.kind == kind,
        !keeping(leftover.name.systemName, parent)
      else { return }
      try? removeTree(leftover.name.systemName, in: parent)
    }
  }
}

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

  /// Returns the first half of a buffer if a test shortens the call, otherwise the complete buffer.
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
