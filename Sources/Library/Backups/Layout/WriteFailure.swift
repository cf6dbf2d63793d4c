import Basics
package import SystemPackage

/// Why bytes could not be put where they should go.
package enum WriteFailure: Error {
  case system(Errno)
  case library(String)
  /// Something stands there that may not be replaced.
  case occupied(String)
  /// What should have been written could not be had.
  case source(BackupArchiveError)
}

/// Runs `body` for what is to be written.
package func obtaining<Value: ~Copyable>(
  _ body: () throws(BackupArchiveError) -> Value
) throws(WriteFailure) -> Value {
  do throws(BackupArchiveError) {
    return try body()
  } catch {
    throw .source(error)
  }
}

/// Runs a call of the system on what stands at `path` and says of an error which path it is.
package func opened<Value: ~Copyable>(
  _ path: String, _ body: () throws(Errno) -> Value
) throws(BackupArchiveError) -> Value {
  do throws(Errno) {
    return try body()
  } catch {
    throw BackupArchiveError(error.isAbsence ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)")
  }
}
