import Foundation
import GRDB
import KeyhaulKit
import Synchronization
import TestSupport

@testable import keyhaul

/// A temporary folder of virtual devices, and the built program to use it.
final class DeviceSandbox: Sendable {
  let program: BuiltProgram
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let home = directory.url("home")
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
    program = BuiltProgram(home: home)
  }

  /// Copies a sandbox with its devices and files, including modes and times.
  convenience init(copyOf sandbox: DeviceSandbox) throws {
    try self.init()
    let outcome = try program.run(command: "/bin/cp", ["-Rp", sandbox.home.path + "/.", home.path])
    guard outcome.status == 0 else { throw ChildProcess.Failure.notStarted(outcome.errors) }
  }

  /// Creates a sandbox in which a shell line was run successfully. The line is run once for all copies.
  convenience init(after line: String) throws {
    let original = try Self.originals.withLock { originals in
      if let original = originals[line] { return original }
      let original = try DeviceSandbox()
      original.removeAtExit()
      let outcome = try original.run(line)
      guard outcome.status == 0 else { throw ChildProcess.Failure.notStarted("\(line): \(outcome.errors)") }
      originals[line] = original
      return original
    }
    try self.init(copyOf: original)
  }

  private static let originals = Mutex<[String: DeviceSandbox]>([:])

  /// Deletes the sandbox at the end of the process. A sandbox in a static property needs this, because it is never
  /// released.
  func removeAtExit() { directory.removeAtExit() }

  var home: URL { program.home }
  var devices: URL { home.appending(path: "devices") }

  /// Runs a shell line.
  @discardableResult
  func run(_ line: String, typed: [String]? = nil) throws -> BuiltProgram.Outcome {
    try program.shell(line, typed: typed)
  }

  /// Runs the program with all its streams on a terminal.
  func runOnTerminal(_ arguments: [String], typed: [String] = []) throws -> BuiltProgram.Outcome {
    try program.run(
      command: BuiltProgram.directory.appending(path: "keyhaul").path, arguments, typed: typed,
      showsOutputOnTerminal: true)
  }

  /// Writes the keychain database of the test vectors, with or without the write-ahead log next to it.
  func writeKeychainDatabase(to name: String, withLog: Bool) throws {
    let vectors = try TestVectors.database()
    try Data(vectors["base64"].base64Bytes).write(to: home.appending(path: name))
    if withLog { try Data(vectors["wal"]["base64"].base64Bytes).write(to: home.appending(path: "\(name)-wal")) }
  }

  /// Copies a database and its journal in the middle of a change, as a killed process leaves them.
  func copyDatabase(_ name: String, to copy: String, during change: String) throws {
    let queue = try DatabaseQueue(path: home.appending(path: name).path)
    try queue.writeWithoutTransaction { database in
      // With a small cache, SQLite writes changed pages to the file before the commit.
      let settings = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; PRAGMA cache_spill = 1"
      try database.execute(sql: "\(settings); BEGIN IMMEDIATE; \(change)")
      try run("cp \(name) \(copy); cp \(name)-journal \(copy)-journal")
      try database.execute(sql: "ROLLBACK")
    }
    try queue.close()
  }

  /// Returns the JSON document that a shell line prints.
  func document(_ line: String) throws -> JSONValue {
    try JSONReader.read(Array(try run(line).output.utf8))
  }

  /// Returns the files of a device by name, except the lock file.
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
