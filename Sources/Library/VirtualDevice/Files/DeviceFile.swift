import Basics

/// The files of a device's directory.
enum DeviceFile: String, CaseIterable {
  /// Who the device is, and its counters (`virtual-device/1`).
  case record = "device.json"
  /// The 32 bytes that play the part of the key fused into the chip.
  case hardware = "hardware.uid"
  /// The system keybag.
  case keybag
  /// The class keys that are in RAM; absent before the first unlock.
  case memory
  case keychain = "keychain-2.db"
  /// Held while a process uses the device.
  case lock
  /// A change of several files that has been decided on and is being carried out.
  case change
  /// The pairings of a device that is served to backup clients, and its RSA key.
  case pairings = "pairings.plist"
  /// The password that backups made by clients get.
  case backupPassword = "backup-password"
  /// Locked while a process serves the device.
  case serving

  /// Marks a file that is written beside its place and not in force yet.
  static let stagedSuffix = ".next"

  /// The directory in which a client's backup is put together or taken apart.
  static let stagingName = "staged"

  func path(in directory: String) -> String { directory + "/" + rawValue }
  func stagedPath(in directory: String) -> String { path(in: directory) + Self.stagedSuffix }

  /// The keychain's database and what SQLite keeps beside it.
  static func keychainPaths(in directory: String) -> [String] {
    let path = keychain.path(in: directory)
    return ["-wal", "-shm", "-journal", ""].map { path + $0 }
  }

  /// Whether a file of a device, or one that is on its way to be, has this name.
  static func isOne(_ name: String) -> Bool {
    name == stagingName || allCases.contains { name == $0.rawValue || name == $0.rawValue + stagedSuffix }
      || ["-wal", "-shm", "-journal"].contains { name == keychain.rawValue + $0 }
  }

  /// The most bytes a file of this name may have; real ones stay far below.
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
