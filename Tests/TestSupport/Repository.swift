import Basics
public import Foundation

/// The files that are checked in, for tests that hold the program against them.
public enum Repository {
  /// The directory of the package.
  public static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
    .standardizedFileURL
}
