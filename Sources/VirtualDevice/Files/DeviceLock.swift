import KeychainFormats

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
struct DeviceLock: ~Copyable {
  /// How often, and how long each time, a lock is waited for that this very process seems to hold.
  private static let ownPatience = 40
  private static let ownPauseMicroseconds: UInt32 = 5_000

  private let file: CInt

  private init(taking file: CInt) { self.file = file }

  deinit { close(file) }

  /// Takes the lock, waiting for at most `limit`. Those who wait take turns; who does not wait takes what is free.
  ///
  /// - Throws: `.busy` naming the holder; `.notFound` where the folder is gone; `.io`.
  static func acquire(
    _ folder: String, device: String, access: DeviceAccess, verb: String, wait limit: Duration, clock: DeviceClock
  ) throws(VirtualDeviceError) -> DeviceLock {
    let path = DeviceFile.lock.path(in: folder)
    var wait = LockWait(atMost: limit, clock)
    var patience = ownPatience
    var turn: WaitingTurn?
    while true {
      if limit > .zero, turn == nil { turn = try WaitingTurn.take(folder, device: device) }
      let isFirst = turn != nil
      if isFirst || limit <= .zero || wait.waited >= WaitingTurn.longestPrecedence {
        if let lock = try attempt(path, device: device, access: access) {
          lock.announce(verb: verb, since: clock.now())
          return lock
        }
        // A child that this process is just starting holds copies of its descriptors, and so a lock that was let go of,
        // until it runs its program.
        if patience > 0, holderProcess(path) == getpid() {
          patience -= 1
          usleep(ownPauseMicroseconds)
          continue
        }
      }
      guard wait.pause(isFirst ? WaitingTurn.pauseOfFirst(after: wait.waited) : WaitingTurn.pause) else {
        throw VirtualDeviceError(.busy, device, holder(path, now: clock.now()))
      }
    }
  }

  /// Why a file or folder of a device cannot be opened.
  static func openingFailure(_ code: CInt, _ path: String, device: String) -> VirtualDeviceError {
    guard code == ENOENT || code == ENOTDIR else { return FileDoor.failure("open", path, code) }
    return VirtualDeviceError(.notFound, device, "its folder is not there")
  }

  /// - Returns: `nil` where another holds it, or where the file was replaced meanwhile.
  private static func attempt(
    _ path: String, device: String, access: DeviceAccess
  ) throws(VirtualDeviceError) -> DeviceLock? {
    let file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard file >= 0 else { throw openingFailure(errno, path, device: device) }
    let lock = DeviceLock(taking: file)
    guard fchmod(file, 0o600) == 0 else { throw FileDoor.failure("set the mode of", path, errno) }
    var result: CInt
    repeat {
      result = flock(file, (access == .reading ? LOCK_SH : LOCK_EX) | LOCK_NB)
    } while result != 0 && errno == EINTR
    if result != 0 {
      let code = errno
      if code == EWOULDBLOCK { return nil }
      throw FileDoor.failure("lock", path, code)
    }
    // A device that was deleted while this process waited leaves a lock on a file that no longer has a name.
    var held = stat()
    var named = stat()
    guard fstat(file, &held) == 0, lstat(path, &named) == 0, held.st_ino == named.st_ino, held.st_dev == named.st_dev
    else { return nil }
    return lock
  }

  private func announce(verb: String, since: KeychainDate) {
    var object = JSONObject()
    object["pid"] = .integer(Int64(getpid()))
    object["verb"] = .string(verb)
    object["since"] = .string(Timestamp.text(of: since))
    // For people alone: where it cannot be written, the lock holds all the same.
    let bytes = JSONValue.sorted(object).bytes()
    ftruncate(file, 0)
    _ = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
  }

  private static func holderProcess(_ path: String) -> pid_t? {
    guard let bytes = try? FileDoor().read(path, atMost: DeviceFile.lock.sizeLimit),
      let number = (try? JSONValue(parsing: bytes))?.objectValue?["pid"]?.integerValue
    else { return nil }
    return pid_t(exactly: number)
  }

  /// Who holds the lock, as far as the file tells.
  private static func holder(_ path: String, now: KeychainDate) -> String {
    let unknown = "another process holds it"
    guard let bytes = try? FileDoor().read(path, atMost: DeviceFile.lock.sizeLimit),
      let object = (try? JSONValue(parsing: bytes))?.objectValue, let number = object["pid"]?.integerValue,
      let process = pid_t(exactly: number), process > 0, kill(process, 0) == 0 || errno == EPERM
    else { return unknown }
    let verb = (object["verb"]?.stringValue ?? "").unicodeScalars.filter { (" "..."~").contains($0) }.prefix(40)
    var text = "process \(process)"
    if !verb.isEmpty { text += " (\(String(String.UnicodeScalarView(verb))))" }
    guard let since = object["since"]?.stringValue.flatMap(Timestamp.date(from:)) else { return text + " holds it" }
    let seconds = max(0, now.secondsSinceReferenceDate - since.secondsSinceReferenceDate).rounded(.down)
    return text + " has held it for \(Int(min(seconds, 1e9))) s"
  }
}
