import Foundation

/// Where the keychain is that an argument of the command line means.
enum KeychainPlace: Equatable, Sendable {
  /// A virtual device, by its name and its folder.
  case device(name: String, folder: String)
  /// A backup: a folder or one file. Its content decides what it is, not its name.
  case archive(path: String)
  /// A stream on standard input.
  case standardInput
}

/// What stands at a path, as far as an argument's meaning depends on it.
enum PathContent: Equatable, Sendable {
  case absent
  case file
  case device
  /// A folder that is no virtual device.
  case folder

  /// Looks, links followed.
  init(of path: String) {
    var isFolder: ObjCBool = false
    let files = FileManager.default
    guard files.fileExists(atPath: path, isDirectory: &isFolder) else {
      self = .absent
      return
    }
    self = !isFolder.boolValue ? .file : files.fileExists(atPath: path + "/device.json") ? .device : .folder
  }
}
