import Basics
public import Foundation

/// The files in the repository, for tests that compare the program with them.
public enum Repository {
  /// The directory of the package.
  public static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    .standardizedFileURL
}
