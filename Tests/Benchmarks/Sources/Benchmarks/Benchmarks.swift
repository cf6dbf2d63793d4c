import Foundation

/// Measures the figures that the project promises and prints each with its limit. Exits with 1 if a limit is missed or a
/// figure could not be measured. The limits assume a machine without other work.
///
///     swift run -c release --package-path Tests/Benchmarks Benchmarks PATH-OF-KEYHAUL [GROUP ...]
@main
struct Benchmarks {
  static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    // This program starts itself with one of these three arguments, to measure or to prepare data in another process.
    if arguments.first == ManyItemsBenchmark.argument {
      return try ManyItemsBenchmark.run(Array(arguments.dropFirst()))
    }
    if arguments.first == ManyRowsBackup.argument { return try ManyRowsBackup.write(Array(arguments.dropFirst())) }
    if arguments.first == KeychainBenchmark.fillCommand { return try KeychainBenchmark.fill(arguments) }
    let groups = groups(program: arguments.first ?? "")
    let names = groups.map(\.name)
    guard !arguments.isEmpty, arguments.dropFirst().allSatisfy(names.contains) else {
      let usage =
        "usage: Benchmarks PATH-OF-KEYHAUL [GROUP ...], a group being one of \(names.joined(separator: " "))\n"
      FileHandle.standardError.write(Data(usage.utf8))
      exit(64)
    }
    let selectedNames = arguments.count == 1 ? names : names.filter(arguments.dropFirst().contains)
    let selectedGroups = groups.filter { selectedNames.contains($0.name) }
    let hasPassed =
      selectedGroups.count == 1
      ? measure(selectedGroups[0]) : measureInOtherProcesses(selectedNames, program: arguments[0])
    exit(hasPassed ? 0 : 1)
  }

  private typealias Group = (name: String, figures: () throws -> [Figure])

  /// Measures each group in its own process, because the peak memory of a started program includes that of its parent.
  ///
  /// - Returns: Whether all groups passed.
  private static func measureInOtherProcesses(_ names: [String], program: String) -> Bool {
    let failedCount = names.count { name in
      (try? Run(CommandLine.arguments[0], [program, name], isSilent: false)) == nil
    }
    printLine(failedCount == 0 ? "every group passed" : "\(failedCount) of \(names.count) groups failed")
    return failedCount == 0
  }

  /// Measures the figures of a group.
  ///
  /// - Returns: Whether all figures could be measured and are within their limits.
  private static func measure(_ group: Group) -> Bool {
    var (passedCount, failedCount) = (0, 0)
    do {
      for figure in try group.figures() {
        printLine(figure.line)
        if figure.isWithinLimit { passedCount += 1 } else { failedCount += 1 }
      }
    } catch {
      printLine("FAIL \(group.name): \(error)")
      failedCount += 1
    }
    printLine("\(passedCount) passed, \(failedCount) failed")
    return failedCount == 0
  }

  /// Prints a line without buffering, because a run takes minutes.
  private static func printLine(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

  private static func groups(program: String) -> [Group] {
    [
      ("derivation", { [try DerivationBenchmark.figure()] }),
      ("start", { try StartBenchmark(program: program).figures() }),
      ("move", { try MoveBenchmark.tenThousand(program).figures() }),
      ("large-move", { try MoveBenchmark.hundredThousand(program).figures() }),
      ("items", ManyItemsBenchmark.figures),
      ("rows", { try ManyRowsBenchmark(program: program).figures() }),
      ("payloads", { try PayloadsBenchmark(program: program).figures() }),
      ("memory", { try KeychainBenchmark.memory(program: program) }),
      ("adding", KeychainBenchmark.adding),
      ("finding", KeychainBenchmark.finding),
      ("calls", CallsBenchmark.figures),
    ]
  }
}

/// A measured number and its limit.
struct Figure {
  let name: String
  let value: Double
  let unit: String
  /// The limit, or `nil` if there is none or this machine cannot be expected to meet it.
  let limit: Double?

  var isWithinLimit: Bool { limit.map { value <= $0 } ?? true }

  var line: String {
    let bound = limit.map { "  at most \(Self.text($0)) \(unit)" } ?? ""
    return "\(isWithinLimit ? "ok  " : "MISS") \(name): \(Self.text(value)) \(unit)\(bound)"
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

/// Returns the seconds of wall-clock time that a closure takes.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let clock = ContinuousClock()
  let duration = try clock.measure(body)
  return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
}
