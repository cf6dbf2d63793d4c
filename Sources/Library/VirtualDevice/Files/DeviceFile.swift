import Basics

/// The files in a device's folder.
enum DeviceFile: String, CaseIterable {
  /// The device's identity and counters (`virtual-device/1`).
  case record = "device.json"
  /// The 32 bytes of the simulated hardware UID.
  case hardware = "hardware.uid"
  /// The system keybag.
  case keybag
  /// The class keys in the simulated RAM. Absent before the first unlock.
  case memory
  case keychain = "keychain-2.db"
  /// Locked while a process uses the device.
  case lock
  /// A committed change of several files that is being applied.
  case change
  /// The pairings of a device that is served to backup clients, and the device's RSA key.
  case pairings = "pairings.plist"
  /// The password for backups that clients make.
  case backupPassword = "backup-password"
  /// Locked while a process serves the device.
  case serving

  /// The suffix of a file that is not yet moved to its place.
  static let stagedSuffix = ".next"

  /// The folder in which a client's backup is assembled or restored.
  static let stagingName = "staged"

  func path(in directory: String) -> String { directory + "/" + rawValue }
  func stagedPath(in directory: String) -> String { path(in: directory) + Self.stagedSuffix }

  /// The suffixes of the files that SQLite has beside the keychain database.
  private static let keychainSidecarSuffixes = ["-wal", "-shm", "-journal"]

  /// Returns the paths of the keychain database and of SQLite's files beside it.
  static func keychainPaths(in directory: String) -> [String] {
    let path = keychain.path(in: directory)
    return (keychainSidecarSuffixes + [""]).map { path + $0 }
  }

  /// Returns whether a file name belongs to a device, including temporary names.
  static func isDeviceFile(named name: String) -> Bool {
    name == stagingName || allCases.contains { name == $0.rawValue || name == $0.rawValue + stagedSuffix }
      || keychainSidecarSuffixes.contains { name == keychain.rawValue + $0 }
  }

  /// The largest accepted size in bytes. Real files are much smaller.
  var sizeLimit: Int {
    switch self {
    case .record: 1 << 20
    case .hardware: 32
    case .keybag: 1 << 16
    case .memory: 4096
    case .keychain: Int.max
    case .lock: 4096
    case .change, .serving: 4096
    case .pairings: 4 << 20
    case .backupPassword: 4096
    }
  }
}

extension DeviceFiles {
  func read(_ path: String, _ file: DeviceFile) throws(KeyhaulError) -> [UInt8]? {
    try read(path, atMost: file.sizeLimit)
  }
}
