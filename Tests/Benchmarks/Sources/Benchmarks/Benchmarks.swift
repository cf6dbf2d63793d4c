import Foundation

/// Prints the figures that the project promises, each with its limit, and ends with 1 where one is missed.
///
///     swift run -c release --package-path Tests/Benchmarks Benchmarks PATH-OF-KEYHAUL [GROUP ...]
@main
struct Benchmarks {
  static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == ManyItemsBenchmark.argument {
      return try ManyItemsBenchmark.run(Array(arguments.dropFirst()))
    }
    if arguments.first == ManyRowsBackup.argument { return try ManyRowsBackup.write(Array(arguments.dropFirst())) }
    if arguments.first == KeychainBenchmark.fillWord { return try KeychainBenchmark.fill(arguments) }
    let groups = groups(program: arguments.first ?? "")
    let names = groups.map(\.name)
    guard !arguments.isEmpty, arguments.dropFirst().allSatisfy(names.contains) else {
      let usage =
        "usage: Benchmarks PATH-OF-KEYHAUL [GROUP ...], a group being one of \(names.joined(separator: " "))\n"
      FileHandle.standardError.write(Data(usage.utf8))
      exit(64)
    }
    var figures: [Figure] = []
    for group in groups where arguments.count == 1 || arguments.dropFirst().contains(group.name) {
      figures += try group.figures()
    }
    for figure in figures { print(figure.line) }
    let missed = figures.count { !$0.isReached }
    print("\(figures.count - missed) passed, \(missed) failed")
    exit(missed == 0 ? 0 : 1)
  }

  /// What a child starts with counts in its peak memory, so those that fill this process's come last.
  private static func groups(program: String) -> [(name: String, figures: () throws -> [Figure])] {
    [
      ("derivation", { [try DerivationBenchmark.figure()] }),
      ("start", { try StartBenchmark(program: program).figures() }),
      ("program", { try TenThousandItemsBenchmark(program: program).figures() }),
      (
        "plan",
        {
          try PlanBenchmark(program: program, count: 10_000, limit: 0.5).figures()
            + PlanBenchmark(program: program, count: 100_000, limit: 3).figures()
        }
      ),
      ("items", ManyItemsBenchmark.figures),
      ("rows", { try ManyRowsBenchmark(program: program).figures() }),
      ("payloads", { try PayloadsBenchmark(program: program).figures() }),
      ("memory", { try KeychainBenchmark.memory(program: program) }),
      ("adding", KeychainBenchmark.adding),
      ("finding", KeychainBenchmark.finding),
    ]
  }
}

/// One measured number and what it is held against.
struct Figure {
  let name: String
  let value: Double
  let unit: String
  /// `nil` where the machine cannot be expected to reach it, or there is nothing to reach.
  let limit: Double?

  var isReached: Bool { limit.map { value <= $0 } ?? true }

  var line: String {
    let bound = limit.map { "  at most \(Self.text($0)) \(unit)" } ?? ""
    return "\(isReached ? "ok  " : "MISS") \(name): \(Self.text(value)) \(unit)\(bound)"
  }

  private static func text(_ value: Double) -> String { String(format: value < 10 ? "%.3f" : "%.1f", value) }
}

extension [Double] {
  var median: Double {
    let sorted = sorted()
    guard let middle = sorted.dropFirst(count / 2).first else { return 0 }
    return count.isMultiple(of: 2) ? (middle + sorted[count / 2 - 1]) / 2 : middle
  }
}

/// Seconds of wall-clock time.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let clock = ContinuousClock()
  let duration = try clock.measure(body)
  return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
}
