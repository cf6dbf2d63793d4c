#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The first place among those who wait for a device: `flock` on the device's folder, which leaves no file behind.
///
/// Whoever has it looks often whether the device is free, and nobody who comes later looks at all. Without it, a process
/// that lets go of a device and wants it back at once always finds it free, and those who sleep in between never do.
struct WaitingTurn: ~Copyable {
  /// For how long those behind the first let it go before them. One that was stopped must not keep a free device from
  /// everybody.
  static let longestPrecedence = Duration.seconds(1)
  /// How often those behind the first look whether its place is free.
  static let pause = Duration.milliseconds(5)

  private let file: CInt

  private init(taking file: CInt) { self.file = file }

  deinit { close(file) }

  /// Where the file system locks no folders (NFS, for one), everybody is the first: turns are fair, and nothing else hangs
  /// on them.
  ///
  /// - Returns: `nil` where another waits already.
  /// - Throws: `.notFound` where the folder is gone; `.io` where it cannot be opened.
  static func take(_ folder: String, device: String) throws(VirtualDeviceError) -> WaitingTurn? {
    let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw DeviceLock.openingFailure(errno, folder, device: device) }
    let turn = WaitingTurn(taking: file)
    let isTaken = flock(file, LOCK_EX | LOCK_NB) != 0 && [EWOULDBLOCK, EINTR].contains(errno)
    if isTaken { return nil }
    return turn
  }

  /// How long the first sleeps until it looks again: where the others are quick it is too, and a long wait costs little.
  static func pauseOfFirst(after waited: Duration) -> Duration {
    min(max(waited / 16, .milliseconds(1)), .milliseconds(50))
  }
}
