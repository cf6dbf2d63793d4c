import KeyhaulKit
import SystemPackage

/// The folders in which Finder, Apple Devices, iTunes and users of idevicebackup2 keep backups.
///
/// Only these folders are searched, never a whole disk.
///
/// Source: Apple, "Locate backups of your iPhone, iPad, or iPod touch" (support.apple.com/108809). idevicebackup2
/// writes a folder named after the device's identifier into the folder that its user chooses.
enum KnownBackupFolders {
  /// The usual backup folders, relative to a user's home folder.
  static let belowHome = [
    // Finder and iTunes on macOS.
    "Library/Application Support/MobileSync/Backup",
    // Apple Devices, and iTunes from the Microsoft Store.
    "Apple/MobileSync/Backup",
    // iTunes for Windows.
    "AppData/Roaming/Apple Computer/MobileSync/Backup",
    // Users who copied a folder of backups and kept its name.
    "MobileSync/Backup",
  ]
  /// The folder on a macOS or Windows volume that contains the users' home folders.
  private static let usersFolder = "Users"
  /// The maximum number of names that are read in one folder.
  static let maximumNameCount = 1_000

  /// Returns this user's folders that contain backups, and the backups of idevicebackup2 directly in the home folder.
  ///
  /// - Parameter environment: The environment variables. `HOME` names the home folder, and on Windows `USERPROFILE` and
  ///   `APPDATA`.
  static func all(_ environment: [String: String]) -> [String] {
    let homes = ["HOME", "USERPROFILE"].compactMap { absoluteFolder(environment[$0]) }
    let roaming = absoluteFolder(environment["APPDATA"]).map { "\($0)/Apple Computer/MobileSync/Backup" }
    return distinct(homes.flatMap(folders(ofUser:)) + [roaming].compactMap(\.self).filter(containsBackups))
  }

  /// Returns the folders in which Finder, Apple Devices and iTunes keep backups, for a message.
  static func standardFolders(_ environment: [String: String]) -> [String] {
    guard let home = absoluteFolder(environment["HOME"]) else { return [] }
    // The last folder in `belowHome` is a user's copy, which no program creates.
    return belowHome.dropLast().map { "\(home)/\($0)" }
  }

  /// Returns the folders with backups in a home folder, or on a macOS or Windows volume; empty for any other folder.
  static func below(_ path: String) -> [String] {
    let root = absoluteFolder(path) ?? path
    let users = "\(root)/\(usersFolder)"
    let homes = [root] + names(in: users).map { "\(users)/\($0)" }
    let candidates = homes.flatMap { home in belowHome.map { "\(home)/\($0)" } }
    return distinct(candidates.filter(containsBackups))
  }

  /// Returns a user's folders with backups, and single backups, in this order:
  ///
  /// 1. the usual folders that contain backups
  /// 2. other folders in the home folder that contain backups of idevicebackup2
  /// 3. backups of idevicebackup2 that are directly in the home folder
  private static func folders(ofUser home: String) -> [String] {
    let names = names(in: home)
    let usualFolders = belowHome.map { "\(home)/\($0)" }.filter(containsBackups)
    let otherFolders = names.map { "\(home)/\($0)" }.filter { folder in
      Self.names(in: folder).contains { isBackup($0, in: folder) }
    }
    let backups = names.filter { isBackup($0, in: home) }.map { "\(home)/\($0)" }
    return usualFolders + otherFolders + backups
  }

  private static func isBackup(_ name: String, in folder: String) -> Bool {
    BackupDirectory.isDeviceIdentifier(name) && BackupFinder.isBackup("\(folder)/\(name)")
  }

  private static func containsBackups(_ path: String) -> Bool {
    names(in: path).contains { BackupFinder.isBackup("\(path)/\($0)") }
  }

  /// Returns the visible names in a folder, ordered by bytes; empty if it cannot be read.
  private static func names(in path: String) -> [String] {
    guard let directory = try? FileSystem.real.openDirectory(path),
      let names = try? FileSystem.real.names(in: directory)
    else { return [] }
    return names.prefix(maximumNameCount).compactMap(\.validText).filter { !$0.hasPrefix(".") }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Removes duplicate paths.
  private static func distinct(_ paths: [String]) -> [String] {
    var seen: Set<String> = []
    return paths.filter { seen.insert($0).inserted }
  }

  /// Returns a path without trailing slashes; `nil` if it is not absolute.
  private static func absoluteFolder(_ path: String?) -> String? {
    guard var trimmed = path?[...], trimmed.hasPrefix("/") else { return nil }
    while trimmed.utf8.count > 1, trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    return String(trimmed)
  }
}
