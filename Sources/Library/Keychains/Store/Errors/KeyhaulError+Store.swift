public import Basics
import CSQLite
import GRDB
import GRDBSQLite
import KeychainCrypto
import KeychainFormats
package import KeychainRules
import SystemPackage

extension KeyhaulError.Domain {
  /// The keychain database of a device. The codes have the names that Apple's `SecBase.h` gives its result codes.
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

  /// An item with the same primary key is there already.
  public static let duplicateItem = store(
    "duplicateItem", .failed, "the item already exists", advice: "update the existing item, or delete it first")
  /// No row matches the search.
  public static let itemNotFound = store(
    "itemNotFound", .notFound, "no item matches", advice: "search with fewer attributes")
  /// The key of the item's class is not in memory: the device is locked.
  public static let interactionNotAllowed = store(
    "interactionNotAllowed", .locked, "the item's key is not in memory", advice: "unlock the device")
  /// A class that needs a passcode on a device that has none.
  public static let authFailed = store(
    "authFailed", .refused, "the device has no passcode", advice: "set a passcode, or choose another protection")
  /// The item cannot be decrypted or read with any key this device has.
  public static let decode = rule(.decode)
  /// A search or an item that is not valid.
  public static let parameter = rule(.parameter)
  /// The kind of item has no such attribute.
  public static let noSuchAttribute = rule(.noSuchAttribute)
  /// The file could not be read or written.
  public static let storeIO = store(
    "io", .failed, "the keychain database cannot be read or written",
    advice: "check the disk and the permissions of the device's folder")
  /// There is no space left; the transaction was rolled back.
  public static let diskFull = store(
    "diskFull", .failed, "the disk is full", advice: "free some space; nothing was changed")
  /// There is no class key at all, or the database cannot be opened.
  public static let notAvailable = rule(.notAvailable)
  /// `close()` was called before.
  public static let closed = store("closed", .failed, "the keychain is closed", advice: "open the device again")
  /// The caller of a change of many items stopped it; the transaction was rolled back.
  public static let cancelled = store(
    "cancelled", .failed, "the change was stopped", advice: "run it again and let it finish")
  /// Another process holds the database.
  public static let storeBusy = store(
    "busy", .busy, "the keychain database is in use", advice: "wait until the other process has finished")
  /// The file is not a keychain database, or holds what does not belong there.
  public static let storeDamaged = store(
    "damaged", .damaged, "the keychain database is damaged", advice: "restore the device from a backup")

  /// Every code of the domain, for tests.
  package static let ofStore: [Self] = [
    .duplicateItem, .itemNotFound, .interactionNotAllowed, .authFailed, .decode, .parameter, .noSuchAttribute,
    .storeIO, .diskFull, .notAvailable, .closed, .cancelled, .storeBusy, .storeDamaged,
  ]
}

/// The error of the keychain database of a device.
@available(*, deprecated, renamed: "KeyhaulError")
public typealias KeychainStoreError = KeyhaulError

extension KeyhaulError {
  init(keys error: DataProtectionError) { self.init(.notAvailable, error.description) }

  /// SQLite's own message names tables and columns, never a value. What has no status of its own makes the keychain
  /// unavailable, as for Apple's daemon.
  ///
  /// - Parameter reason: The system's, of the call about a file that the error comes of.
  init(sqlite error: DatabaseError, _ reason: Errno? = nil) {
    // SQLite itself says that the disk is full only where a write was cut short. It also needs room to read: for the
    // index of its log.
    let isOfFile =
      [.SQLITE_IOERR, .SQLITE_CANTOPEN].contains(error.resultCode)
      || error.resultCode == .SQLITE_CORRUPT && reason.map(Database.readFailures.contains) == true
    let code: Code =
      switch error.resultCode {
      case _ where isOfFile && reason?.isDiskFull == true: .diskFull
      case _ where isOfFile && reason?.isShortage == true: .storeIO
      case .SQLITE_FULL: .diskFull
      case .SQLITE_BUSY, .SQLITE_LOCKED: .storeBusy
      case .SQLITE_CORRUPT where isOfFile: .storeIO
      case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_SCHEMA, .SQLITE_MISMATCH: .storeDamaged
      case .SQLITE_CONSTRAINT:
        error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE ? .duplicateItem : .storeDamaged
      case .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_NOMEM: .storeIO
      case .SQLITE_TOOBIG: .parameter
      default: .notAvailable
      }
    let system = isOfFile ? reason.map { ", \($0.reason)" } ?? "" : ""
    self.init(
      code, "SQLite returned \(error.resultCode.rawValue): \(error.message ?? "no message")\(system)",
      errno: error.resultCode == .SQLITE_NOMEM ? .noMemory : isOfFile ? reason : nil)
  }

  /// Whatever GRDB threw, as an error of this layer.
  init(fromDatabase error: any Error) {
    switch error {
    case let error as KeyhaulError: self = error
    case let error as DatabaseError: self.init(sqlite: error)
    default: self.init(.storeIO, "the database layer failed")
    }
  }
}

extension KeyhaulError {
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

  /// What a search or a change answers that meets a row with a fault which is not the row's own.
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
  /// What a rule says of an item or a value.
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

/// Asks a rule and turns what it throws into this layer's error.
func byRule<Value>(_ body: @autoclosure () throws(KeychainRuleError) -> Value) throws(KeyhaulError) -> Value {
  try converting(KeyhaulError.init(rule:), body)
}

extension Database {
  /// Runs a piece of work on this database and turns what it throws into this layer's error, with the system's reason.
  @discardableResult
  func translatingErrors<Value>(_ body: () throws -> Value) throws(KeyhaulError) -> Value {
    do {
      return try body()
    } catch let error as DatabaseError {
      throw KeyhaulError(sqlite: error, systemReason(of: error))
    } catch {
      throw KeyhaulError(fromDatabase: error)
    }
  }

  /// Why the system refused the call about a file that SQLite could not do without; `nil` if none was refused.
  private func systemReason(of error: DatabaseError) -> Errno? {
    guard let sqliteConnection else { return nil }
    switch error.resultCode {
    case .SQLITE_CORRUPT: return Self.readFailure(of: sqliteConnection)
    default:
      let number = sqlite3_system_errno(sqliteConnection)
      return number == 0 ? nil : Errno(rawValue: number)
    }
  }

  /// Of a disk that fails on reading SQLite says that the database is damaged; what the system said stands with the file
  /// or its log.
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

  fileprivate static let readFailures: [Errno] = [.ioError, .noSuchAddressOrDevice, .outOfRange]
}

/// Runs a piece of work on databases and turns what it throws into this layer's error.
func translatingErrors<Value>(_ body: () throws -> Value) throws(KeyhaulError) -> Value {
  do { return try body() } catch { throw KeyhaulError(fromDatabase: error) }
}
