import ArgumentParser
import Foundation
import TestSupport

@testable import keyhaul

/// A session whose streams are files, to see what was said on each.
final class TestSession {
  let directory: URL
  private let temporary: TemporaryDirectory
  let session: Session
  private let output: FileHandle
  private let errors: FileHandle

  init(_ flags: [String] = [], environment: [String: String] = [:], terminalPath: String = "/nonexistent/tty") throws {
    let directory = try TemporaryDirectory()
    (temporary, self.directory) = (directory, directory.url)
    func stream(_ name: String) throws -> FileHandle {
      try FileHandle(forWritingTo: try directory.write([], to: name))
    }
    output = try stream("output")
    errors = try stream("errors")
    session = Session(
      common: try CommonOptions.parse(flags), environment: ["LC_ALL": "C.UTF-8"].merging(environment) { $1 },
      output: output.fileDescriptor, errors: errors.fileDescriptor, terminalPath: terminalPath)
  }

  var said: String {
    get throws { try String(contentsOf: directory.appending(path: "output"), encoding: .utf8) }
  }
  var told: String {
    get throws { try String(contentsOf: directory.appending(path: "errors"), encoding: .utf8) }
  }

  /// A file in the session's directory, readable by its owner alone unless said otherwise.
  func file(_ name: String, _ bytes: [UInt8], mode: Int = 0o600) throws -> String {
    let url = directory.appending(path: name)
    try Data(bytes).write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
    return url.path
  }
}

/// The failure that a body ends with; `nil` if it ends well.
func ending(_ body: () throws -> Void) -> CommandFailure? {
  do {
    try body()
    return nil
  } catch {
    return CommandFailure(any: error)
  }
}
