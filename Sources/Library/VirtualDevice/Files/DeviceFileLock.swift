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

/// The kind of access that a session has to its device.
public enum DeviceAccess: Sendable, Hashable {
  /// Reading, while other sessions may also read.
  case reading
  /// Reading and writing, while no other session has access.
  case writing
}

/// A session's file lock on a device: `flock` on the file `lock`, which the system releases when the process ends.
///
/// The holder writes its process, command and start into the file, for the error messages of other processes. The lock
/// does not depend on this description, so a dead process's description has no effect.
struct DeviceFileLock: ~Copyable {
  private let lock: FileLock
  private let access: DeviceAccess
  private let files: DeviceFiles
  /// The bytes that this holder wrote to the file to describe itself.
  private var holderDescription: [UInt8] = []

  private init(_ lock: consuming FileLock, _ access: DeviceAccess, _ files: DeviceFiles) {
    self.lock = lock
    self.access = access
    self.files = files
  }

  /// Removes this reader's description, unless another reader has replaced it. Other readers may keep the lock, and an
  /// error about them must not name this process.
  deinit {
    guard access == .reading, (try? lock.contains(holderDescription, files.system)) == true else { return }
    try? lock.replaceContents(with: [], files.system)
  }

  /// Acquires the lock, waiting for at most `limit`.
  ///
  /// A waiting process tries to lock the file if it has the queue's ticket, and otherwise tries to get the ticket.
  /// After waiting for a second, it tries to lock the file even without the ticket, because a stopped process may have
  /// it. A process that does not wait tries once, without the queue.
  ///
  /// - Parameters:
  ///   - directory: The path of the device's folder.
  ///   - device: The device's name, for errors.
  ///   - access: The kind of access.
  ///   - command: The command of this process, for the errors of other processes.
  ///   - limit: The maximum wait, or zero to try only once.
  ///   - clock: The device's clock.
  ///   - files: The access to the device's files.
  /// - Throws: `.deviceBusy` with the holder if the lock is not free in time, or the clock ends the wait early;
  ///   `.deviceNotFound` if the folder is missing; `.deviceIO`.
  static func acquire(
    _ directory: String, device: String, access: DeviceAccess, command: String, wait limit: Duration,
    clock: DeviceClock, _ files: DeviceFiles
  ) throws(KeyhaulError) -> DeviceFileLock {
    let path = DeviceFile.lock.path(in: directory)
    let canWait = limit > .zero
    var timeout = LockTimeout(atMost: limit, clock)
    var ticket: LockQueueTicket?
    while true {
      if canWait, ticket == nil { ticket = try LockQueueTicket.acquire(directory, device: device, files) }
      let isFirst = ticket != nil
      // Without the ticket, a waiting process leaves the lock to the ticket's holder, but only for a limited time.
      if isFirst || !canWait || timeout.waited >= LockQueueTicket.maximumDeferralTime {
        if var lock = try attempt(path, device: device, access: access, files) {
          lock.writeHolderDescription(command: command, since: clock.now())
          return lock
        }
      }
      let pause =
        isFirst ? LockQueueTicket.pauseWithTicket(after: timeout.waited) : LockQueueTicket.pauseWithoutTicket
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
  /// - Returns: The lock, or `nil` if another process has a conflicting lock. Also `nil` if the file was deleted or
  ///   replaced after it was opened.
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
      // Another process may delete the device before the file is locked. The path then leads to no file, or to a
      // different one.
      let lockedFile = try system.status(of: lock.file.raw)
      guard try system.status(of: path)?.isSame(as: lockedFile) == true else { return nil }
      return DeviceFileLock(lock, access, files)
    } catch {
      throw DeviceFiles.failure("lock", path, error)
    }
  }

  /// Writes a description of this process to the file.
  private mutating func writeHolderDescription(command: String, since: KeychainDate) {
    var object = JSONObject()
    object["pid"] = .integer(Int64(getpid()))
    object["verb"] = .string(command)
    object["since"] = .string(Timestamp.text(of: since))
    holderDescription = JSONValue.sorted(object).bytes()
    // The description is only for messages. If it cannot be written, the lock still works.
    try? lock.replaceContents(with: holderDescription, files.system)
  }

  /// Returns a text about the lock's holder for an error. It names no process if the file does not
  /// describe a running one.
  private static func holder(_ path: String, now: KeychainDate, _ files: DeviceFiles) -> String {
    guard let bytes = try? files.read(path, atMost: DeviceFile.lock.sizeLimit),
      let object = (try? JSONValue(parsing: bytes))?.objectValue, let number = object["pid"]?.integerValue,
      let process = pid_t(exactly: number), isRunning(process)
    else { return "another process is using it" }
    // Any process can write the file, so the command is restricted to printable ASCII.
    let command = (object["verb"]?.stringValue ?? "").unicodeScalars.filter { (" "..."~").contains($0) }
      .prefix(maximumCommandLength)
    var text = "process \(process)"
    if !command.isEmpty { text += " (\(String(String.UnicodeScalarView(command))))" }
    guard let since = object["since"]?.stringValue.flatMap(Timestamp.date(from:)) else { return text + " uses it" }
    let seconds = max(0, now.secondsSinceReferenceDate - since.secondsSinceReferenceDate).rounded(.down)
    return text + " has used it for \(Int(min(seconds, 1e9))) s"
  }

  /// The maximum length of a command in an error, in characters.
  private static let maximumCommandLength = 40

  /// Returns whether a process exists. EPERM means that it exists but belongs to another user.
  private static func isRunning(_ process: pid_t) -> Bool {
    process > 0 && (kill(process, 0) == 0 || errno == EPERM)
  }
}
