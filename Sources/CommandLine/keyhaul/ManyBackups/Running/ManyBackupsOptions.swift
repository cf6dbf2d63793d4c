import ArgumentParser
import KeyhaulKit

/// The flags of a verb that takes many backups in one call.
struct ManyBackupsOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Read more paths from a file, one per line or NUL-terminated; - is standard input.", valueName: "file"),
    completion: .file())
  var pathsFrom: String?

  @Option(
    help: ArgumentHelp(
      "Read passwords as this file says: each line is PATTERN file:PATH or PATTERN command:COMMAND.",
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

  /// Whether the call is about many by its flags alone.
  var isGiven: Bool { given != nil }

  /// The first of them that was given.
  var given: String? {
    [
      pathsFrom.map { _ in "--paths-from" }, passwords.map { _ in "--passwords" }, jobs.map { _ in "--jobs" },
      resume.map { _ in "--resume" },
    ].compactMap(\.self).first
  }

  var jobCount: Int { jobs?.value ?? ParallelMap.standardJobCount }

  /// What is read or written besides the backups.
  var files: [String?] { [pathsFrom, passwords, resume] }
}

/// A number of jobs.
struct JobCount: Equatable, Sendable, ExpressibleByArgument {
  /// More than this many threads bring nothing on any machine that there is.
  static let most = 256

  let value: Int

  init?(argument: String) {
    guard let value = Int(argument), (1...Self.most).contains(value) else { return nil }
    self.value = value
  }
}
