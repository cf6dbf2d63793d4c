import Basics
import SystemPackage

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
