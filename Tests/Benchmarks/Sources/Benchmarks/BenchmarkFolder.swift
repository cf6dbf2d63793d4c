import Foundation

/// A temporary directory for one group of figures, with virtual devices, output of the program, and the password of its
/// backups. The deinitializer removes the directory.
final class BenchmarkFolder {
  let program: String
  private let directory: URL

  static let password = "correct horse"

  init(_ program: String) throws {
    self.program = program
    directory = FileManager.default.temporaryDirectory.appending(path: "keyhaul-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try write("\(Self.password)\n", to: "password")
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  func path(_ name: String) -> String { directory.appending(path: name).path(percentEncoded: false) }

  /// The arguments that give the password of a backup.
  var passwordFlags: [String] { ["--password-file", path("password")] }

  func write(_ text: String, to name: String) throws {
    guard
      FileManager.default.createFile(
        atPath: path(name), contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
    else { throw Run.Failure(description: "cannot write \(path(name))") }
  }

  /// Runs the program on this directory's devices.
  @discardableResult
  func run(_ arguments: [String]) throws -> Run {
    try Run(program, arguments + ["--home", path("home"), "--no-input", "-q"])
  }

  @discardableResult
  func run(_ arguments: String...) throws -> Run { try run(arguments) }
}
