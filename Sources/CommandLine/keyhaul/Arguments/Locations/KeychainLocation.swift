import Foundation
import KeyhaulKit

/// The location of the keychain that an argument names.
enum KeychainLocation: Equatable, Sendable {
  /// A virtual device, with its name and folder.
  case device(name: String, directory: String)
  /// A backup: a folder or one file. It is recognized by its content, not by its name.
  case backup(path: String)
  /// A file that may be a dump or a keychain database, judging by its first bytes.
  case dump(path: String)
  /// A stream on standard input.
  case standardInput
}

/// The kind of file at a path. Kinds are separate only if they change what an argument means.
enum PathContent: Equatable, Sendable {
  case absent
  case file
  /// A file that may be a dump or a keychain database: it begins like a property list, JSON, an SQLite database or a
  /// macOS file keychain. A backup in one file never begins like one of these.
  case possibleDump
  /// A folder with keychain databases that is not a backup: a Simulator's folder, its `data` folder, or the folder that
  /// directly contains the databases.
  case databaseDirectory(databases: [String])
  case device
  /// A folder that is not a virtual device.
  case directory

  /// Determines the kind of file at a path, following links.
  init(of path: String) {
    var isDirectory: ObjCBool = false
    let files = FileManager.default
    guard files.fileExists(atPath: path, isDirectory: &isDirectory) else {
      self = .absent
      return
    }
    guard isDirectory.boolValue else {
      let start = InputFile.start(of: path, byteCount: KeychainDump.signatureByteCount)
      let isPossibleDump =
        KeychainDump.hasSignature(start) || KeychainDatabase.hasSignature(start)
        || FileKeychain.begins(with: start)
      self = isPossibleDump ? .possibleDump : .file
      return
    }
    if files.fileExists(atPath: path + "/device.json") {
      self = .device
    } else {
      let databases = KeychainDatabaseLocation.databases(in: path)
      self = databases.isEmpty ? .directory : .databaseDirectory(databases: databases)
    }
  }
}

/// Finds keychain databases in a folder.
///
/// Source: Apple `SecFileLocations.c`, `SecKnownFilePaths.m`: `Library/Keychains` in the home folder of a Simulator,
/// which is its folder `data`.
enum KeychainDatabaseLocation {
  private static let subdirectories = ["", "/data/Library/Keychains", "/Library/Keychains"]
  private static let databaseNames = ["keychain-2-debug.db", "keychain-2.db"]
  /// The files in the top folder of a backup. A folder with one of them is treated as a backup.
  private static let backupFiles = ["Manifest.plist", "Manifest.db", "Manifest.mbdb", "Info.plist"]

  /// Returns the databases in the first of the usual folders that has any; empty for a backup.
  static func databases(in directory: String) -> [String] {
    let files = FileManager.default
    guard !backupFiles.contains(where: { files.fileExists(atPath: "\(directory)/\($0)") }) else { return [] }
    let base = directory.hasSuffix("/") ? String(directory.dropLast()) : directory
    let databases = subdirectories.lazy.map { subdirectory in
      databaseNames.map { "\(base)\(subdirectory)/\($0)" }.filter { files.fileExists(atPath: $0) }
    }
    return databases.first { !$0.isEmpty } ?? []
  }
}
