#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Held while a device is made in a folder or taken out of it, so that what lies there under a temporary name is known
/// to be left from a crash. The lock is on the folder itself and leaves no file behind.
struct HomeLock: ~Copyable {
  /// Making a device takes well under a second; one from a large fixture, a few.
  static let longestWait = Duration.seconds(30)
  private static let pause = Duration.milliseconds(50)

  private let file: CInt

  deinit { close(file) }

  /// - Throws: `.busy`, `.io`.
  init(_ folder: String, clock: DeviceClock) throws(VirtualDeviceError) {
    let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw FileDoor.failure("open", folder, errno) }
    var wait = LockWait(atMost: Self.longestWait, clock)
    while flock(file, LOCK_EX | LOCK_NB) != 0 {
      let code = errno
      guard code == EWOULDBLOCK || code == EINTR else {
        close(file)
        throw FileDoor.failure("lock", folder, code)
      }
      guard wait.pause(Self.pause) else {
        close(file)
        throw VirtualDeviceError(.busy, folder, "another process makes or deletes devices in \(folder)")
      }
    }
    self.file = file
  }
}
