import Foundation

/// Where a keychain's own database lies in a directory.
///
/// Source: Apple `SecFileLocations.c`, `SecKnownFilePaths.m`: `Library/Keychains` in the home of a Simulator's device, which
/// is its directory `data`.
enum KeychainDatabasePlace {
  private static let directories = ["", "/data/Library/Keychains", "/Library/Keychains"]
  private static let names = ["keychain-2-debug.db", "keychain-2.db"]
  /// What a backup has at its top, whatever else lies there.
  private static let backupFiles = ["Manifest.plist", "Manifest.db", "Manifest.mbdb", "Info.plist"]

  /// The database that a directory means; `nil` where there is none, and in a backup.
  static func database(in directory: String) -> String? {
    let files = FileManager.default
    guard !backupFiles.contains(where: { files.fileExists(atPath: "\(directory)/\($0)") }) else { return nil }
    let base = directory.hasSuffix("/") ? String(directory.dropLast()) : directory
    return directories.lazy.flatMap { place in names.map { "\(base)\(place)/\($0)" } }
      .first { files.fileExists(atPath: $0) }
  }
}
