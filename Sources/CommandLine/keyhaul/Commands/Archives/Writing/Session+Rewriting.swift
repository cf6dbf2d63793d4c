import KeyhaulKit

extension Session {
  /// Writes a backup again, in place or as a copy: shows the progress, lets an interruption end the work, and tells what
  /// kept the backup from being written.
  ///
  /// - Parameters:
  ///   - named: The backup that is read.
  ///   - output: Where a copy goes, as the user named it; `nil` if the backup itself is changed.
  ///   - title: For the progress line: "Copying family.backup".
  ///   - phase: The name in status lines: "copy".
  ///   - unit: What is counted.
  ///   - done: What is true once the backup was written.
  ///   - write: The work.
  func rewriting<Written>(
    _ named: NamedArchive, to output: String? = nil, titled title: String? = nil, phase: String = "write",
    unit: ProgressUnit = .step, _ done: DoneChange,
    _ write: (BackupRewriter, _ progress: @escaping BackupRewriter.Progress) throws(BackupArchiveError) -> Written
  ) throws(CommandFailure) -> Written {
    try Interruption.check()
    do throws(BackupArchiveError) {
      return try progress(title ?? "Writing \(named.name)", phase: phase, unit: unit) {
        (report) throws(BackupArchiveError) in
        try changing(done) { () throws(BackupArchiveError) in try write(BackupRewriter(), report.orInterrupted) }
      }
    } catch {
      try Interruption.check()
      if let output { throw ArchiveOutput.failure(error, writing: output, reading: named.name) }
      var failure = CommandFailure(archive: error, name: named.name)
      if error.code == .occupied { failure.advice = "move it out of the folder" }
      throw failure
    }
  }

  /// Says that a dry run has changed nothing.
  func noteDryRun(_ dryRun: DryRunOptions) {
    if dryRun.isOn { note("Nothing was written (--dry-run).") }
  }
}
