import ArgumentParser
import Foundation
import TestSupport

@testable import keyhaul

/// A session whose streams are files, so that a test can read them.
final class TestSession {
  let directory: URL
  private let temporaryDirectory: TemporaryDirectory
  let session: Session
  private let outputFile: FileHandle
  private let errorFile: FileHandle

  init(_ flags: [String] = [], environment: [String: String] = [:], terminalPath: String = "/nonexistent/tty") throws {
    let temporaryDirectory = try TemporaryDirectory()
    (self.temporaryDirectory, directory) = (temporaryDirectory, temporaryDirectory.url)
    func stream(_ name: String) throws -> FileHandle {
      try FileHandle(forWritingTo: try temporaryDirectory.write([], to: name))
    }
    outputFile = try stream("output")
    errorFile = try stream("errors")
    session = Session(
      common: try CommonOptions.parse(flags), environment: ["LC_ALL": "C.UTF-8"].merging(environment) { $1 },
      output: outputFile.fileDescriptor, errors: errorFile.fileDescriptor, terminalPath: terminalPath)
  }

  var output: String {
    get throws { try String(contentsOf: directory.appending(path: "output"), encoding: .utf8) }
  }
  var messages: String {
    get throws { try String(contentsOf: directory.appending(path: "errors"), encoding: .utf8) }
  }

  /// Creates a file in the session's folder, by default readable only by its owner.
  func file(_ name: String, _ bytes: [UInt8], mode: Int = 0o600) throws -> String {
    let url = directory.appending(path: name)
    try Data(bytes).write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url.path)
    return url.path
  }
}

/// Returns the error that a closure throws; `nil` if it throws none.
func thrownError(_ body: () throws -> Void) -> CommandError? {
  do {
    try body()
    return nil
  } catch {
    return CommandError(any: error)
  }
}
