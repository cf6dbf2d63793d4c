import Foundation
import KeyhaulKit
import Synchronization
import TestSupport

@testable import keyhaul

/// A home of virtual devices that is gone with the test, and the built program to use it.
final class DeviceWorld: Sendable {
  let program: BuiltProgram
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let home = directory.url("home")
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
    program = BuiltProgram(home: home)
  }

  /// A world with the same devices and files, with their modes and times.
  convenience init(copyOf other: DeviceWorld) throws {
    try self.init()
    let outcome = try program.run(command: "/bin/cp", ["-Rp", other.home.path + "/.", home.path])
    guard outcome.status == 0 else { throw ChildProcess.Failure.notStarted(outcome.errors) }
  }

  /// A world in which a line of shell was run, once for all who want it, and well.
  convenience init(after line: String) throws {
    let pattern = try Self.patterns.withLock { patterns in
      if let pattern = patterns[line] { return pattern }
      let pattern = try DeviceWorld()
      pattern.removeAtExit()
      let outcome = try pattern.run(line)
      guard outcome.status == 0 else { throw ChildProcess.Failure.notStarted("\(line): \(outcome.errors)") }
      patterns[line] = pattern
      return pattern
    }
    try self.init(copyOf: pattern)
  }

  private static let patterns = Mutex<[String: DeviceWorld]>([:])

  /// Takes the world away at the end of the process, for one that is never let go of before.
  func removeAtExit() { directory.removeAtExit() }

  var home: URL { program.home }
  var devices: URL { home.appending(path: "devices") }

  /// Runs a line of shell.
  @discardableResult
  func run(_ line: String, typed: [String]? = nil) throws -> BuiltProgram.Outcome {
    try program.shell(line, typed: typed)
  }

  /// Runs the program with all of its streams on a terminal.
  func runOnTerminal(_ arguments: [String], typed: [String] = []) throws -> BuiltProgram.Outcome {
    try program.run(
      command: BuiltProgram.directory.appending(path: "keyhaul").path, arguments, typed: typed,
      showsOutputOnTerminal: true)
  }

  /// The one document that a line prints.
  func document(_ line: String) throws -> JSONValue {
    try JSONReader.read(Array(try run(line).output.utf8))
  }

  /// The files of a device by name, without the file that only a lock lives in.
  func files(of device: String) throws -> [String: Data] {
    let directory = devices.appending(path: device)
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0 != "lock" }
    return try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: directory.appending(path: $0))) })
  }

  func permissions(of name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: home.appending(path: name).path)[.posixPermissions] as? Int
  }
}
