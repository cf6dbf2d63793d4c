import Basics
import SystemPackage

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
  /// - Returns: `nil` where another waits already.
  /// - Throws: `.notFound` where the directory is gone; `.io` where it cannot be opened.
  static func take(
    _ directory: String, device: String, _ files: DeviceFiles
  ) throws(VirtualDeviceError) -> WaitingTurn? {
    let file: Descriptor
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
