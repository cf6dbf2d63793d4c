import Foundation

/// A move of very many items as the program does it: device, backup, plan and its views, restore. Without the wait for
/// the password: one round of derivation.
struct MoveBenchmark {
  let program: String
  let count: Int
  let repetitions: Int
  /// In seconds of the whole process. The plan's is the promise; the others follow from it.
  let limits: Limits

  struct Limits {
    let creation: Double
    let backup: Double
    let plan: Double
    let restore: Double
    /// The most memory that backup, plan and restore have, in megabytes.
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

  /// One run to be timed: words of the program, and how often what the plan may take it may take.
  private struct View {
    let name: String
    let words: [String]
    var limitInPlans = 1.0
  }

  func figures() throws -> [Figure] {
    let shop = try Workshop(program)
    try shop.write(Self.fixture(count), to: "many.json")
    let archive = shop.path("many.backup")
    let opened = [archive] + shop.passwordFlags
    var runs: [String: [Run]] = [:]
    runs["device create"] = [try shop.run("device", "create", "many", "--from", shop.path("many.json"))]
    for number in 0..<repetitions {
      let target = "target-\(number)"
      try shop.run("device", "create", target)
      runs["backup", default: []].append(
        try shop.run(["backup", "many", "-o", archive, "--rounds", "1", "--yes"] + shop.passwordFlags))
      runs["plan", default: []].append(try shop.run(["plan"] + opened + ["--to", target]))
      runs["restore", default: []].append(try shop.run(["restore"] + opened + ["--to", target, "--yes"]))
    }
    let views = [
      View(name: "plan, saved,", words: ["plan"] + opened + ["-o", shop.path("plan"), "--yes"], limitInPlans: 2),
      View(name: "plan --by-app", words: ["plan"] + opened + ["--by-app"], limitInPlans: 1.5),
      View(name: "plan --audit", words: ["plan"] + opened + ["--audit"], limitInPlans: 1.5),
      View(name: "plan --compare", words: ["plan"] + opened + ["--compare"], limitInPlans: 1.5),
      View(name: "plan of a device", words: ["plan", "many"], limitInPlans: 2),
      View(name: "plan --compare of a device", words: ["plan", "many", "--compare"], limitInPlans: 8),
      View(
        name: "why, one item among", words: ["why"] + opened + ["--service", "service-7.example.org"],
        limitInPlans: 2),
    ]
    try shop.run("device", "create", "target")
    for view in views {
      runs[view.name] = try (0..<repetitions).map { _ in try shop.run(view.words + ["--to", "target"]) }
    }
    // The plan that was saved, carried out: decided twice and compared.
    let planned = ["restore"] + opened + ["--to", "target", "--plan", shop.path("plan"), "--yes"]
    runs["restore --plan"] = [try shop.run(planned)]

    let seconds =
      [
        ("device create", limits.creation), ("backup", limits.backup), ("plan", limits.plan),
        ("restore", limits.restore), ("restore --plan", limits.restore + limits.plan),
      ] + views.map { ($0.name, $0.limitInPlans * limits.plan) }
    return seconds.map { name, limit in
      Figure(
        name: "\(name) of \(count) items", value: runs[name, default: []].map(\.seconds).median, unit: "s", limit: limit
      )
    }
      + ["backup", "plan", "restore"].map { verb in
        Figure(
          name: "\(verb) of \(count) items, peak memory",
          value: (runs[verb, default: []].map(\.peakMemory).max() ?? 0) / 1_000_000, unit: "MB", limit: limits.memory)
      }
  }

  /// A device whose items are like those of a person with very many accounts, in a tenth as many apps, but no more than
  /// anyone installs.
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
    let apps = groups.map { #"{"name":"\#($0.dropFirst(11))","groups":["\#($0)"]}"# }
    return """
      {"format":"device-fixture/1","seed":1,"created":"2026-11-20T18:00:00.25Z",\
      "device":{"name":"many","product_type":"iPhone15,2","product_version":"18.1"},\
      "apps":[\(apps.joined(separator: ",\n"))],"items":[\(items.joined(separator: ",\n"))]}
      """
  }
}
