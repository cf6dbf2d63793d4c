package import SystemPackage

/// The one door to the file system. Nothing else of this project calls the system about files, but for SQLite, which has
/// its own.
///
/// Every call can be made to fail from outside, so that tests can break a change at each of its steps. Calls that a
/// signal interrupts are made again. A link is never followed at the last name of a path, except in one that the user
/// typed.
package struct FileSystem: Sendable {
  /// What the system is asked for.
  package enum Call: String, Sendable, Hashable, CaseIterable {
    case open, create, read, write, sync, syncFileSystem, close, rename, exchange, makeDirectory, permissions, remove,
      list, status, seek
    case lock, link
    /// A change that SQLite makes by itself.
    case database
  }

  /// What becomes of a call instead.
  package enum Fault: Sendable, Hashable {
    /// It fails with this reason and has no effect.
    case failure(Errno)
    /// A read or write handles only the first half of its bytes.
    case short
    /// It does nothing and says that it did, as `fsync` does on a disk that lies. A call that opens something is made.
    case omitted
  }

  /// Asked before each call; `nil` lets it through.
  private let intercept: (@Sendable (Call) -> Fault?)?

  package static let real = FileSystem(intercept: nil)

  package init(faults: @escaping @Sendable (Call) -> Fault?) { self.init(intercept: faults) }

  private init(intercept: (@Sendable (Call) -> Fault?)?) { self.intercept = intercept }

  /// Makes one call, again for as long as signals interrupt it.
  ///
  /// - Parameters:
  ///   - omitted: The answer of a call that is not made; `nil` if it has to be.
  ///   - body: Makes the call, and throws `Errno` alone.
  @discardableResult
  func perform<Answer>(
    _ call: Call, omitted: Answer? = nil, _ body: (_ isShort: Bool) throws -> Answer
  ) throws(Errno) -> Answer {
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

  /// A fault that is to be injected into a call whose effect must happen all the same, as with `close`.
  func fault(in call: Call) -> Errno? {
    if case .failure(let reason) = intercept?(call), reason != .interrupted { reason } else { nil }
  }

  /// Says that a change follows which SQLite makes by itself, so that a test can keep it from happening.
  package func announceDatabaseChange() throws(Errno) { try perform(.database, omitted: ()) { _ in } }

  /// Where temporary files go: `TMPDIR`, or else `/tmp`.
  package static var temporaryDirectory: String { SystemCalls.temporaryDirectory }
}

extension FileSystem {
  /// Opens a directory that the user named; links in the path are followed.
  package func openDirectory(_ path: String) throws(Errno) -> Descriptor {
    Descriptor(
      try perform(.open) { _ in
        try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec], retryOnInterrupt: false)
      })
  }

  package func openDirectory(_ name: Name, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      try perform(.open) { _ in
        try SystemCalls.open(name, in: raw, .readOnly, [.directory, .noFollow, .closeOnExec])
      })
  }

  /// Opens the directory that a link in a directory of the user's leads to.
  package func openLinkedDirectory(_ name: Name, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      try perform(.open) { _ in try SystemCalls.open(name, in: raw, .readOnly, [.directory, .closeOnExec]) })
  }

  /// What becomes of a pipe that has no writer.
  package enum MissingWriter { case returnsAtOnce, waits }

  /// Opens what the user named for reading; links in the path are followed. A terminal does not become this program's.
  package func openForReading(_ path: String, _ missingWriter: MissingWriter = .returnsAtOnce) throws(Errno)
    -> Descriptor
  {
    let waiting: FileDescriptor.OpenOptions = missingWriter == .waits ? [] : .nonBlocking
    return Descriptor(
      try perform(.open) { _ in
        try FileDescriptor.open(
          path, .readOnly, options: [waiting, .closeOnExec, SystemCalls.noTerminal], retryOnInterrupt: false)
      })
  }

  /// Opens an entry of a directory for reading. A link fails with ELOOP; a pipe without a writer opens without waiting.
  package func openForReading(_ name: String, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      try perform(.open) { _ in
        try SystemCalls.open(name, in: raw, .readOnly, [.nonBlocking, .noFollow, .closeOnExec])
      })
  }

  /// Opens a file of this project's own for reading, by its whole path, as an entry of a directory is opened.
  package func openOwnFile(_ path: String) throws(Errno) -> Descriptor {
    Descriptor(
      try perform(.open) { _ in
        try FileDescriptor.open(
          path, .readOnly, options: [.nonBlocking, .noFollow, .closeOnExec], retryOnInterrupt: false)
      })
  }

  /// Creates a file that isn't there yet, for its owner alone.
  package func createFile(_ name: String, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      try perform(.create) { _ in
        try SystemCalls.open(
          name, in: raw, .writeOnly, [.create, .exclusiveCreate, .noFollow, .closeOnExec], permissions: 0o600)
      })
  }

  /// The same by its whole path.
  package func createFile(_ path: String) throws(Errno) -> Descriptor {
    Descriptor(
      try perform(.create) { _ in
        try SystemCalls.open(
          path, in: SystemCalls.workingDirectory, .writeOnly, [.create, .exclusiveCreate, .noFollow, .closeOnExec],
          permissions: 0o600)
      })
  }

  /// Opens a user's file for reading, and for appending at its current end. If there is no file, creates one that only
  /// its owner can access. Fails with ELOOP for a link. Does not wait if a pipe has no writer.
  package func openForAppending(_ path: String) throws(Errno) -> Descriptor {
    Descriptor(
      try perform(.create) { _ in
        try FileDescriptor.open(
          path, .readWrite,
          options: [.create, .append, .nonBlocking, .noFollow, .closeOnExec, SystemCalls.noTerminal],
          permissions: [.ownerReadWrite], retryOnInterrupt: false)
      })
  }

  /// Creates a file for its owner alone and takes its name away at once.
  package func createNamelessFile(in directory: String) throws(Errno) -> Descriptor {
    var name: [CChar] = []
    let file = Descriptor(
      try perform(.create) { _ in
        // A call that was interrupted has used its pattern up.
        name = Array("\(directory)/keyhaul-XXXXXX".utf8CString)
        return try SystemCalls.makeFile(&name)
      })
    let raw = file.raw
    try perform(.remove, omitted: ()) { _ in
      try SystemCalls.remove(name, in: SystemCalls.workingDirectory, isDirectory: false)
    }
    // What a child process inherits is not ours alone any more.
    try perform(.open, omitted: ()) { _ in try SystemCalls.keepFromChildren(raw) }
    return file
  }
}

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

