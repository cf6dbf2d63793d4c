import Basics
package import Foundation

/// The files in the repository, for tests that compare the program with them.
package enum Repository {
  /// The directory of the package.
  package static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    .standardizedFileURL
}
