import ArgumentParser
import Foundation
import TestSupport

@testable import CommandSession
@testable import keyhaul

/// A session whose streams are files, to see what was said on each.
final class TestSession {
  let folder: URL
  private let temporary: TemporaryFolder
  let session: Session
  private let output: FileHandle
  private let errors: FileHandle

  init(_ flags: [String] = [], environment: [String: String] = [:], terminalPath: String = "/nonexistent/tty") throws {
    let folder = try TemporaryFolder()
    (temporary, self.folder) = (folder, folder.url)
    func stream(_ name: String) throws -> FileHandle {
      try FileHandle(forWritingTo: try folder.write([], to: name))
    }
    output = try stream("output")
    errors = try stream("errors")
    session = Session(
      common: try CommonOptions.parse(flags), environment: ["LC_ALL": "C.UTF-8"].merging(environment) { $1 },
      output: output.fileDescriptor, errors: errors.fileDescriptor, terminalPath: terminalPath)
  }

  var said: String {
    get throws { try String(contentsOf: folder.appending(path: "output"), encoding: .utf8) }
  }
  var told: String {
    get throws { try String(contentsOf: folder.appending(path: "errors"), encoding: .utf8) }
  }

  /// A file in the session's folder, readable by its owner alone unless said otherwise.
  func file(_ name: String, _ bytes: [UInt8], mode: Int = 0o600) throws -> String {
    let url = folder.appending(path: name)
    try Data(bytes).write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
    return url.path
  }
}

/// The failure that a body ends with; `nil` where it ends well.
func ending(_ body: () throws -> Void) -> CommandFailure? {
  do {
    try body()
    return nil
  } catch {
    return CommandFailure(any: error)
  }
}
