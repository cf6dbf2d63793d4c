import Foundation

/// Backup, plan and restore of 10,000 items, without the wait for the password: one round of derivation.
struct TenThousandItemsBenchmark {
  let program: String
  private static let count = 10_000
  private static let repetitions = 3

  func figures() throws -> [Figure] {
    let folder = FileManager.default.temporaryDirectory.appending(path: "keyhaul-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = { (name: String) in folder.appending(path: name).path(percentEncoded: false) }
    try Data(Self.fixture.utf8).write(to: folder.appending(path: "many.json"))
    guard
      FileManager.default.createFile(
        atPath: path("password"), contents: Data("correct horse\n".utf8), attributes: [.posixPermissions: 0o600])
    else { throw Run.Failure(description: "cannot write in \(folder.path)") }
    func run(_ arguments: String...) throws -> Run {
      try Run(program, arguments + ["--home", path("home"), "--no-input", "-q"])
    }
    _ = try run("device", "create", "many", "--from", path("many.json"))

    var times: [String: [Double]] = [:]
    var memory: [String: [Double]] = [:]
    func measure(_ name: String, _ run: Run) {
      times[name, default: []].append(run.seconds)
      memory[name, default: []].append(run.peakMemory)
    }
    for repetition in 0..<Self.repetitions {
      let archive = path("\(repetition).backup")
      let target = "target-\(repetition)"
      _ = try run("device", "create", target)
      measure(
        "backup", try run("backup", "many", "-o", archive, "--rounds", "1", "--password-file", path("password")))
      measure("plan", try run("plan", archive, "--to", target, "--password-file", path("password")))
      measure("restore", try run("restore", archive, "--to", target, "--password-file", path("password")))
    }
    return ["backup", "plan", "restore"].flatMap { verb in
      [
        Figure(
          name: "\(verb) of \(Self.count) items", value: times[verb, default: []].median, unit: "s", limit: 2),
        Figure(
          name: "\(verb) of \(Self.count) items, peak memory",
          value: (memory[verb, default: []].max() ?? 0) / 1_000_000, unit: "MB", limit: 150),
      ]
    }
  }

  /// A device whose items are like those of a person with very many accounts.
  private static var fixture: String {
    let items = (0..<count).map { index in
      let protection = ["ak", "ck", "dk", "aku", "cku"][index % 5]
      return """
        {"kind":"generic-password","protection":"\(protection)","attributes":{"svce":"service-\(index).example.org",\
        "acct":"person-\(index)@example.org","labl":"Account \(index)","agrp":"ABCDE12345.org.example.app"},\
        "secret":{"text":"secret number \(index), as long as a token is: \(String(repeating: "x", count: 120))"}}
        """
    }
    return """
      {"format":"device-fixture/1","seed":1,"created":"2026-11-20T18:00:00Z",\
      "device":{"name":"many","product_type":"iPhone15,2","product_version":"18.1"},\
      "apps":[{"name":"app","groups":["ABCDE12345.org.example.app"]}],"items":[\(items.joined(separator: ",\n"))]}
      """
  }
}
