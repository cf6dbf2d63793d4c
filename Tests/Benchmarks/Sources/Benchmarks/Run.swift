import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A finished run of a program, with its time and peak memory.
struct Run {
  let seconds: Double
  /// The peak memory in bytes.
  let peakMemory: Double

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Runs a program to its end.
  ///
  /// - Parameter isSilent: Whether the program's output is discarded.
  init(
    _ path: String, _ arguments: [String], environment: [String: String] = [:], isSilent: Bool = true
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    if isSilent { posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) }
    let argumentPointers = ([path] + arguments).map { strdup($0) } + [nil]
    let variables =
      ProcessInfo.processInfo.environment.merging(environment) { $1 }
      .map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for pointer in argumentPointers + variables { free(pointer) } }
    var child: pid_t = 0
    var status: Int32 = 0
    var usage = rusage()
    let clock = ContinuousClock()
    let start = clock.now
    let code = posix_spawn(&child, path, &actions, nil, argumentPointers, variables)
    guard code == 0 else { throw Failure(description: "cannot start \(path): error \(code)") }
    guard wait4(child, &status, 0, &usage) == child, status == 0 else {
      throw Failure(description: "\(path) \(arguments.joined(separator: " ")) ended with status \(status)")
    }
    let duration = clock.now - start
    seconds = Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    #if canImport(Darwin)
      peakMemory = Double(usage.ru_maxrss)
    #else
      peakMemory = Double(usage.ru_maxrss) * 1024
    #endif
  }
}

/// Returns the seconds of processor time that a closure takes, including the system's work for it. Unlike wall-clock
/// time, it does not depend on the disk or on other processes.
func processorSeconds(_ body: () throws -> Void) rethrows -> Double {
  func usedSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
  let start = usedSeconds()
  try body()
  return usedSeconds() - start
}

/// Compares the start time of the program with Python's.
struct StartBenchmark {
  let program: String

  func figures() throws -> [Figure] {
    let python = "/usr/bin/python3"
    guard FileManager.default.isExecutableFile(atPath: python) else { return [] }
    var ratios: [Double] = []
    for _ in 0..<31 {
      let programTime = try Run(program, ["--version"]).seconds
      let pythonTime = try Run(python, ["-c", "pass"]).seconds
      ratios.append(programTime / pythonTime)
    }
    return [Figure(name: "--version against python3 -c pass", value: ratios.median, unit: "times", limit: 1.5)]
  }
}