extension FileSystem {
  package func rename(_ old: String, to new: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, to: new, in: raw) }
  }

  /// Renames a file or directory to a new name that must not exist yet.
  ///
  /// - Throws: `.fileExists` if the name exists. On a file system without such a rename, the name is checked first. A
  ///   name that appears between the two calls is then replaced.
  package func renameToNew(_ old: String, _ new: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    do throws(Errno) {
      try perform(.rename, omitted: ()) { _ in try SystemCalls.renameToNew(old, new, in: raw) }
    } catch {
      guard error == .noFunction || error == .invalidArgument || error == .notSupported else { throw error }
      if try status(of: new.systemName, in: parent) != nil { throw Errno.fileExists }
      try rename(old, to: new, in: parent)
    }
  }

  /// The same by whole paths.
  package func rename(_ old: String, to new: String) throws(Errno) {
    try perform(.rename, omitted: ()) { _ in
      try SystemCalls.rename(old, to: new, in: SystemCalls.workingDirectory)
    }
  }

  /// Lets two names change places in one step, where the file system can.
  package func exchange(_ first: String, _ second: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.exchange, omitted: ()) { _ in try SystemCalls.exchange(first, second, in: raw) }
  }

  package func makeDirectory(_ name: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.makeDirectory, omitted: ()) { _ in try SystemCalls.makeDirectory(name, in: raw, permissions: 0o700) }
  }

  /// Makes a directory by its whole path, for its owner alone whatever the process's umask is.
  package func makeDirectory(_ path: String) throws(Errno) {
    try perform(.makeDirectory, omitted: ()) { _ in
      try SystemCalls.makeDirectory(path, in: SystemCalls.workingDirectory, permissions: 0o700)
    }
    try setPermissions(0o700, of: path)
  }

  package func remove(_ name: Name, in parent: borrowing Descriptor, isDirectory: Bool) throws(Errno) {
    let raw = parent.raw
    try perform(.remove, omitted: ()) { _ in try SystemCalls.remove(name, in: raw, isDirectory: isDirectory) }
  }

  /// The same by a whole path; what is not there is no failure.
  package func remove(_ path: String, isDirectory: Bool = false) throws(Errno) {
    do throws(Errno) {
      try perform(.remove, omitted: ()) { _ in
        try SystemCalls.remove(path, in: SystemCalls.workingDirectory, isDirectory: isDirectory)
      }
    } catch {
      guard error == .noSuchFileOrDirectory else { throw error }
    }
  }

  /// The names in a directory, without `.` and `..`, in no particular order.
  package func names(in directory: borrowing Descriptor) throws(Errno) -> [Name] {
    let raw = directory.raw
    let copy = try perform(.list) { _ in
      try SystemCalls.open(".", in: raw, .readOnly, [.directory, .closeOnExec])
    }
    return try SystemCalls.names(ofClosing: copy)
  }

  /// Removes a directory's tree without following a link, or a single file. What is gone already is no failure.
  package func removeTree(_ name: Name, in parent: borrowing Descriptor) throws(Errno) {
    try removeTree(name, in: parent, depth: 0)
  }

  private func removeTree(_ name: Name, in parent: borrowing Descriptor, depth: Int) throws(Errno) {
    guard let status = try status(of: name, in: parent) else { return }
    guard status.kind == .directory else { return try remove(name, in: parent, isDirectory: false) }
    guard depth < Self.maximumTreeDepth else { throw .tooManySymbolicLinkLevels }
    let directory = try openDirectory(name, in: parent)
    for child in try names(in: directory).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      try removeTree(child, in: directory, depth: depth + 1)
    }
    try remove(name, in: parent, isDirectory: true)
  }

  /// A backup's directory is two levels deep and a device's one; nobody's is deeper than this.
  private static let maximumTreeDepth = 64

  /// Removes what a failed or replaced write left; a second time where one call failed in between.
  ///
  /// - Returns: Whether nothing is left.
  @discardableResult
  package func discardTree(_ name: String, in parent: borrowing Descriptor) -> Bool {
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
