import Basics
import SystemPackage

/// The first place in the queue for a device, held by an `flock` on the device's folder. No extra file is needed.
///
/// The process with this ticket checks frequently whether the device is free. Later processes only wait for the ticket,
/// and begin to check after `maximumDeferralTime`. Without the queue, a process that releases a device and immediately
/// wants it again would always get it before the processes that sleep.
struct LockQueueTicket: ~Copyable {
  /// The time after which a waiting process ignores the ticket. A stopped process must not block a free device.
  static let maximumDeferralTime = Duration.seconds(1)
  /// The interval at which processes without the ticket try to get it.
  static let pauseWithoutTicket = Duration.milliseconds(5)

  private enum Hold: ~Copyable {
    case locked(FileLock)
    /// The file system does not support the lock.
    case nothing
  }

  private let hold: Hold

  private init(_ hold: consuming Hold) { self.hold = hold }

  /// Takes the first place in the queue. If the file system cannot lock folders (such as NFS), every process is first.
  /// Without the queue, only fairness is lost.
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

  /// Returns how long the ticket's holder pauses between two checks: briefly at first, and longer after a long wait.
  static func pauseWithTicket(after waited: Duration) -> Duration {
    min(max(waited / 16, .milliseconds(1)), .milliseconds(50))
  }
}
