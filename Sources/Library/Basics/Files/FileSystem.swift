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
  /// Opens a directory at a path from the user; follows links.
  package func openDirectory(_ path: String) throws(Errno) -> OwnedFileDescriptor {
    OwnedFileDescriptor(
      try perform(.open) { _ in
        try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec], retryOnInterrupt: false)
      })
  }

  package func openDirectory(_ name: Name, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    let raw = parent.raw
    return OwnedFileDescriptor(
      try perform(.open) { _ in
        try SystemCalls.open(name, in: raw, .readOnly, [.directory, .noFollow, .closeOnExec])
      })
  }

  /// Opens the directory that a link leads to, inside a directory from the user.
  package func openLinkedDirectory(_ name: Name, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    let raw = parent.raw
    return OwnedFileDescriptor(
      try perform(.open) { _ in try SystemCalls.open(name, in: raw, .readOnly, [.directory, .closeOnExec]) })
  }

  /// The behavior when opening a pipe without a writer.
  package enum MissingWriter { case returnsAtOnce, waits }

  /// Opens a file from the user for reading; follows links. A terminal does not become this process's controlling
  /// terminal.
  package func openForReading(_ path: String, _ missingWriter: MissingWriter = .returnsAtOnce) throws(Errno)
    -> OwnedFileDescriptor
  {
    let blocking: FileDescriptor.OpenOptions = missingWriter == .waits ? [] : .nonBlocking
    return OwnedFileDescriptor(
      try perform(.open) { _ in
        try FileDescriptor.open(
          path, .readOnly, options: [blocking, .closeOnExec, SystemCalls.noControllingTerminal], retryOnInterrupt: false
        )
      })
  }

  /// Opens an entry of a directory for reading. Fails with ELOOP for a link. Does not wait if a pipe has no writer.
  package func openForReading(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    let raw = parent.raw
    return OwnedFileDescriptor(
      try perform(.open) { _ in
        try SystemCalls.open(name, in: raw, .readOnly, [.nonBlocking, .noFollow, .closeOnExec])
      })
  }

  /// Opens one of Keyhaul's own files for reading by its full path, with the same restrictions as an entry of a
  /// directory.
  package func openOwnFile(_ path: String) throws(Errno) -> OwnedFileDescriptor {
    OwnedFileDescriptor(
      try perform(.open) { _ in
        try FileDescriptor.open(
          path, .readOnly, options: [.nonBlocking, .noFollow, .closeOnExec], retryOnInterrupt: false)
      })
  }

  /// Creates a file that does not exist yet. Only its owner can access it.
  package func createFile(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) -> OwnedFileDescriptor
  {
    let raw = parent.raw
    return OwnedFileDescriptor(
      try perform(.create) { _ in
        try SystemCalls.open(
          name, in: raw, .writeOnly, [.create, .exclusiveCreate, .noFollow, .closeOnExec], permissions: 0o600)
      })
  }

  /// Creates a file that does not exist yet at a path. Only its owner can access it.
  package func createFile(_ path: String) throws(Errno) -> OwnedFileDescriptor {
    OwnedFileDescriptor(
      try perform(.create) { _ in
        try SystemCalls.open(
          path, in: SystemCalls.workingDirectory, .writeOnly, [.create, .exclusiveCreate, .noFollow, .closeOnExec],
          permissions: 0o600)
      })
  }

  /// Opens a file from the user for reading, and for appending at its current end. If there is no file, creates one
  /// that only its owner can access. Fails with ELOOP for a link. Does not wait if a pipe has no writer.
  package func openForAppending(_ path: String) throws(Errno) -> OwnedFileDescriptor {
    OwnedFileDescriptor(
      try perform(.create) { _ in
        try FileDescriptor.open(
          path, .readWrite,
          options: [.create, .append, .nonBlocking, .noFollow, .closeOnExec, SystemCalls.noControllingTerminal],
          permissions: [.ownerReadWrite], retryOnInterrupt: false)
      })
  }

  /// Creates a file that only its owner can access, and unlinks it immediately.
  package func createUnlinkedFile(in directory: String) throws(Errno) -> OwnedFileDescriptor {
    var name: [CChar] = []
    let file = OwnedFileDescriptor(
      try perform(.create) { _ in
        // The call overwrites the Xs, so each attempt needs a new template.
        name = Array("\(directory)/keyhaul-XXXXXX".utf8CString)
        return try SystemCalls.makeFile(&name)
      })
    let raw = file.raw
    try perform(.remove, omitted: ()) { _ in
      try SystemCalls.remove(name, in: SystemCalls.workingDirectory, isDirectory: false)
    }
    // A child process would otherwise inherit the descriptor.
    try perform(.open, omitted: ()) { _ in try SystemCalls.setCloseOnExec(raw) }
    return file
  }
}

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

