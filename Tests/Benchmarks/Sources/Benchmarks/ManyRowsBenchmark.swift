import Foundation

/// Measures inspecting a backup with a million rows in `Manifest.db`, which is encrypted and has about 500 MB.
struct ManyRowsBenchmark {
  let program: String
  private static let rowCount = 1_000_000
  private static let repetitions = 3

  func figures() throws -> [Figure] {
    let folder = try BackupFolder(program: program)
    let backup = try folder.backup("backup", rowCount: Self.rowCount)
    var figures: [Figure] = []
    for command in [["inspect"], ["inspect", "--list"], ["inspect", "--tree"]] {
      let runs = try (0..<Self.repetitions).map { _ in try folder.run(command + [backup, "--json"]) }
      let name = "\(command.joined(separator: " ")) of \(Self.rowCount) rows"
      figures += Self.figures(name, runs, seconds: 5, megabytes: 200)
    }
    let verification = try folder.run(["verify", backup, "--quick"], withPassword: false)
    figures += Self.figures(
      "verify --quick of \(Self.rowCount) rows", [verification], seconds: 5, megabytes: 200)
    return figures
  }

  static func figures(_ name: String, _ runs: [Run], seconds: Double?, megabytes: Double?) -> [Figure] {
    [
      Figure(name: name, value: runs.map(\.seconds).median, unit: "s", limit: seconds),
      Figure(
        name: "\(name), peak memory", value: (runs.map(\.peakMemory).max() ?? 0) / 1_000_000, unit: "MB",
        limit: megabytes),
    ]
  }
}

/// Measures reading all payloads of a backup: one with many small files, and one with a very large file.
struct PayloadsBenchmark {
  let program: String
  /// The number of rows. Three of ten are files of four kilobytes.
  private static let rowCount = 6_667
  private static let largeByteCount = 300_000_000

  func figures() throws -> [Figure] {
    let folder = try BackupFolder(program: program)
    return try manySmallFiles(in: folder) + largeFile(in: folder)
  }

  private func manySmallFiles(in folder: BackupFolder) throws -> [Figure] {
    func verificationSeconds(_ name: String, rowCount: Int) throws -> Double {
      let directory = try folder.backup(name, rowCount: rowCount, payloadByteCount: 4000)
      let file = folder.path("\(name).tar.gz")
      _ = try folder.run(["convert", directory, "-o", file], withPassword: false)
      return try (0..<3).map { _ in try folder.run(["verify", file]).seconds }.median
    }
    let few = try verificationSeconds("few-files", rowCount: Self.rowCount)
    let many = try verificationSeconds("many-files", rowCount: 4 * Self.rowCount)
    return [
      Figure(name: "verify of 8,000 payloads in a tar.gz against 2,000", value: many / few, unit: "times", limit: 5)
    ]
  }

  private func largeFile(in folder: BackupFolder) throws -> [Figure] {
    let directory = try folder.backup("large", rowCount: 2, payloadByteCount: Self.largeByteCount)
    let file = folder.path("large.tar")
    func figures(_ command: String, _ run: Run) -> [Figure] {
      let name = "\(command) of a backup with a file of \(Self.largeByteCount / 1_000_000) MB"
      return ManyRowsBenchmark.figures(name, [run], seconds: nil, megabytes: 100)
    }
    let conversion = try folder.run(["convert", directory, "-o", file], withPassword: false)
    let verification = try folder.run(["verify", file])
    let rekeying = try folder.run(["rekey", file, "--new-password-file", folder.passwordFile])
    return figures("convert", conversion) + figures("verify", verification) + figures("rekey", rekeying)
  }
}

/// A temporary directory with backups, and the program that is measured on them.
final class BackupFolder {
  private let program: String
  private let directory: URL

  init(program: String) throws {
    self.program = program
    directory = FileManager.default.temporaryDirectory.appending(path: "keyhaul-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    guard
      FileManager.default.createFile(
        atPath: passwordFile, contents: Data("\(ManyRowsBackup.password)\n".utf8),
        attributes: [.posixPermissions: 0o600])
    else { throw Run.Failure(description: "cannot write in \(directory.path)") }
  }

  deinit { try? FileManager.default.removeItem(at: directory) }

  func path(_ name: String) -> String { directory.appending(path: name).path(percentEncoded: false) }

  var passwordFile: String { path("password") }

  func backup(_ name: String, rowCount: Int, payloadByteCount: Int = 0) throws -> String {
    try ManyRowsBackup(rowCount: rowCount, payloadByteCount: payloadByteCount).writeInOtherProcess(
      to: directory.appending(path: name))
    return path(name)
  }

  /// Runs the program on this folder's devices.
  ///
  /// - Parameter withPassword: Whether the program gets the password.
  func run(_ arguments: [String], withPassword: Bool = true) throws -> Run {
    try Run(
      program,
      arguments + (withPassword ? ["--password-file", passwordFile] : []) + [
        "--no-input", "-q", "--home", path("home"),
      ])
  }
}
