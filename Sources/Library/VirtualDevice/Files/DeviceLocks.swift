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

/// How a session holds its device.
public enum DeviceAccess: Sendable, Hashable {
  /// Beside other readers.
  case reading
  /// Alone.
  case writing
}

/// The hold of one session on a device, kept as `flock` on the file `lock`: the system lets go when a process dies.
///
/// What the file says of its holder (process, verb, since when) is for people. The lock itself never depends on it,
/// so that a text left behind by a dead process means nothing.
struct DeviceFileLock: ~Copyable {
  private let lock: FileLock
  private let access: DeviceAccess
  private let files: DeviceFiles
  /// What it has written of its holder.
  private var name: [UInt8] = []

  private init(_ lock: consuming FileLock, _ access: DeviceAccess, _ files: DeviceFiles) {
    self.lock = lock
    self.access = access
    self.files = files
  }

  /// A reader takes its name away where it still stands: others may hold the device beside it, and where this very process
  /// comes back to write, it would be told that it is itself who is in the way.
  deinit {
    guard access == .reading, (try? lock.contains(name, files.system)) == true else { return }
    try? lock.replaceContents(with: [], files.system)
  }

  /// Takes the lock, waiting for at most `limit`. Those who wait take turns; who does not wait takes what is free.
  ///
  /// - Throws: `.deviceBusy` naming the holder; `.deviceNotFound` where the directory is gone; `.deviceIO`.
  static func acquire(
    _ directory: String, device: String, access: DeviceAccess, verb: String, wait limit: Duration, clock: DeviceClock,
    _ files: DeviceFiles
  ) throws(KeyhaulError) -> DeviceFileLock {
    let path = DeviceFile.lock.path(in: directory)
    var wait = LockWait(atMost: limit, clock)
    var turn: WaitingTurn?
    while true {
      if limit > .zero, turn == nil { turn = try WaitingTurn.take(directory, device: device, files) }
      let isFirst = turn != nil
      if isFirst || limit <= .zero || wait.waited >= WaitingTurn.maximumPrecedence {
        if var lock = try attempt(path, device: device, access: access, files) {
          lock.announce(verb: verb, since: clock.now())
          return lock
        }
      }
      guard wait.pause(isFirst ? WaitingTurn.pauseOfFirst(after: wait.waited) : WaitingTurn.pause) else {
        throw KeyhaulError(.deviceBusy, device, holder(path, now: clock.now(), files))
      }
    }
  }

  /// Why a file or directory of a device cannot be opened.
  static func openingFailure(_ reason: Errno, _ path: String, device: String) -> KeyhaulError {
    guard reason.isNotFound else { return DeviceFiles.failure("open", path, reason) }
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
      // A device that was deleted while this process waited leaves a lock on a file that no longer has a name.
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
    name = JSONValue.sorted(object).bytes()
    // For people alone: where it cannot be written, the lock holds all the same.
    try? lock.replaceContents(with: name, files.system)
  }

  /// Who holds the lock, as far as the file tells.
  private static func holder(_ path: String, now: KeychainDate, _ files: DeviceFiles) -> String {
    let unknown = "another process is using it"
    guard let bytes = try? files.read(path, atMost: DeviceFile.lock.sizeLimit),
      let object = (try? JSONValue(parsing: bytes))?.objectValue, let number = object["pid"]?.integerValue,
      let process = pid_t(exactly: number), process > 0, kill(process, 0) == 0 || errno == EPERM
    else { return unknown }
    let verb = (object["verb"]?.stringValue ?? "").unicodeScalars.filter { (" "..."~").contains($0) }.prefix(40)
    var text = "process \(process)"
    if !verb.isEmpty { text += " (\(String(String.UnicodeScalarView(verb))))" }
    guard let since = object["since"]?.stringValue.flatMap(Timestamp.date(from:)) else { return text + " uses it" }
    let seconds = max(0, now.secondsSinceReferenceDate - since.secondsSinceReferenceDate).rounded(.down)
    return text + " has used it for \(Int(min(seconds, 1e9))) s"
  }
}

/// Held while a device is made in a directory or taken out of it, so that what lies there under a temporary name is
/// known to be left from a crash. The lock is on the directory itself and leaves no file behind.
struct HomeLock: ~Copyable {
  /// Making a device takes well under a second; one from a large fixture, a few.
  static let maximumWait = Duration.seconds(30)
  private static let pause = Duration.milliseconds(50)

  private let lock: FileLock

  /// - Throws: `.deviceBusy`, `.deviceIO`.
  init(
    _ directory: String, wait longest: Duration = Self.maximumWait, clock: DeviceClock, _ files: DeviceFiles
  ) throws(KeyhaulError) {
    var wait = LockWait(atMost: longest, clock)
    while true {
      if let lock = try Self.attempt(directory, files) {
        self.lock = lock
        return
      }
      guard wait.pause(Self.pause) else {
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

extension LockWait {
  init(atMost limit: Duration, _ clock: DeviceClock) {
    self.init(atMost: limit, sleep: clock.sleep, shouldContinue: clock.shouldContinue)
  }
}

/// The first place among those who wait for a device: `flock` on the device's directory, which leaves no file behind.
///
/// Whoever has it looks often whether the device is free, and nobody who comes later looks at all. Without it, a
/// process that lets go of a device and wants it back at once always finds it free, and those who sleep in between
/// never do.
struct WaitingTurn: ~Copyable {
  /// For how long those behind the first let it go before them. One that was stopped must not keep a free device from
  /// everybody.
  static let maximumPrecedence = Duration.seconds(1)
  /// How often those behind the first look whether its place is free.
  static let pause = Duration.milliseconds(5)

  private enum Hold: ~Copyable {
    case locked(FileLock)
    /// Where nothing can be locked.
    case nothing
  }

  private let hold: Hold

  private init(_ hold: consuming Hold) { self.hold = hold }

  /// Where the file system locks no directories (NFS, for one), everybody is the first: turns are fair, and nothing
  /// else hangs on them.
  ///
  /// - Returns: `nil` if another waits already.
  /// - Throws: `.deviceNotFound` where the directory is gone; `.deviceIO` where it cannot be opened.
  static func take(
    _ directory: String, device: String, _ files: DeviceFiles
  ) throws(KeyhaulError) -> WaitingTurn? {
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try files.system.openDirectory(directory)
    } catch {
      throw DeviceFileLock.openingFailure(error, directory, device: device)
    }
    do throws(Errno) {
      guard let lock = try files.system.lock(file, .exclusive) else { return nil }
      return WaitingTurn(.locked(lock))
    } catch {
      return WaitingTurn(.nothing)
    }
  }

  /// How long the first sleeps until it looks again: where the others are quick it is too, and a long wait costs little.
  static func pauseOfFirst(after waited: Duration) -> Duration {
    min(max(waited / 16, .milliseconds(1)), .milliseconds(50))
  }
}
