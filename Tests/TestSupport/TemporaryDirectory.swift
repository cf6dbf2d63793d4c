import Basics
package import Foundation

/// A new directory that is removed with its contents when its last reference is released.
package final class TemporaryDirectory: Sendable {
  package let url: URL

  package init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "keyhaul-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// Removes the directory at the end of the process, in case it is never released.
  package func removeAtExit() {
    let isFirst = Self.directoriesToRemove.withLock { directories in
      directories.append(url)
      return directories.count == 1
    }
    guard isFirst else { return }
    atexit {
      for directory in TemporaryDirectory.directoriesToRemove.withLock({ $0 }) {
        try? FileManager.default.removeItem(at: directory)
      }
    }
  }

  private static let directoriesToRemove = Locked<[URL]>([])

  package var path: String { url.path(percentEncoded: false) }

  package func url(_ name: String) -> URL { url.appending(path: name) }

  package func path(_ name: String) -> String { url(name).path(percentEncoded: false) }

  /// Writes a file in the directory, and creates its parent directories.
  @discardableResult
  package func write(_ bytes: [UInt8], to name: String) throws -> URL {
    let target = url(name)
    try FileManager.default.createDirectory(at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: target)
    return target
  }

  package func read(_ name: String) throws -> [UInt8] { try Array(Data(contentsOf: url(name))) }
}
