import Foundation
import KeyhaulKit

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
        KeychainDump.mayBegin(with: start) || KeychainDatabase.mayBegin(with: start)
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
