import KeyhaulKit

extension Session {
  /// Writes a backup again: shows the progress, lets an interruption end the work, and tells what kept the backup from
  /// being written.
  ///
  /// - Parameters:
  ///   - title: For the progress line: "Copying family.backup".
  ///   - phase: The name in status lines: "copy".
  ///   - unit: What is counted.
  ///   - done: What is true once the backup was written.
  ///   - failure: Turns an error into the words of what the user named.
  ///   - write: The work.
  func rewriting<Written>(
    _ title: String, phase: String, unit: ProgressUnit = .step, _ done: DoneChange,
    failure: (BackupArchiveError) -> CommandFailure,
    _ write: (BackupRewriter, _ progress: @escaping BackupRewriter.Progress) throws(BackupArchiveError) -> Written
  ) throws(CommandFailure) -> Written {
    try Interruption.check()
    do throws(BackupArchiveError) {
      return try progress(title, phase: phase, unit: unit) { (report) throws(BackupArchiveError) in
        try changing(done) { () throws(BackupArchiveError) in try write(BackupRewriter(), report.orInterrupted) }
      }
    } catch {
      try Interruption.check()
      throw failure(error)
    }
  }

  /// Changes a backup where it stands.
  func rewriting<Written>(
    _ named: NamedArchive, _ done: DoneChange,
    _ write: (BackupRewriter, _ progress: @escaping BackupRewriter.Progress) throws(BackupArchiveError) -> Written
  ) throws(CommandFailure) -> Written {
    try rewriting(
      "Writing \(named.name)", phase: "write", done, failure: { CommandFailure(archive: $0, name: named.name) }, write)
  }

  /// Says that a dry run has changed nothing.
  func noteDryRun(_ dryRun: DryRunOptions) {
    if dryRun.isOn { note("Nothing was written (--dry-run).") }
  }
}
