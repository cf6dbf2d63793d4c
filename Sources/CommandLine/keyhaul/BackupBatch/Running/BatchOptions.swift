import ArgumentParser
import KeyhaulKit

/// The options of commands on many backups.
struct BatchOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Read more paths from a file, one per line or NUL-terminated; - is standard input.", valueName: "file"),
    completion: .file())
  var pathsFrom: String?

  @Option(
    help: ArgumentHelp(
      "A file that says where to read each backup's password. Each line is PATTERN file:PATH or PATTERN command:COMMAND.",
      valueName: "file"),
    completion: .file())
  var passwords: String?

  @Option(help: ArgumentHelp("Read this many backups at once (default: one per core).", valueName: "n"))
  var jobs: JobCount?

  @Option(
    help: ArgumentHelp(
      "Append each result to a file, and skip unchanged backups whose results are already in it.", valueName: "file"),
    completion: .file())
  var resume: String?

  init() {}

  /// Whether any of the flags was given. If so, the call is for many backups.
  var isGiven: Bool { firstGivenFlag != nil }

  /// The name of the first flag that was given; `nil` if no flag was given.
  var firstGivenFlag: String? {
    [
      pathsFrom.map { _ in "--paths-from" }, passwords.map { _ in "--passwords" }, jobs.map { _ in "--jobs" },
      resume.map { _ in "--resume" },
    ].compactMap(\.self).first
  }

  var jobCount: Int { jobs?.value ?? ParallelMap.standardJobCount }

  /// The files that are read or written in addition to the backups.
  var files: [String?] { [pathsFrom, passwords, resume] }
}

/// A number of parallel jobs.
struct JobCount: Equatable, Sendable, ExpressibleByArgument {
  /// The maximum. More threads are not faster on any current machine.
  static let maximum = 256

  let value: Int

  init?(argument: String) {
    guard let value = Int(argument), (1...Self.maximum).contains(value) else { return nil }
    self.value = value
  }
}
