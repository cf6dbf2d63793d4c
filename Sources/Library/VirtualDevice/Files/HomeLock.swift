import Basics
import SystemPackage

/// Held while a device is made in a directory or taken out of it, so that what lies there under a temporary name is
/// known to be left from a crash. The lock is on the directory itself and leaves no file behind.
struct HomeLock: ~Copyable {
  /// Making a device takes well under a second; one from a large fixture, a few.
  static let maximumWait = Duration.seconds(30)
  private static let pause = Duration.milliseconds(50)

  private let lock: FileLock

  /// - Throws: `.busy`, `.io`.
  init(
    _ directory: String, wait longest: Duration = Self.maximumWait, clock: DeviceClock, _ files: DeviceFiles
  ) throws(VirtualDeviceError) {
    var wait = LockWait(atMost: longest, clock)
    while true {
      if let lock = try Self.attempt(directory, files) {
        self.lock = lock
        return
      }
      guard wait.pause(Self.pause) else {
        throw VirtualDeviceError(.busy, directory, "another process makes or deletes devices in \(directory)")
      }
    }
  }

  private static func attempt(_ directory: String, _ files: DeviceFiles) throws(VirtualDeviceError) -> FileLock? {
    do throws(Errno) {
      return try files.system.lock(try files.system.openDirectory(directory), .exclusive)
    } catch {
      throw DeviceFiles.failure("lock", directory, error)
    }
  }
}
