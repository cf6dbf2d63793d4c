package import ArgumentParser
import CommandSession
import ParallelWork

/// The flags of a verb that takes many backups in one call.
package struct ManyBackupsOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Read more paths from a file, each on a line or with a NUL behind it; - is standard input.", valueName: "file"),
    completion: .file())
  package var pathsFrom: String?

  @Option(
    help: ArgumentHelp(
      "A list of where the passwords are: on each line PATTERN file:PATH or PATTERN command:COMMAND.",
      valueName: "file"),
    completion: .file())
  package var passwords: String?

  @Option(help: ArgumentHelp("How many backups are read at once (default: one for each core).", valueName: "n"))
  var jobs: JobCount?

  @Option(
    help: ArgumentHelp(
      "Add each answer to a file, and skip what it has of a backup that has not changed.", valueName: "file"),
    completion: .file())
  package var resume: String?

  package init() {}

  /// Whether the call is about many by its flags alone.
  package var isGiven: Bool { given != nil }

  /// The first of them that was given.
  package var given: String? {
    [
      pathsFrom.map { _ in "--paths-from" }, passwords.map { _ in "--passwords" }, jobs.map { _ in "--jobs" },
      resume.map { _ in "--resume" },
    ].compactMap(\.self).first
  }

  package var jobCount: Int { jobs?.value ?? ParallelMap.standardJobCount }

  /// What is read or written besides the backups.
  package var files: [String?] { [pathsFrom, passwords, resume] }
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
