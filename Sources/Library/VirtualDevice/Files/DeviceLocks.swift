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

  /// Removes the description of a reader, if it is still there. Others may still hold the lock, and if this process
  /// then waits for write access, the error would name the process itself.
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
    var timeout = LockTimeout(atMost: limit, clock)
    var ticket: LockQueueTicket?
    while true {
      if limit > .zero, ticket == nil { ticket = try LockQueueTicket.acquire(directory, device: device, files) }
      let isFirst = ticket != nil
      if isFirst || limit <= .zero || timeout.waited >= LockQueueTicket.maximumPrecedence {
        if var lock = try attempt(path, device: device, access: access, files) {
          lock.announce(verb: verb, since: clock.now())
          return lock
        }
      }
      guard timeout.pause(isFirst ? LockQueueTicket.pauseWithTicket(after: timeout.waited) : LockQueueTicket.pause)
      else {
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
    let unknown = "another process is using it"
    guard let bytes = try? files.read(path, atMost: DeviceFile.lock.sizeLimit),
      let object = (try? JSONValue(parsing: bytes))?.objectValue, let pid = object["pid"]?.integerValue,
      let process = pid_t(exactly: pid), process > 0, kill(process, 0) == 0 || errno == EPERM
    else { return unknown }
    let verb = (object["verb"]?.stringValue ?? "").unicodeScalars.filter { (" "..."~").contains($0) }.prefix(40)
    var text = "process \(process)"
    if !verb.isEmpty { text += " (\(String(String.UnicodeScalarView(verb))))" }
    guard let since = object["since"]?.stringValue.flatMap(Timestamp.date(from:)) else { return text + " uses it" }
    let seconds = max(0, now.secondsSinceReferenceDate - since.secondsSinceReferenceDate).rounded(.down)
    return text + " has used it for \(Int(min(seconds, 1e9))) s"
  }
}

/// A lock that a process holds while it creates or deletes devices in a folder. Anything with a temporary name that the
/// process then finds was left by a crash. The lock is on the folder itself and creates no file.
struct DeviceSetLock: ~Copyable {
  /// The maximum wait. Creating a device takes less than a second, or a few seconds with a large fixture.
  static let maximumWait = Duration.seconds(30)
  private static let pause = Duration.milliseconds(50)

  private let lock: FileLock

  /// Acquires the lock.
  ///
  /// - Throws: `.deviceBusy` if the wait is too long; `.deviceIO`.
  init(
    _ directory: String, wait longest: Duration = Self.maximumWait, clock: DeviceClock, _ files: DeviceFiles
  ) throws(KeyhaulError) {
    var timeout = LockTimeout(atMost: longest, clock)
    while true {
      if let lock = try Self.attempt(directory, files) {
        self.lock = lock
        return
      }
      guard timeout.pause(Self.pause) else {
        throw KeyhaulError(.deviceBusy, directory, "another process is making or deleting devices in \(directory)")
      }
    }
  }

  private static func attempt(_ directory: String, _ files: DeviceFiles) throws(KeyhaulError) -> FileLock? {
    do throws(Errno) {
      return try files.system.lock(try files.system.openDirectory(directory), .exclusive)
    } catch {
      throw DeviceFiles.failure("lock", directory, error)
    }
  }
}

extension LockTimeout {
  init(atMost limit: Duration, _ clock: DeviceClock) {
    self.init(atMost: limit, sleep: clock.sleep, shouldContinue: clock.shouldContinue)
  }
}

/// The first place in the queue for a device: `flock` on the device's folder, which creates no file.
///
/// The process with this ticket checks frequently whether the device is free, and later processes do not check at all.
/// Without the queue, a process that releases a device and immediately wants it again would always get it, and sleeping
/// processes never would.
struct LockQueueTicket: ~Copyable {
  /// The time after which waiting processes ignore the first one. A stopped process must not block a free device.
  static let maximumPrecedence = Duration.seconds(1)
  /// The interval at which the other processes check for the first place.
  static let pause = Duration.milliseconds(5)

  private enum Hold: ~Copyable {
    case locked(FileLock)
    /// The file system does not support the lock.
    case nothing
  }

  private let hold: Hold

  private init(_ hold: consuming Hold) { self.hold = hold }

  /// Takes the first place in the queue. If the file system cannot lock folders (such as NFS), every process is first:
  /// only fairness depends on the queue.
  ///
  /// - Returns: The ticket, or `nil` if another process has it.
  /// - Throws: `.deviceNotFound` if the folder is missing; `.deviceIO` if it cannot be opened.
  static func acquire(
    _ directory: String, device: String, _ files: DeviceFiles
  ) throws(KeyhaulError) -> LockQueueTicket? {
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try files.system.openDirectory(directory)
    } catch {
      throw DeviceFileLock.openingFailure(error, directory, device: device)
    }
    do throws(Errno) {
      guard let lock = try files.system.lock(file, .exclusive) else { return nil }
      return LockQueueTicket(.locked(lock))
    } catch {
      return LockQueueTicket(.nothing)
    }
  }

  /// Returns the pause between two checks of the first process: short at first, and longer after a long wait.
  static func pauseWithTicket(after waited: Duration) -> Duration {
    min(max(waited / 16, .milliseconds(1)), .milliseconds(50))
  }
}
