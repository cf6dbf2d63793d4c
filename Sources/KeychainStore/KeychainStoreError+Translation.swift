import DataProtection
import GRDB
import KeychainFormats

extension KeychainStoreError {
  init(_ error: DataProtectionError) { self.init(.notAvailable, error.description) }

  /// SQLite's own message names tables and columns, never a value. What has no status of its own makes the keychain
  /// unavailable, as for Apple's daemon.
  init(_ error: DatabaseError) {
    let code: Code =
      switch error.resultCode {
      case .SQLITE_FULL: .diskFull
      case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
      case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_SCHEMA, .SQLITE_MISMATCH: .damaged
      case .SQLITE_CONSTRAINT:
        error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE ? .duplicateItem : .damaged
      case .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_PERM: .io
      case .SQLITE_TOOBIG: .parameter
      default: .notAvailable
      }
    self.init(code, "SQLite answers \(error.resultCode.rawValue): \(error.message ?? "no message")")
  }

  /// Whatever GRDB threw, as an error of this layer.
  init(fromDatabase error: any Error) {
    switch error {
    case let error as KeychainStoreError: self = error
    case let error as DatabaseError: self.init(error)
    default: self.init(.io, "the database layer failed")
    }
  }
}

/// Runs a piece of database work and turns what it throws into this layer's error.
func translatingErrors<Value>(_ body: () throws -> Value) throws(KeychainStoreError) -> Value {
  do { return try body() } catch { throw KeychainStoreError(fromDatabase: error) }
}
