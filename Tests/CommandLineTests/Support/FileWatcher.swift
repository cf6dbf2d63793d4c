import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Watches directories, and keeps the contents of every file that appears in them, even briefly. To keep them, it creates
/// a hard link to each file.
///
/// A file that is deleted between two scans, or before its first byte is written, is missed.
final class FileWatcher {
  private let linkDirectory: URL
  private let thread: Thread
  private let stopRequest: DispatchSemaphore
  private let completion: DispatchSemaphore

  /// - Parameters:
  ///   - directories: The directories to watch, with their subdirectories, on the file system of `linkDirectory`.
  ///   - linkDirectory: A directory for the links.
  ///   - isWatched: Whether to watch the file or directory at a path relative to the watched directory. For a directory,
  ///     both this path and the path with a slash at its end must be watched.
  init(in directories: [URL], keptIn linkDirectory: URL, where isWatched: @escaping @Sendable (String) -> Bool) throws {
    self.linkDirectory = linkDirectory
    try FileManager.default.createDirectory(at: linkDirectory, withIntermediateDirectories: true)
    let (stopRequest, completion) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    (self.stopRequest, self.completion) = (stopRequest, completion)
    thread = Thread {
      var linked: Set<UInt64> = []
      repeat {
        for directory in directories {
          Self.linkNewFiles(
            of: directory.path + "/", below: "", in: linkDirectory.path, linked: &linked, where: isWatched)
        }
      } while stopRequest.wait(timeout: .now() + .milliseconds(1)) == .timedOut
      completion.signal()
    }
    thread.start()
  }

  /// Creates a hard link to each new file, so that its contents remain when it is deleted.
  ///
  /// - Parameters:
  ///   - subdirectory: A directory in `directory`, with a slash at its end, or an empty string.
  ///   - linked: The inode numbers of the linked files. The links keep the system from reusing these numbers.
  private static func linkNewFiles(
    of directory: String, below subdirectory: String, in linkDirectory: String, linked: inout Set<UInt64>,
    where isWatched: (String) -> Bool
  ) {
    guard let entries = opendir(directory + subdirectory) else { return }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      guard !linked.contains(UInt64(entry.pointee.d_ino)) else { continue }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      let path = subdirectory + name
      guard name != ".", name != "..", isWatched(path) else { continue }
      var status = stat()
      guard lstat(directory + path, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR, isWatched(path + "/") {
        linkNewFiles(of: directory, below: path + "/", in: linkDirectory, linked: &linked, where: isWatched)
      } else if status.st_mode & S_IFMT == S_IFREG, linked.insert(UInt64(status.st_ino)).inserted {
        _ = link(directory + path, "\(linkDirectory)/\(linked.count)-\(path.replacing("/", with: "_"))")
      }
    }
  }

  /// Ends the watch.
  ///
  /// - Returns: The contents of the files, now or when they were deleted.
  func contents() throws -> [String: Data] {
    stopRequest.signal()
    completion.wait()
    var contents: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: linkDirectory.path) {
      contents["the file \(name)"] = try Data(contentsOf: linkDirectory.appending(path: name))
    }
    return contents
  }
}
