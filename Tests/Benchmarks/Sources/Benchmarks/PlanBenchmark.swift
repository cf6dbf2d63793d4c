import Foundation

/// The plan of very many items, of an archive and of the device itself, without the wait for the password: one round of
/// derivation.
struct PlanBenchmark {
  let program: String
  let count: Int
  /// For the plan of an archive, in seconds of the whole process.
  let limit: Double
  private static let repetitions = 3

  func figures() throws -> [Figure] {
    let folder = FileManager.default.temporaryDirectory.appending(path: "keyhaul-benchmark-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = { (name: String) in folder.appending(path: name).path(percentEncoded: false) }
    try Data(Self.fixture(count).utf8).write(to: folder.appending(path: "many.json"))
    guard
      FileManager.default.createFile(
        atPath: path("password"), contents: Data("correct horse\n".utf8), attributes: [.posixPermissions: 0o600])
    else { throw Run.Failure(description: "cannot write in \(folder.path)") }
    func run(_ arguments: String...) throws -> Run {
      try Run(program, arguments + ["--home", path("home"), "--no-input", "-q"])
    }
    _ = try run("device", "create", "many", "--from", path("many.json"))
    _ = try run("device", "create", "target")
    _ = try run("backup", "many", "-o", path("many.backup"), "--rounds", "1", "--password-file", path("password"))
    let moves: [(String, [String])] = [
      ("plan of", [path("many.backup"), "--password-file", path("password")]),
      ("plan, saved, of", [path("many.backup"), "--password-file", path("password"), "-o", path("plan"), "--yes"]),
      ("plan of a device with", ["many"]),
    ]
    return try moves.map { name, words in
      var times: [Double] = []
      for _ in 0..<Self.repetitions {
        times.append(
          try Run(program, ["plan"] + words + ["--to", "target", "--home", path("home"), "--no-input", "-q"]).seconds)
      }
      let isPlain = name == "plan of"
      return Figure(name: "\(name) \(count) items", value: times.median, unit: "s", limit: isPlain ? limit : limit * 2)
    }
  }

  private static func fixture(_ count: Int) -> String {
    let items = (0..<count).map { index in
      """
      {"kind":"generic-password","protection":"\(["ak", "ck", "dk", "aku", "cku"][index % 5])","attributes":{\
      "svce":"service-\(index).example.org","acct":"person-\(index)@example.org","labl":"Account \(index)",\
      "agrp":"ABCDE12345.org.example.app"},"secret":{"text":"secret number \(index): \(String(repeating: "x", count: 60))"}}
      """
    }
    return """
      {"format":"device-fixture/1","seed":1,"created":"2026-11-20T18:00:00Z",\
      "device":{"name":"many","product_type":"iPhone15,2","product_version":"18.1"},\
      "apps":[{"name":"app","groups":["ABCDE12345.org.example.app"]}],"items":[\(items.joined(separator: ",\n"))]}
      """
  }
}
