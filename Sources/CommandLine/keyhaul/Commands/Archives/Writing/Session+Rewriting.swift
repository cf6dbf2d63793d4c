import KeyhaulKit

extension Session {
  /// Rewrites a backup in place or as a copy. Shows the progress, stops the work on an interruption, and reports why
  /// the backup could not be written.
  ///
  /// - Parameters:
  ///   - named: The backup to read.
  ///   - output: The path of the copy, as the user entered it; `nil` to change the backup itself.
  ///   - title: The title of the progress line, such as "Copying family.backup".
  ///   - phase: The name of the work in status lines, such as "copy".
  ///   - unit: The unit in which progress is counted.
  ///   - done: The change that is complete once the backup is written.
  ///   - write: Writes the backup.
  func rewriting<Written>(
    _ named: NamedArchive, to output: String? = nil, titled title: String? = nil, phase: String = "write",
    unit: ProgressUnit = .step, _ done: DoneChange,
    _ write: (BackupRewriter, _ progress: @escaping BackupRewriter.Progress) throws(KeyhaulError) -> Written
  ) throws(CommandFailure) -> Written {
    try Interruption.check()
    do throws(KeyhaulError) {
      return try progress(title ?? "Writing \(named.name)", phase: phase, unit: unit) {
        (report) throws(KeyhaulError) in
        try streaming(to: output) { () throws(KeyhaulError) in
          try changing(done) { () throws(KeyhaulError) in
            // The session has locked the backup since it was opened.
            try write(BackupRewriter(locks: false), report.orInterrupted)
          }
        }
      }
    } catch {
      try Interruption.check()
      if let output { throw ArchiveOutput.failure(error, writing: output, reading: named.name) }
      var failure = CommandFailure(archive: error, name: named.name)
      if error.code == .occupied { failure.advice = "move it out of the folder" }
      throw failure
    }
  }

  /// Writes a backup. The first signal ends the program if it writes to standard output, because it then changes
  /// nothing else and may wait for a reader.
  func streaming<Written, Failure: Error>(
    to output: String?, _ write: () throws(Failure) -> Written
  ) throws(Failure) -> Written {
    output == "-" ? try Interruption.leavingAtOnce(write) : try write()
  }

  /// Warns of files in the backup's folder that are not part of the backup, and so are not in a copy of it.
  func warn(ofForeignFiles all: [String]) {
    // Manifest.db-shm is only SQLite's index of a log, which SQLite makes again.
    let files = all.filter { $0.split(separator: "/").last != "Manifest.db-shm" }
    guard let first = files.first else { return }
    warn(
      "\(HumanReadable.count(files.count, "file")) not copied",
      why: "\(files.count == 1 ? "" : "the first: ")\(first) is not part of a backup")
  }

  /// Says that a dry run has changed nothing.
  func noteDryRun(_ dryRun: DryRunOptions) {
    if dryRun.isOn { note("Nothing was written (--dry-run).") }
  }
}
