import Basics
import Foundation

extension FileSystem {
  /// Returns the names of Keyhaul's files in the temporary directory, which are deleted as soon as they are open.
  static func temporaryFileNames() throws -> Set<String> {
    let names = try FileManager.default.contentsOfDirectory(atPath: temporaryDirectory)
    // `mkstemp` adds six random characters.
    return Set(names.filter { $0.hasPrefix("keyhaul-") && $0.count == "keyhaul-".count + 6 })
  }
}
