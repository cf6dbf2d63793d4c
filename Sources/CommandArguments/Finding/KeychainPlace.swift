import CommandSession
import Foundation
import KeychainDumps

/// Where the keychain is that an argument of the command line means.
enum KeychainPlace: Equatable, Sendable {
  /// A virtual device, by its name and its directory.
  case device(name: String, directory: String)
  /// A backup: a directory or one file. Its content decides what it is, not its name.
  case archive(path: String)
  /// A file that may be another tool's dump of a keychain, as its first bytes say.
  case dump(path: String)
  /// A stream on standard input.
  case standardInput
}

/// What stands at a path, as far as an argument's meaning depends on it.
package enum PathContent: Equatable, Sendable {
  case absent
  case file
  /// A file that begins as a property list or as JSON, which no backup in one file does.
  case structuredText
  case device
  /// A directory that is no virtual device.
  case directory

  /// Looks, links followed.
  package init(of path: String) {
    var isDirectory: ObjCBool = false
    let files = FileManager.default
    guard files.fileExists(atPath: path, isDirectory: &isDirectory) else {
      self = .absent
      return
    }
    guard isDirectory.boolValue else {
      self =
        KeychainDump.mayBegin(with: InputFile.start(of: path, byteCount: KeychainDump.signatureByteCount))
        ? .structuredText : .file
      return
    }
    self = files.fileExists(atPath: path + "/device.json") ? .device : .directory
  }
}
