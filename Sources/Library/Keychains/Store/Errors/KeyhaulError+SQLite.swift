import Basics
import CSQLite
import GRDB
import GRDBSQLite
import SystemPackage

extension KeyhaulError {
  /// Creates the error for an SQLite error. SQLite's message names tables and columns but no values.
  ///
  /// - Parameters:
  ///   - error: The error of SQLite.
  ///   - systemError: The error of the last file operation, which may have caused it.
  init(sqlite error: DatabaseError, cause systemError: Errno? = nil) {
    let cause = systemError.flatMap { error.mayResult(from: $0) ? $0 : nil }
    let causeText = cause.map { ", \($0.reason)" } ?? ""
    self.init(
      Self.code(of: error, causedBy: cause),
      "SQLite returned \(error.resultCode.rawValue): \(error.message ?? "no message")\(causeText)",
      errno: error.resultCode == .SQLITE_NOMEM ? .noMemory : cause)
  }

  /// Returns the code for an SQLite error. A result code that is not listed here becomes `.notAvailable`, as in Apple's
  /// daemon.
  private static func code(of error: DatabaseError, causedBy cause: Errno?) -> Code {
    // SQLite reports a full disk only if a write was cut short. Reading also needs space, for the index of the log.
    if cause?.isDiskFull == true { return .diskFull }
    if cause?.isResourceShortage == true { return .storeIO }
    switch error.resultCode {
    case .SQLITE_FULL: return .diskFull
    case .SQLITE_BUSY, .SQLITE_LOCKED: return .storeBusy
    case .SQLITE_CORRUPT where cause != nil: return .storeIO
    case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_SCHEMA, .SQLITE_MISMATCH: return .storeDamaged
    case .SQLITE_CONSTRAINT:
      return error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE ? .duplicateItem : .storeDamaged
    case .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_NOMEM: return .storeIO
    case .SQLITE_TOOBIG: return .parameter
    default: return .notAvailable
    }
  }

  /// Converts any error of GRDB.
  init(fromDatabase error: any Error) {
    switch error {
    case let error as KeyhaulError: self = error
    case let error as DatabaseError: self.init(sqlite: error)
    default: self.init(.storeIO, "the database layer failed")
    }
  }
}

extension DatabaseError {
  /// Returns whether a file operation that failed with this system error may have caused the error.
  fileprivate func mayResult(from systemError: Errno) -> Bool {
    switch resultCode {
    case .SQLITE_IOERR, .SQLITE_CANTOPEN: true
    case .SQLITE_CORRUPT: Database.readFailures.contains(systemError)
    default: false
    }
  }
}

extension Database {
  /// Calls the closure and converts its errors, including the system error of a failed file operation.
  @discardableResult
  func translatingErrors<Value>(_ body: () throws -> Value) throws(KeyhaulError) -> Value {
    do {
      return try body()
    } catch let error as DatabaseError {
      throw KeyhaulError(sqlite: error, cause: systemError(causing: error))
    } catch {
      throw KeyhaulError(fromDatabase: error)
    }
  }

  /// Returns the system error of the file operation that caused an SQLite error; `nil` if there is none.
  private func systemError(causing error: DatabaseError) -> Errno? {
    guard let sqliteConnection else { return nil }
    switch error.resultCode {
    case .SQLITE_CORRUPT: return Self.readFailure(of: sqliteConnection)
    default:
      let number = sqlite3_system_errno(sqliteConnection)
      return number == 0 ? nil : Errno(rawValue: number)
    }
  }

  /// Returns the system error of a failed read from the database or its log. SQLite reports a failing disk as a damaged
  /// database.
  ///
  /// Source: SQLite, `unixRead` in `os_unix.c` (`SQLITE_IOERR_CORRUPTFS`) and the end of `sqlite3VdbeExec`.
  private static func readFailure(of connection: OpaquePointer) -> Errno? {
    var number: Int32 = 0
    var log: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &number)
    if readFailures.contains(Errno(rawValue: number)) { return Errno(rawValue: number) }
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log)
    _ = log?.pointee.pMethods?.pointee.xFileControl?(log, SQLITE_FCNTL_LAST_ERRNO, &number)
    return readFailures.contains(Errno(rawValue: number)) ? Errno(rawValue: number) : nil
  }

  /// The system errors of a failing disk.
  fileprivate static let readFailures: [Errno] = [.ioError, .noSuchAddressOrDevice, .outOfRange]
}

/// Calls the closure and converts its errors.
func translatingErrors<Value>(_ body: () throws -> Value) throws(KeyhaulError) -> Value {
  do { return try body() } catch { throw KeyhaulError(fromDatabase: error) }
}
