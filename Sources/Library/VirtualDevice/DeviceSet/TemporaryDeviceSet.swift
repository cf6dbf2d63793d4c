public import Basics
import SystemPackage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A temporary folder of devices for demos and tests, which is deleted with its last reference.
///
/// A killed process leaves its folder behind. The next process that creates such a folder in the same parent folder
/// removes the leftover.
public final class TemporaryDeviceSet: Sendable {
  /// The devices in the folder. They are deleted with the last reference to this object.
  public let devices: DeviceSet
  private let lock: LockHolder?

  /// Holds the file lock that shows that the folder is in use.
  private final class LockHolder: Sendable {
    private let lock: FileLock

    init(_ lock: consuming FileLock) { self.lock = lock }
  }

  /// Creates an empty folder.
  ///
  /// - Parameters:
  ///   - environment: The clock, the randomness and the cost of a passcode attempt for the devices.
  ///   - directory: The parent folder, or `nil` to use the system's folder for temporary files.
  /// - Throws: `.deviceIO`.
  public init(environment: DeviceEnvironment = .system, inside directory: String? = nil) throws(KeyhaulError) {
    let parent = directory ?? FileManager.default.temporaryDirectory.path
    Self.removeLeftovers(in: parent)
    var path = ""
    var lock: LockHolder?
    for _ in 0..<Self.attemptCount where lock == nil {
      path = "\(parent)/\(Self.prefix)\(UUID().uuidString)"
      try environment.files.makeDirectory(path)
      // On a file system without locks, the folder is used without a lock.
      do throws(Errno) { lock = try Self.lock(path) } catch { break }
    }
    devices = DeviceSet(path: path, environment: environment)
    self.lock = lock
  }

  /// Acquires the file lock that shows that a folder is in use.
  ///
  /// - Returns: The lock; `nil` if another process is removing the folder as a leftover.
  /// - Throws: The system error if the lock file cannot be locked, for example on a file system without locks.
  private static func lock(_ path: String) throws(Errno) -> LockHolder? {
    let system = FileSystem.real
    // The lock is on a file in the folder, because `DeviceSetLock` locks the folder itself.
    guard let lock = try system.lock(try system.openLockFile("\(path)/\(lockName)"), .exclusive) else { return nil }
    return system.isDirectory(path) ? LockHolder(lock) : nil
  }

  private static let attemptCount = 5
  private static let lockName = ".in-use"
  /// The start of the folders' names. Earlier versions, which did not lock the folder, used other names.
  private static let prefix = "keyhaul-devices-"
  private static let cleanedParents = Locked<Set<String>>([])

  /// Removes the folders of killed processes, once per parent folder.
  private static func removeLeftovers(in parent: String) {
    let system = FileSystem.real
    guard cleanedParents.withLock({ $0.insert(parent).inserted }), let directory = try? system.openDirectory(parent),
      let names = try? system.names(in: directory)
    else { return }
    for name in names {
      // A name from the system ends with a NUL.
      let text = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      guard isFolderName(text), let status = try? system.status(of: name, in: directory),
        status.kind == .directory, status.belongsToCurrentUser,
        let leftover = try? system.openDirectory(name, in: directory),
        let lockFile = try? system.openForReading(lockName, in: leftover), system.claim(lockFile)
      else { continue }
      try? system.removeTree(name, in: directory)
    }
  }

  private static func isFolderName(_ name: String) -> Bool {
    name.hasPrefix(prefix) && UUID(uuidString: String(name.dropFirst(prefix.count))) != nil
  }

  deinit {
    SessionCache.shared.close(below: devices.path)
    try? DeviceFiles().removeTree(devices.path)
  }
}
