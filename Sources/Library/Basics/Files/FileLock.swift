package import SystemPackage

/// A hold on a file or a directory (`flock`), for as long as this lives: the system lets go when a process dies.
///
/// The lock belongs to what was opened, not to a descriptor of it, and a child that is just being started holds copies of
/// all descriptors until it runs its program. So it is given up by name: closing alone would leave it with the child.
/// Source: flock(2).
package struct FileLock: ~Copyable, Sendable {
  package enum Kind { case shared, exclusive }

  package let file: Descriptor

  fileprivate init(_ file: consuming Descriptor) { self.file = file }

  deinit { SystemCalls.unlock(file.raw) }

  /// Gives up the lock before its owner goes: other threads may keep a reference to the owner for a moment longer.
  package borrowing func release() { SystemCalls.unlock(file.raw) }

  /// Puts bytes into the file that is held, in the place of all that was in it.
  ///
  /// It is not made empty before: of a file that was, ext4 begins to write the bytes to the disk once anybody closes it.
  /// Source: ext4(5), `auto_da_alloc`. Where it cannot be written it is empty.
  package borrowing func replaceContents(with bytes: [UInt8], _ system: FileSystem) throws(Errno) {
    let raw = file.raw
    try system.perform(.lock, omitted: ()) { _ in
      do {
        try raw.writeAll(toAbsoluteOffset: 0, bytes)
      } catch {
        try? raw.resize(to: 0, retryOnInterrupt: false)
        throw error
      }
      try raw.resize(to: Int64(bytes.count), retryOnInterrupt: false)
    }
  }

  /// Whether these bytes, and nothing else, are in the file that is held.
  package borrowing func holds(_ bytes: [UInt8], _ system: FileSystem) throws(Errno) -> Bool {
    // One more than that, which shows what follows.
    var found = [UInt8](repeating: 0, count: bytes.count + 1)
    let raw = file.raw
    let count = try found.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
      try system.read(raw, at: 0, into: UnsafeMutableRawBufferPointer(buffer))
    }
    return found.prefix(count).elementsEqual(bytes)
  }
}

extension FileSystem {
  /// Takes a lock without waiting.
  ///
  /// - Parameter file: Closed where it is not locked.
  /// - Returns: `nil` if another holds it.
  package func lock(_ file: consuming Descriptor, _ kind: FileLock.Kind) throws(Errno) -> FileLock? {
    guard try isLocked(file.raw, kind) else { return nil }
    return FileLock(file)
  }

  /// Marks a file or a directory as being written, for as long as the descriptor is open.
  ///
  /// - Returns: Whether nobody else has; always `false` on a file system that knows no such marks.
  package func claim(_ file: borrowing Descriptor) -> Bool { (try? isLocked(file.raw, .exclusive)) == true }

  /// Gives up what `claim` took, also where a child that is just being started holds a copy of the descriptor.
  package func unclaim(_ file: borrowing Descriptor) { SystemCalls.unlock(file.raw) }

  private func isLocked(_ file: FileDescriptor, _ kind: FileLock.Kind) throws(Errno) -> Bool {
    do throws(Errno) {
      try perform(.lock, omitted: ()) { _ in try SystemCalls.lock(file, isShared: kind == .shared) }
      return true
    } catch {
      guard error == .wouldBlock else { throw error }
      return false
    }
  }

  /// Opens a file that is there for nothing but to be locked; one that is not there is made, for its owner alone.
  package func openLockFile(_ path: String) throws(Errno) -> Descriptor {
    Descriptor(
      try perform(.lock) { _ in
        try SystemCalls.open(
          path, in: SystemCalls.workingDirectory, .readWrite, [.create, .noFollow, .closeOnExec, .nonBlocking],
          permissions: 0o600)
      })
  }
}

extension FileSystem {
  /// The result of an attempt to lock the file or directory at a path.
  package enum PathLock: ~Copyable {
    case locked(FileLock)
    /// Another process has a conflicting lock.
    case held
    /// The path does not lead to a file or folder that can be locked, or the file system has no locks.
    case unavailable
  }

  /// Locks the file or directory at a path that the user entered, without waiting. Links are followed, so the lock
  /// applies under every name of the file.
  package func lock(at path: String, _ kind: FileLock.Kind) throws(Errno) -> PathLock {
    // Another process may replace the file between the calls. The new file is then locked.
    for _ in 0..<1000 {
      switch try attempt(at: path, kind) {
      case .some(let lock): return lock
      case .none: continue
      }
    }
    return .held
  }

  /// - Returns: The lock; `nil` if the path now leads to a different file from the locked one.
  private func attempt(at path: String, _ kind: FileLock.Kind) throws(Errno) -> PathLock? {
    // Closing this descriptor would take away a pipe's writer.
    guard let found = try status(of: path, followsLink: true), found.kind == .file || found.kind == .directory else {
      return .unavailable
    }
    let file: Descriptor
    do throws(Errno) {
      file = try openForReading(path)
    } catch {
      guard error == .permissionDenied || error.isAbsence else { throw error }
      return .unavailable
    }
    do throws(Errno) {
      guard let lock = try lock(file, kind) else { return .held }
      let isSame = try status(of: path, followsLink: true)?.isSame(as: status(of: lock.file.raw)) == true
      return isSame ? .locked(lock) : nil
    } catch {
      guard Self.lackOfLocks.contains(error) else { throw error }
      return .unavailable
    }
  }

  /// The errors of a file system that has no locks, or that locks only files open for writing.
  ///
  /// Source: flock(2), "NFS details".
  private static let lackOfLocks: [Errno] = [
    .notSupported, .noLocks, .badFileDescriptor, .invalidArgument, .noFunction,
  ]
}

/// A wait for another process's lock, up to a limit.
///
/// Each pause counts as the requested or the measured time, whichever is longer. A test's clock does not sleep, and a
/// busy machine sleeps longer than requested.
package struct LockWait {
  private let limit: Duration
  private let sleep: (Duration) -> Void
  private let shouldContinue: () -> Bool
  private let start = ContinuousClock.now
  private var slept = Duration.zero

  /// - Parameters:
  ///   - sleep: Sleeps for a duration, or until a signal arrives.
  ///   - shouldContinue: Whether the user still wants to wait.
  package init(
    atMost limit: Duration, sleep: @escaping (Duration) -> Void = Self.sleepOnThread,
    shouldContinue: @escaping () -> Bool
  ) {
    self.limit = limit
    self.sleep = sleep
    self.shouldContinue = shouldContinue
  }

  package var waited: Duration { max(slept, start.duration(to: .now)) }

  /// Sleeps for a duration, or for the rest of the limit if that is shorter.
  ///
  /// - Returns: `false` if the limit is reached or the user no longer wants to wait.
  package mutating func pause(_ duration: Duration) -> Bool {
    let rest = limit - waited
    guard rest > .zero, shouldContinue() else { return false }
    let pause = min(duration, rest)
    sleep(pause)
    slept += pause
    return true
  }

  package static func sleepOnThread(_ duration: Duration) { SystemCalls.sleep(duration) }
}
