#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

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
