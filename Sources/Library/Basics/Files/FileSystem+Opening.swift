package import SystemPackage

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

  /// Opens a file of the user's for reading, and for writing at its end, wherever that is by then; where there is none, one
  /// is made for its owner alone. A link is followed, a pipe without a writer does not wait.
  package func openForAppending(_ path: String) throws(Errno) -> Descriptor {
    Descriptor(
      try perform(.create) { _ in
        try FileDescriptor.open(
          path, .readWrite, options: [.create, .append, .nonBlocking, .closeOnExec, SystemCalls.noTerminal],
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
