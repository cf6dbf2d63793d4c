import Foundation
import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where the keychain is that an argument of the command line means.
enum KeychainPlace: Equatable, Sendable {
  /// A virtual device, by its name and its directory.
  case device(name: String, directory: String)
  /// A backup: a directory or one file. Its content decides what it is, not its name.
  case archive(path: String)
  /// A file that may be another tool's dump of a keychain, or its database, as its first bytes say.
  case dump(path: String)
  /// A stream on standard input.
  case standardInput
}

/// What stands at a path, as far as an argument's meaning depends on it.
enum PathContent: Equatable, Sendable {
  case absent
  case file
  /// A file that begins as a property list, as JSON, as an SQLite database or as a macOS file keychain, which no backup in one
  /// file does.
  case structured
  /// A directory that no backup is and a keychain's database lies in: a Simulator's, at any of its levels.
  case databaseDirectory(databases: [String])
  case device
  /// A directory that is not a virtual device.
  case directory

  /// Looks, links followed.
  init(of path: String) {
    var isDirectory: ObjCBool = false
    let files = FileManager.default
    guard files.fileExists(atPath: path, isDirectory: &isDirectory) else {
      self = .absent
      return
    }
    guard isDirectory.boolValue else {
      let start = InputFile.start(of: path, byteCount: KeychainDump.signatureByteCount)
      let isStructured =
        KeychainDump.hasSignature(start) || KeychainDatabase.hasSignature(start)
        || FileKeychain.begins(with: start)
      self = isStructured ? .structured : .file
      return
    }
    if files.fileExists(atPath: path + "/device.json") {
      self = .device
    } else {
      let databases = KeychainDatabasePlace.databases(in: path)
      self = databases.isEmpty ? .directory : .databaseDirectory(databases: databases)
    }
  }
}

/// Where a keychain's own database lies in a directory.
///
/// Source: Apple `SecFileLocations.c`, `SecKnownFilePaths.m`: `Library/Keychains` in the home of a Simulator's device, which
/// is its directory `data`.
enum KeychainDatabasePlace {
  private static let directories = ["", "/data/Library/Keychains", "/Library/Keychains"]
  private static let names = ["keychain-2-debug.db", "keychain-2.db"]
  /// What a backup has at its top, whatever else lies there.
  private static let backupFiles = ["Manifest.plist", "Manifest.db", "Manifest.mbdb", "Info.plist"]

  /// The databases of the first place in a directory that has any; none in a backup.
  static func databases(in directory: String) -> [String] {
    let files = FileManager.default
    guard !backupFiles.contains(where: { files.fileExists(atPath: "\(directory)/\($0)") }) else { return [] }
    let base = directory.hasSuffix("/") ? String(directory.dropLast()) : directory
    let places = directories.lazy.map { place in
      names.map { "\(base)\(place)/\($0)" }.filter { files.fileExists(atPath: $0) }
    }
    return places.first { !$0.isEmpty } ?? []
  }
}
