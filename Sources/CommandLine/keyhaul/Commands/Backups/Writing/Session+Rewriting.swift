import KeyhaulKit

extension Session {
  /// Rewrites a backup in place or as a copy. Shows the progress, stops the work on an interruption, and explains why
  /// the backup could not be written.
  ///
  /// - Parameters:
  ///   - loaded: The backup to read.
  ///   - output: The path of the copy, as the user typed it; `nil` to change the backup itself.
  ///   - title: The title of the progress line, such as "Copying family.backup".
  ///   - phase: The name of the work in status lines, such as "copy".
  ///   - unit: The unit of progress.
  ///   - change: The change that later errors mention, once the backup is written.
  ///   - write: Writes the backup.
  func rewriting<Written>(
    _ loaded: LoadedBackup, to output: String? = nil, titled title: String? = nil, phase: String = "write",
    unit: ProgressUnit = .step, _ change: CommittedChange,
    _ write: (BackupRewriter, _ progress: @escaping BackupRewriter.Progress) throws(KeyhaulError) -> Written
  ) throws(CommandError) -> Written {
    try Interruption.check()
    do throws(KeyhaulError) {
      return try progress(title ?? "Writing \(loaded.name)", phase: phase, unit: unit) {
        (report) throws(KeyhaulError) in
        try streaming(to: output) { () throws(KeyhaulError) in
          try committing(change) { () throws(KeyhaulError) in
            // The session has held the backup's file lock since the backup was opened.
            try write(BackupRewriter(takesFileLock: false), report.updateUnlessInterrupted)
          }
        }
      }
    } catch {
      try Interruption.check()
      if let output { throw BackupOutput.failure(error, writing: output, reading: loaded.name) }
      var failure = CommandError(backup: error, name: loaded.name)
      if error.code == .occupied { failure.advice = "move it out of the folder" }
      throw failure
    }
  }

  /// Writes a backup. If the backup goes to standard output, the first signal ends the program immediately, because no
  /// file is changed and the write may wait for a reader.
  func streaming<Written, Failure: Error>(
    to output: String?, _ write: () throws(Failure) -> Written
  ) throws(Failure) -> Written {
    output == "-" ? try Interruption.exitingImmediatelyOnSignal(write) : try write()
  }

  /// Warns about files in the backup's folder that are not part of the backup, and so are not in the copy.
  func warn(aboutUnrelatedFiles unrelatedFiles: [String]) {
    // SQLite recreates Manifest.db-shm, which is only the index of the write-ahead log.
    let files = unrelatedFiles.filter { $0.split(separator: "/").last != "Manifest.db-shm" }
    guard let first = files.first else { return }
    warn(
      "\(HumanReadable.count(files.count, "file")) not copied",
      why: "\(files.count == 1 ? "" : "the first: ")\(first) is not part of a backup")
  }

  /// Reports that a dry run has changed nothing.
  func reportDryRun(_ dryRun: DryRunOptions) {
    if dryRun.isOn { info("Nothing was written (--dry-run).") }
  }
}
