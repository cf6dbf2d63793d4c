import SystemPackage

/// Why bytes could not be put where they should go.
enum WriteFailure: Error {
  case system(Errno)
  case library(String)
  /// Something stands there that may not be replaced.
  case occupied(String)
  /// What should have been written could not be had.
  case source(BackupArchiveError)
}

/// Runs `body` for what is to be written.
func obtaining<Value: ~Copyable>(
  _ body: () throws(BackupArchiveError) -> Value
) throws(WriteFailure) -> Value {
  do throws(BackupArchiveError) {
    return try body()
  } catch {
    throw .source(error)
  }
}
