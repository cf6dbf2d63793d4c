public import Basics
import CSQLite
import GRDB
import GRDBSQLite
import KeychainCrypto
import KeychainFormats
package import KeychainRules
import SystemPackage

extension KeyhaulError.Domain {
  /// Errors of a device's keychain database. The codes have the names that Apple's `SecBase.h` gives its result codes.
  public static let keychainStore = Self("keychain-store")
}

extension KeyhaulError.Code {
  private static func store(
    _ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy
  ) -> Self {
    Self(rawValue, of: .keychainStore, category, summary, advice: advice)
  }

  private static func rule(_ code: KeychainRuleError.Code) -> Self {
    store(code.rawValue, code.meaning.category, code.meaning.summary, advice: code.meaning.remedy)
  }

  /// The keychain already has an item with the same primary key.
  public static let duplicateItem = store(
    "duplicateItem", .failed, "the item already exists", advice: "update the existing item, or delete it first")
  /// No item matches the search.
  public static let itemNotFound = store(
    "itemNotFound", .notFound, "no item matches", advice: "search with fewer attributes")
  /// The key of the item's class is not in memory because the device is locked.
  public static let interactionNotAllowed = store(
    "interactionNotAllowed", .locked, "the item's key is not in memory", advice: "unlock the device")
  /// The item's class requires a passcode, and the device has none.
  public static let authFailed = store(
    "authFailed", .refused, "the device has no passcode", advice: "set a passcode, or choose another protection")
  /// None of the device's keys can decrypt the item, or it is damaged.
  public static let decode = rule(.decode)
  /// The search or the item is not valid.
  public static let parameter = rule(.parameter)
  /// The kind of item has no such attribute.
  public static let noSuchAttribute = rule(.noSuchAttribute)
  /// The file cannot be read or written.
  public static let storeIO = store(
    "io", .failed, "the keychain database cannot be read or written",
    advice: "check the disk and the permissions of the device's folder")
  /// There is no space left. The transaction was rolled back.
  public static let diskFull = store(
    "diskFull", .failed, "the disk is full", advice: "free some space; nothing was changed")
  /// There are no class keys, or the database cannot be opened.
  public static let notAvailable = rule(.notAvailable)
  /// The keychain was used after `close()`.
  public static let closed = store("closed", .failed, "the keychain is closed", advice: "open the device again")
  /// The caller stopped a change of many items. The transaction was rolled back.
  public static let cancelled = store(
    "cancelled", .failed, "the change was stopped", advice: "run it again and let it finish")
  /// Another process has locked the database.
  public static let storeBusy = store(
    "busy", .busy, "the keychain database is in use", advice: "wait until the other process has finished")
  /// The file is not a keychain database, or contains definitions that a keychain database does not have.
  public static let storeDamaged = store(
    "damaged", .damaged, "the keychain database is damaged", advice: "restore the device from a backup")

  /// All codes of the domain, for tests.
  package static let storeCodes: [Self] = [
    .duplicateItem, .itemNotFound, .interactionNotAllowed, .authFailed, .decode, .parameter, .noSuchAttribute,
    .storeIO, .diskFull, .notAvailable, .closed, .cancelled, .storeBusy, .storeDamaged,
  ]
}

extension KeyhaulError {
  init(keys error: DataProtectionError) { self.init(.notAvailable, error.description) }

  /// Creates the error for an SQLite error. SQLite's message names tables and columns but no values. A result code
  /// without a code of its own becomes `.notAvailable`, as in Apple's daemon.
  ///
  /// - Parameters:
  ///   - error: The error of SQLite.
  ///   - cause: The system error of the file operation that caused it.
  init(sqlite error: DatabaseError, cause: Errno? = nil) {
    // SQLite reports a full disk only if a write was cut short. Reading also needs space, for the index of the log.
    let isFileError =
      [.SQLITE_IOERR, .SQLITE_CANTOPEN].contains(error.resultCode)
      || error.resultCode == .SQLITE_CORRUPT && cause.map(Database.readFailures.contains) == true
    let code: Code =
      switch error.resultCode {
      case _ where isFileError && cause?.isDiskFull == true: .diskFull
      case _ where isFileError && cause?.isResourceShortage == true: .storeIO
      case .SQLITE_FULL: .diskFull
      case .SQLITE_BUSY, .SQLITE_LOCKED: .storeBusy
      case .SQLITE_CORRUPT where isFileError: .storeIO
      case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_SCHEMA, .SQLITE_MISMATCH: .storeDamaged
      case .SQLITE_CONSTRAINT:
        error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE ? .duplicateItem : .storeDamaged
      case .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_NOMEM: .storeIO
      case .SQLITE_TOOBIG: .parameter
      default: .notAvailable
      }
    let system = isFileError ? cause.map { ", \($0.reason)" } ?? "" : ""
    self.init(
      code, "SQLite returned \(error.resultCode.rawValue): \(error.message ?? "no message")\(system)",
      errno: error.resultCode == .SQLITE_NOMEM ? .noMemory : isFileError ? cause : nil)
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

extension KeyhaulError {
  /// Creates the error for an item that cannot be encrypted or decrypted.
  ///
  /// Source: Apple `SecItemServer.c`, `SecKeybagSupport.c` (key store results to `OSStatus`).
  init(sealing error: ItemCryptoError) {
    switch error.fault {
    case .locked: self.init(.interactionNotAllowed, error.reason)
    case .noClassKey where error.keyClass == .whenPasscodeSetThisDeviceOnly:
      self.init(.authFailed, "the item's class exists only while a passcode is set")
    case .malformed: self.init(.parameter, error.reason)
    case .noClassKey, .deviceBound, .classKeyDamaged, .keyUnwrapFailed, .tagMismatch, .unsupportedVersion, .failed:
      self.init(.notAvailable, error.reason)
    }
  }

  /// Creates the error for a search or a change with a row that cannot be decrypted.
  package init(_ fault: RowFault) {
    switch fault {
    case .undecodable(let reason): self.init(.decode, reason)
    case .locked(let keyClass):
      self.init(.interactionNotAllowed, "the key of class \(keyClass.rawValue) is not in memory")
    case .keyUnavailable(let keyClass): self.init(.notAvailable, "there is no key of class \(keyClass.rawValue)")
    }
  }
}

extension KeyhaulError {
  /// Creates the error for an item or value that violates a rule.
  package init(rule error: KeychainRuleError) {
    let code: Code =
      switch error.code {
      case .parameter: .parameter
      case .noSuchAttribute: .noSuchAttribute
      case .decode: .decode
      case .notAvailable: .notAvailable
      }
    self.init(code, error.reason)
  }
}

/// Calls a rule and converts its error.
func translatingRuleErrors<Value>(_ body: @autoclosure () throws(KeychainRuleError) -> Value) throws(KeyhaulError)
  -> Value
{
  try converting(KeyhaulError.init(rule:), body)
}

extension Database {
  /// Runs the closure and converts its errors, including the system error of a failed file operation.
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

/// Runs the closure and converts its errors.
func translatingErrors<Value>(_ body: () throws -> Value) throws(KeyhaulError) -> Value {
  do { return try body() } catch { throw KeyhaulError(fromDatabase: error) }
}
