package import SystemPackage

/// Opens and creates files and directories.
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
    try openEntry(name, in: parent, [.directory, .noFollow, .closeOnExec])
  }

  /// Opens the directory that a link in a directory from the user leads to. The target may be elsewhere.
  package func openLinkedDirectory(_ name: Name, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    try openEntry(name, in: parent, [.directory, .closeOnExec])
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
    try openEntry(name, in: parent, [.nonBlocking, .noFollow, .closeOnExec])
  }

  private func openEntry(
    _ name: SystemCalls.Name, in parent: borrowing OwnedFileDescriptor, _ options: FileDescriptor.OpenOptions
  ) throws(Errno) -> OwnedFileDescriptor {
    let raw = parent.raw
    return OwnedFileDescriptor(try perform(.open) { _ in try SystemCalls.open(name, in: raw, .readOnly, options) })
  }

  /// Opens one of Keyhaul's own files for reading by its full path. Fails with ELOOP for a link. Does not wait if a pipe has
  /// no writer.
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
