/// An error of those who go through a backup's files: reading them fails, or what is done with them does.
package protocol WalkFailure: Error {
  init(reading error: BackupArchiveError)
}

extension BackupArchiveError: WalkFailure {
  package init(reading error: BackupArchiveError) { self = error }
}

extension WriteFailure: WalkFailure {
  package init(reading error: BackupArchiveError) { self = .source(error) }
}

/// Runs the reading half of a walk.
package func reading<Value: ~Copyable, Failure: WalkFailure>(
  as type: Failure.Type, _ body: () throws(BackupArchiveError) -> Value
) throws(Failure) -> Value {
  do throws(BackupArchiveError) {
    return try body()
  } catch {
    throw Failure(reading: error)
  }
}
