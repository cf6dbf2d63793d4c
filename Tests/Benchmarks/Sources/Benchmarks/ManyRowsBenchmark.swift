import Foundation

/// Looking into a backup with a million rows in its list of files, which is some 500 MB and encrypted.
struct ManyRowsBenchmark {
  let program: String
  private static let rowCount = 1_000_000
  private static let repetitions = 3

  func figures() throws -> [Figure] {
    let folder = FileManager.default.temporaryDirectory.appending(path: "keyhaul-benchmark-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let backup = folder.appending(path: "backup")
    try ManyRowsBackup(rowCount: Self.rowCount).write(to: backup)
    let password = folder.appending(path: "password").path(percentEncoded: false)
    guard
      FileManager.default.createFile(
        atPath: password, contents: Data("\(ManyRowsBackup.password)\n".utf8), attributes: [.posixPermissions: 0o600])
    else { throw Run.Failure(description: "cannot write in \(folder.path)") }
    let runs = try (0..<Self.repetitions).map { _ in
      try Run(
        program,
        [
          "inspect", backup.path(percentEncoded: false), "--password-file", password, "--no-input", "--json", "-q",
          "--home", folder.appending(path: "home").path(percentEncoded: false),
        ])
    }
    let name = "inspect of \(Self.rowCount) rows"
    return [
      Figure(name: name, value: runs.map(\.seconds).median, unit: "s", limit: 5),
      Figure(
        name: "\(name), peak memory", value: (runs.map(\.peakMemory).max() ?? 0) / 1_000_000, unit: "MB", limit: 200),
    ]
  }
}
