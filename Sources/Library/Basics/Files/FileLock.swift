package import SystemPackage

/// A lock on a file or directory (`flock`), held until the value is destroyed or the process ends.
///
/// The lock belongs to the open file, not to a descriptor. A child process has copies of all descriptors until it runs
/// its program, so closing the descriptor would leave the lock with the child. The lock is therefore released
/// explicitly.
/// Source: flock(2).
package struct FileLock: ~Copyable, Sendable {
  package enum Kind { case shared, exclusive }

  package let file: OwnedFileDescriptor

  fileprivate init(_ file: consuming OwnedFileDescriptor) { self.file = file }

  deinit { SystemCalls.unlock(file.raw) }

  /// Releases the lock early, because other threads may keep a reference to its owner for a moment longer.
  package borrowing func release() { SystemCalls.unlock(file.raw) }

  /// Replaces the contents of the locked file.
  ///
  /// The file is not truncated before it is written: ext4 writes a truncated file to the disk as soon as it is closed,
  /// which takes time. If writing fails, the file is empty.
  /// Source: ext4(5), `auto_da_alloc`.
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

  /// Returns whether the locked file contains exactly these bytes.
  package borrowing func contains(_ bytes: [UInt8], _ system: FileSystem) throws(Errno) -> Bool {
    // One more byte shows whether the file is longer.
    var content = [UInt8](repeating: 0, count: bytes.count + 1)
    let raw = file.raw
    let count = try content.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
      try system.read(raw, at: 0, into: UnsafeMutableRawBufferPointer(buffer))
    }
    return content.prefix(count).elementsEqual(bytes)
  }
}

extension FileSystem {
  /// Locks a file without waiting.
  ///
  /// - Parameters:
  ///   - file: The open file; closed if it is not locked.
  ///   - kind: Whether other processes may also lock the file.
  /// - Returns: The lock, or `nil` if another process has a conflicting one.
  package func lock(_ file: consuming OwnedFileDescriptor, _ kind: FileLock.Kind) throws(Errno) -> FileLock? {
    guard try tryLock(file.raw, kind) else { return nil }
    return FileLock(file)
  }

  /// Marks a file or directory as being written, until the descriptor is closed.
  ///
  /// - Returns: Whether it is now marked. `false` if another process has marked it, and on a file system without locks.
  package func claim(_ file: borrowing OwnedFileDescriptor) -> Bool { (try? tryLock(file.raw, .exclusive)) == true }

  /// Removes the mark of `claim(_:)`, even if a starting child process has a copy of the descriptor.
  package func unclaim(_ file: borrowing OwnedFileDescriptor) { SystemCalls.unlock(file.raw) }

  /// Locks a file without waiting.
  ///
  /// - Returns: Whether the file is now locked; `false` if another process has a conflicting lock.
  private func tryLock(_ file: FileDescriptor, _ kind: FileLock.Kind) throws(Errno) -> Bool {
    do throws(Errno) {
      try perform(.lock, omitted: ()) { _ in try SystemCalls.lock(file, isShared: kind == .shared) }
      return true
    } catch {
      guard error == .wouldBlock else { throw error }
      return false
    }
  }

  /// Opens a file that exists only to be locked. If it does not exist, creates one that only its owner can access.
  package func openLockFile(_ path: String) throws(Errno) -> OwnedFileDescriptor {
    OwnedFileDescriptor(
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
    case lockedElsewhere
    /// The path does not lead to a file or folder that can be locked, or the file system has no locks.
    case unavailable
  }

  /// Locks the file or directory at a path that the user entered, without waiting. Links are followed, so the lock
  /// applies under every name of the file.
  package func lock(at path: String, _ kind: FileLock.Kind) throws(Errno) -> PathLock {
    // Another process may replace the file before it is locked. The next attempt then locks the new file.
    for _ in 0..<Self.maximumAttemptCount {
      switch try lockOnce(at: path, kind) {
      case .some(let lock): return lock
      case .none: continue
      }
    }
    return .lockedElsewhere
  }

  /// The number of times that another process may replace the file before it counts as locked.
  private static let maximumAttemptCount = 1000

  /// Opens and locks the file or directory at a path.
  ///
  /// - Returns: The lock, or `nil` if the path now leads to a different file from the locked one.
  private func lockOnce(at path: String, _ kind: FileLock.Kind) throws(Errno) -> PathLock? {
    // A pipe is not opened, because closing it again would interrupt its writer.
    guard let status = try status(of: path, followsLink: true), status.kind == .file || status.kind == .directory else {
      return .unavailable
    }
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try openForReading(path)
    } catch {
      guard error == .permissionDenied || error.isNotFound else { throw error }
      return .unavailable
    }
    do throws(Errno) {
      guard let lock = try lock(file, kind) else { return .lockedElsewhere }
      let isSame = try self.status(of: path, followsLink: true)?.isSame(as: self.status(of: lock.file.raw)) == true
      return isSame ? .locked(lock) : nil
    } catch {
      guard Self.unsupportedErrors.contains(error) else { throw error }
      return .unavailable
    }
  }

  /// The errors of a file system that has no locks, or that locks only files open for writing.
  ///
  /// Source: flock(2), "NFS details".
  private static let unsupportedErrors: [Errno] = [
    .notSupported, .noLocks, .badFileDescriptor, .invalidArgument, .noFunction,
  ]
}

/// A wait for another process's lock, up to a limit.
///
/// The wait is the sum of the requested pauses or the measured time, whichever is longer. A test does not really sleep,
/// and a busy machine sleeps longer than requested.
package struct LockTimeout {
  private let limit: Duration
  private let sleep: (Duration) -> Void
  private let shouldContinue: () -> Bool
  private let start = ContinuousClock.now
  private var slept = Duration.zero

  /// Creates a wait that has not begun.
  ///
  /// - Parameters:
  ///   - limit: The maximum time to wait.
  ///   - sleep: Sleeps for a duration, or until a signal arrives.
  ///   - shouldContinue: Returns whether the user still wants to wait.
  package init(
    atMost limit: Duration, sleep: @escaping (Duration) -> Void = Self.sleepOnThread,
    shouldContinue: @escaping () -> Bool
  ) {
    self.limit = limit
    self.sleep = sleep
    self.shouldContinue = shouldContinue
  }

  package var waited: Duration { max(slept, start.duration(to: .now)) }

  /// Sleeps for a duration, or for the remaining time if that is shorter.
  ///
  /// - Returns: `false` if the limit is reached or the user no longer wants to wait.
  package mutating func pause(_ duration: Duration) -> Bool {
    let remaining = limit - waited
    guard remaining > .zero, shouldContinue() else { return false }
    let pause = min(duration, remaining)
    sleep(pause)
    slept += pause
    return true
  }

  package static func sleepOnThread(_ duration: Duration) { SystemCalls.sleep(duration) }
}
