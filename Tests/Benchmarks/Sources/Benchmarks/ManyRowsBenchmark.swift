import Foundation

/// Measures inspecting a backup with a million rows in `Manifest.db`, which is encrypted and has about 500 MB.
struct ManyRowsBenchmark {
  let program: String
  private static let rowCount = 1_000_000
  private static let repetitions = 3

  func figures() throws -> [Figure] {
    let folder = try BenchmarkFolder(program)
    let backup = try folder.backup("backup", rowCount: Self.rowCount)
    var figures: [Figure] = []
    for command in [["inspect"], ["inspect", "--list"], ["inspect", "--tree"]] {
      let runs = try (0..<Self.repetitions).map { _ in
        try folder.run(command + [backup, "--json"] + folder.passwordFlags)
      }
      let name = "\(command.joined(separator: " ")) of \(Self.rowCount) rows"
      figures += Self.figures(name, runs, seconds: 5, megabytes: 200)
    }
    let verification = try folder.run(["verify", backup, "--quick"])
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

/// Measures reading all payloads of backups with many small files, and of a backup with a very large file.
struct PayloadsBenchmark {
  let program: String
  /// The number of rows of the smaller backup. Three of ten rows are files of four kilobytes.
  private static let rowCount = 6_667
  private static let largeByteCount = 300_000_000

  func figures() throws -> [Figure] {
    let folder = try BenchmarkFolder(program)
    return try manySmallFiles(in: folder) + largeFile(in: folder)
  }

  private func manySmallFiles(in folder: BenchmarkFolder) throws -> [Figure] {
    func verificationSeconds(_ name: String, rowCount: Int) throws -> Double {
      let directory = try folder.backup(name, rowCount: rowCount, payloadByteCount: 4000)
      let file = folder.path("\(name).tar.gz")
      try folder.run(["convert", directory, "-o", file])
      return try (0..<3).map { _ in try folder.run(["verify", file] + folder.passwordFlags).seconds }.median
    }
    let few = try verificationSeconds("few-files", rowCount: Self.rowCount)
    let many = try verificationSeconds("many-files", rowCount: 4 * Self.rowCount)
    return [
      Figure(name: "verify of 8,000 payloads in a tar.gz against 2,000", value: many / few, unit: "times", limit: 5)
    ]
  }

  private func largeFile(in folder: BenchmarkFolder) throws -> [Figure] {
    // The two rows are the large file and the keychain.
    let directory = try folder.backup("large", rowCount: 2, payloadByteCount: Self.largeByteCount)
    let file = folder.path("large.tar")
    func figures(_ command: String, _ run: Run) -> [Figure] {
      let name = "\(command) of a backup with a file of \(Self.largeByteCount / 1_000_000) MB"
      return ManyRowsBenchmark.figures(name, [run], seconds: nil, megabytes: 100)
    }
    let conversion = try folder.run(["convert", directory, "-o", file])
    let verification = try folder.run(["verify", file] + folder.passwordFlags)
    let newPassword = ["--new-password-file", folder.path("password")]
    let rekeying = try folder.run(["rekey", file] + newPassword + folder.passwordFlags)
    return figures("convert", conversion) + figures("verify", verification) + figures("rekey", rekeying)
  }
}

extension BenchmarkFolder {
  /// Writes a backup with many rows, and returns its path.
  fileprivate func backup(_ name: String, rowCount: Int, payloadByteCount: Int = 0) throws -> String {
    let path = path(name)
    try ManyRowsBackup(rowCount: rowCount, payloadByteCount: payloadByteCount)
      .writeInOtherProcess(to: URL(filePath: path))
    return path
  }
}
