import Foundation

/// Measures how long the program takes to move very many items: to create the device, back it up, plan and restore.
/// Backups use one iteration, so that the key derivation does not count.
struct MoveBenchmark {
  let program: String
  let count: Int
  let repetitions: Int
  /// The limits of the commands. The project promises the limit of the plan. The other limits are derived from it.
  let limits: Limits

  /// The time limits of the commands, in seconds, and a memory limit.
  struct Limits {
    let creation: Double
    let backup: Double
    let plan: Double
    let restore: Double
    /// The limit of the peak memory of backup, plan and restore, in megabytes.
    var memory: Double?
  }

  static func tenThousand(_ program: String) -> MoveBenchmark {
    MoveBenchmark(
      program: program, count: 10_000, repetitions: 5,
      limits: Limits(creation: 2, backup: 2, plan: 0.5, restore: 2, memory: 150))
  }

  static func hundredThousand(_ program: String) -> MoveBenchmark {
    MoveBenchmark(
      program: program, count: 100_000, repetitions: 3,
      limits: Limits(creation: 15, backup: 10, plan: 3, restore: 15, memory: nil))
  }

  /// A command to time: its arguments, and its limit as a multiple of the plan's limit.
  private struct TimedCommand {
    let name: String
    let arguments: [String]
    var limitInPlans = 1.0
  }

  func figures() throws -> [Figure] {
    let folder = try BenchmarkFolder(program)
    try folder.write(Self.fixture(count), to: "many.json")
    let encryptedBackup = [folder.path("many.backup")] + folder.passwordFlags
    let savedPlan = folder.path("plan")
    let timedCommands = Self.timedCommands(encryptedBackup: encryptedBackup, savedPlan: savedPlan)
    var runs: [String: [Run]] = [:]
    runs["device create"] = [try folder.run("device", "create", "many", "--from", folder.path("many.json"))]
    for number in 0..<repetitions {
      let target = "target-\(number)"
      try folder.run("device", "create", target)
      runs["backup", default: []].append(
        try folder.run(
          ["backup", "many", "-o", folder.path("many.backup"), "--rounds", "1", "--yes"] + folder.passwordFlags))
      runs["plan", default: []].append(try folder.run(["plan"] + encryptedBackup + ["--to", target]))
      runs["restore", default: []].append(try folder.run(["restore"] + encryptedBackup + ["--to", target, "--yes"]))
    }
    try folder.run("device", "create", "target")
    for command in timedCommands {
      runs[command.name] = try (0..<repetitions).map { _ in try folder.run(command.arguments + ["--to", "target"]) }
    }
    // A restore with a saved plan plans again and compares the two.
    let restoreWithPlan = ["restore"] + encryptedBackup + ["--to", "target", "--plan", savedPlan, "--yes"]
    runs["restore --plan"] = [try folder.run(restoreWithPlan)]
    return timeFigures(of: runs, timedCommands) + memoryFigures(of: runs)
  }

  private static func timedCommands(encryptedBackup: [String], savedPlan: String) -> [TimedCommand] {
    let plan = ["plan"] + encryptedBackup
    return [
      TimedCommand(name: "plan, saved,", arguments: plan + ["-o", savedPlan, "--yes"], limitInPlans: 2),
      TimedCommand(name: "plan --by-app", arguments: plan + ["--by-app"], limitInPlans: 1.5),
      TimedCommand(name: "plan --audit", arguments: plan + ["--audit"], limitInPlans: 1.5),
      TimedCommand(name: "plan --compare", arguments: plan + ["--compare"], limitInPlans: 1.5),
      TimedCommand(name: "plan of a device", arguments: ["plan", "many"], limitInPlans: 2),
      TimedCommand(name: "plan --compare of a device", arguments: ["plan", "many", "--compare"], limitInPlans: 8),
      TimedCommand(
        name: "why, one item among", arguments: ["why"] + encryptedBackup + ["--service", "service-7.example.org"],
        limitInPlans: 2),
    ]
  }

  private func timeFigures(of runs: [String: [Run]], _ timedCommands: [TimedCommand]) -> [Figure] {
    let moveLimits: [(name: String, limit: Double)] = [
      ("device create", limits.creation), ("backup", limits.backup), ("plan", limits.plan), ("restore", limits.restore),
      ("restore --plan", limits.restore + limits.plan),
    ]
    let commandLimits = timedCommands.map { (name: $0.name, limit: $0.limitInPlans * limits.plan) }
    return (moveLimits + commandLimits).map { name, limit in
      Figure(
        name: "\(name) of \(count) items", value: runs[name, default: []].map(\.seconds).median, unit: "s", limit: limit
      )
    }
  }

  private func memoryFigures(of runs: [String: [Run]]) -> [Figure] {
    ["backup", "plan", "restore"].map { command in
      let peakMemory = runs[command, default: []].map(\.peakMemory).max() ?? 0
      return Figure(
        name: "\(command) of \(count) items, peak memory", value: peakMemory / 1_000_000, unit: "MB",
        limit: limits.memory)
    }
  }

  /// Returns the description of a device with the items of a user who has very many accounts. The device has an app for
  /// every ten items, but not more than 1000.
  private static func fixture(_ count: Int) -> String {
    let groups = (0..<min(1_000, max(1, count / 10))).map { "ABCDE12345.org.example.app\($0)" }
    let items = (0..<count).map { index in
      let protection = ["ak", "ck", "dk", "aku", "cku"][index % 5]
      return """
        {"kind":"generic-password","protection":"\(protection)","attributes":{"svce":"service-\(index).example.org",\
        "acct":"person-\(index)@example.org","labl":"Account \(index)","agrp":"\(groups[index / 10 % groups.count])"},\
        "secret":{"text":"secret number \(index), as long as a token is: \(String(repeating: "x", count: 120))"}}
        """
    }
    // The name of an app is the group without "ABCDE12345.".
    let apps = groups.map { #"{"name":"\#($0.dropFirst(11))","groups":["\#($0)"]}"# }
    return """
      {"format":"device-fixture/1","seed":1,"created":"2026-11-20T18:00:00.25Z",\
      "device":{"name":"many","product_type":"iPhone15,2","product_version":"18.1"},\
      "apps":[\(apps.joined(separator: ",\n"))],"items":[\(items.joined(separator: ",\n"))]}
      """
  }
}
