import Files
import SystemPackage

/// Held while a device is made in a folder or taken out of it, so that what lies there under a temporary name is known
/// to be left from a crash. The lock is on the folder itself and leaves no file behind.
struct HomeLock: ~Copyable {
  /// Making a device takes well under a second; one from a large fixture, a few.
  static let longestWait = Duration.seconds(30)
  private static let pause = Duration.milliseconds(50)

  private let lock: FileLock

  /// - Throws: `.busy`, `.io`.
  init(_ folder: String, clock: DeviceClock, _ files: DeviceFiles) throws(VirtualDeviceError) {
    var wait = LockWait(atMost: Self.longestWait, clock)
    while true {
      if let lock = try Self.attempt(folder, files) {
        self.lock = lock
        return
      }
      guard wait.pause(Self.pause) else {
        throw VirtualDeviceError(.busy, folder, "another process makes or deletes devices in \(folder)")
      }
    }
  }

  private static func attempt(_ folder: String, _ files: DeviceFiles) throws(VirtualDeviceError) -> FileLock? {
    do throws(Errno) {
      return try files.system.lock(try files.system.openDirectory(folder), .exclusive)
    } catch {
      throw DeviceFiles.failure("lock", folder, error)
    }
  }
}