extension FileSystem {
  package func rename(_ old: String, to new: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, to: new, in: raw) }
  }

  /// Renames a file or directory to a new name that must not exist yet.
  ///
  /// - Throws: `.fileExists` if the name exists. On a file system without such a rename, the name is checked first, and
  ///   a name that appears between the two calls is replaced.
  package func renameToNew(_ old: String, _ new: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    do throws(Errno) {
      try perform(.rename, omitted: ()) { _ in try SystemCalls.renameToNew(old, new, in: raw) }
    } catch {
      guard error == .noFunction || error == .invalidArgument || error == .notSupported else { throw error }
      if try status(of: new.systemName, in: parent) != nil { throw Errno.fileExists }
      try rename(old, to: new, in: parent)
    }
  }

  /// Renames a file, given both paths in full.
  package func rename(_ old: String, to new: String) throws(Errno) {
    try perform(.rename, omitted: ()) { _ in
      try SystemCalls.rename(old, to: new, in: SystemCalls.workingDirectory)
    }
  }

  /// Exchanges two names in one step, if the file system supports it.
  package func exchange(_ first: String, _ second: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.exchange, omitted: ()) { _ in try SystemCalls.exchange(first, second, in: raw) }
  }

  package func makeDirectory(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.makeDirectory, omitted: ()) { _ in try SystemCalls.makeDirectory(name, in: raw, permissions: 0o700) }
  }

  /// Creates a directory at a path, accessible only to its owner regardless of the umask.
  package func makeDirectory(_ path: String) throws(Errno) {
    try perform(.makeDirectory, omitted: ()) { _ in
      try SystemCalls.makeDirectory(path, in: SystemCalls.workingDirectory, permissions: 0o700)
    }
    try setPermissions(0o700, of: path)
  }

  package func remove(_ name: Name, in parent: borrowing OwnedFileDescriptor, isDirectory: Bool) throws(Errno) {
    let raw = parent.raw
    try perform(.remove, omitted: ()) { _ in try SystemCalls.remove(name, in: raw, isDirectory: isDirectory) }
  }

  /// Removes the file or empty directory at a path; does nothing if it does not exist.
  package func remove(_ path: String, isDirectory: Bool = false) throws(Errno) {
    do throws(Errno) {
      try perform(.remove, omitted: ()) { _ in
        try SystemCalls.remove(path, in: SystemCalls.workingDirectory, isDirectory: isDirectory)
      }
    } catch {
      guard error == .noSuchFileOrDirectory else { throw error }
    }
  }

  /// Returns the names in a directory, without `.` and `..`, in no particular order.
  package func names(in directory: borrowing OwnedFileDescriptor) throws(Errno) -> [Name] {
    let raw = directory.raw
    let copy = try perform(.list) { _ in
      try SystemCalls.open(".", in: raw, .readOnly, [.directory, .closeOnExec])
    }
    return try SystemCalls.names(ofClosing: copy)
  }

  /// Removes a file, or a directory with everything in it, without following links. Does nothing if it does not exist.
  package func removeTree(_ name: Name, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    try removeTree(name, in: parent, depth: 0)
  }

  private func removeTree(_ name: Name, in parent: borrowing OwnedFileDescriptor, depth: Int) throws(Errno) {
    guard let status = try status(of: name, in: parent) else { return }
    guard status.kind == .directory else { return try remove(name, in: parent, isDirectory: false) }
    guard depth < Self.maximumTreeDepth else { throw .tooManySymbolicLinkLevels }
    let directory = try openDirectory(name, in: parent)
    for child in try names(in: directory).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      try removeTree(child, in: directory, depth: depth + 1)
    }
    try remove(name, in: parent, isDirectory: true)
  }

  /// The deepest tree that is removed. A backup has two levels, a device one.
  private static let maximumTreeDepth = 64

  /// Removes the remains of a failed or replaced write, and tries once more if a call fails.
  ///
  /// - Returns: Whether nothing is left.
  @discardableResult
  package func discardTree(_ name: String, in parent: borrowing OwnedFileDescriptor) -> Bool {
    for _ in 0..<2 {
      do throws(Errno) {
        try removeTree(name.systemName, in: parent)
        return true
      } catch {
        continue
      }
    }
    return false
  }
}
