import Basics
import Foundation

extension FileSystem {
  /// Returns the names of Keyhaul's files in the temporary directory, which are deleted as soon as they are open.
  static func temporaryFileNames() throws -> Set<String> {
    Set(
      try FileManager.default.contentsOfDirectory(atPath: temporaryDirectory).filter {
        $0.hasPrefix("keyhaul-") && $0.count == 14
      })
  }
}
