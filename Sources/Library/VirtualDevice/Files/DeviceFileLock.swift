import Basics
import KeychainFormats
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The access of a session to its device.
public enum DeviceAccess: Sendable, Hashable {
  /// Shared with other readers.
  case reading
  /// Exclusive.
  case writing
}

/// A session's lock on a device: `flock` on the file `lock`, which the system releases when the process ends.
///
/// The file also describes the holder (process, command, start) for error messages. The lock does not depend on this
/// description, so the description of a dead process has no effect.
struct DeviceFileLock: ~Copyable {
  private let lock: FileLock
  private let access: DeviceAccess
  private let files: DeviceFiles
  /// The description of the holder that was written to the file.
  private var holderDescription: [UInt8] = []

  private init(_ lock: consuming FileLock, _ access: DeviceAccess, _ files: DeviceFiles) {
    self.lock = lock
    self.access = access
    self.files = files
  }

  /// Removes the description of a reader, if it is still there. Otherwise, if other readers still hold the lock and this
  /// process waits for write access, the error would name this process.
  deinit {
    guard access == .reading, (try? lock.contains(holderDescription, files.system)) == true else { return }
    try? lock.replaceContents(with: [], files.system)
  }

  /// Acquires the lock, waiting for at most `limit`. Waiting processes take turns. A process that does not wait
  /// gets the lock only if it is free.
  ///
  /// - Throws: `.deviceBusy` with the holder; `.deviceNotFound` if the folder is missing; `.deviceIO`.
  static func acquire(
    _ directory: String, device: String, access: DeviceAccess, verb: String, wait limit: Duration, clock: DeviceClock,
    _ files: DeviceFiles
  ) throws(KeyhaulError) -> DeviceFileLock {
    let path = DeviceFile.lock.path(in: directory)
    let canWait = limit > .zero
    var timeout = LockTimeout(atMost: limit, clock)
    var ticket: LockQueueTicket?
    while true {
      if canWait, ticket == nil { ticket = try LockQueueTicket.acquire(directory, device: device, files) }
      let isFirst = ticket != nil
      // A process behind the first one waits for its turn, but not if the first one has stopped.
      if isFirst || !canWait || timeout.waited >= LockQueueTicket.maximumPrecedence {
        if var lock = try attempt(path, device: device, access: access, files) {
          lock.announce(verb: verb, since: clock.now())
          return lock
        }
      }
      let pause = isFirst ? LockQueueTicket.pauseWithTicket(after: timeout.waited) : LockQueueTicket.pause
      guard timeout.pause(pause) else {
        throw KeyhaulError(.deviceBusy, device, holder(path, now: clock.now(), files))
      }
    }
  }

  /// Returns the error for a file or folder of a device that cannot be opened.
  static func openingFailure(_ errno: Errno, _ path: String, device: String) -> KeyhaulError {
    guard errno.isNotFound else { return DeviceFiles.failure("open", path, errno) }
    return KeyhaulError(.deviceNotFound, device, "its folder is missing")
  }

  /// Tries once to lock the file at a path.
  ///
  /// - Returns: The lock; `nil` if a conflicting lock is held, or if the file at the path was replaced in the meantime.
  private static func attempt(
    _ path: String, device: String, access: DeviceAccess, _ files: DeviceFiles
  ) throws(KeyhaulError) -> DeviceFileLock? {
    let system = files.system
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try system.openLockFile(path)
    } catch {
      throw openingFailure(error, path, device: device)
    }
    do throws(Errno) {
      try system.setPermissions(0o600, of: file)
      guard let lock = try system.lock(file, access == .reading ? .shared : .exclusive) else { return nil }
      // If the device was deleted in the meantime, the locked file no longer has a path.
      let lockedFile = try system.status(of: lock.file.raw)
      guard try system.status(of: path)?.isSame(as: lockedFile) == true else { return nil }
      return DeviceFileLock(lock, access, files)
    } catch {
      throw DeviceFiles.failure("lock", path, error)
    }
  }

  private mutating func announce(verb: String, since: KeychainDate) {
    var object = JSONObject()
    object["pid"] = .integer(Int64(getpid()))
    object["verb"] = .string(verb)
    object["since"] = .string(Timestamp.text(of: since))
    holderDescription = JSONValue.sorted(object).bytes()
    // The description is only for messages. If it cannot be written, the lock still works.
    try? lock.replaceContents(with: holderDescription, files.system)
  }

  /// Returns a description of the lock's holder, or a general text if the file contains none.
  private static func holder(_ path: String, now: KeychainDate, _ files: DeviceFiles) -> String {
    guard let bytes = try? files.read(path, atMost: DeviceFile.lock.sizeLimit),
      let object = (try? JSONValue(parsing: bytes))?.objectValue, let number = object["pid"]?.integerValue,
      let process = pid_t(exactly: number), isRunning(process)
    else { return "another process is using it" }
    // Any process can write the file, so the command is restricted to printable ASCII.
    let verb = (object["verb"]?.stringValue ?? "").unicodeScalars.filter { (" "..."~").contains($0) }
      .prefix(maximumVerbLength)
    var text = "process \(process)"
    if !verb.isEmpty { text += " (\(String(String.UnicodeScalarView(verb))))" }
    guard let since = object["since"]?.stringValue.flatMap(Timestamp.date(from:)) else { return text + " uses it" }
    let seconds = max(0, now.secondsSinceReferenceDate - since.secondsSinceReferenceDate).rounded(.down)
    return text + " has used it for \(Int(min(seconds, 1e9))) s"
  }

  private static let maximumVerbLength = 40

  /// Returns whether a process exists, even if it belongs to another user.
  private static func isRunning(_ process: pid_t) -> Bool {
    process > 0 && (kill(process, 0) == 0 || errno == EPERM)
  }
}
