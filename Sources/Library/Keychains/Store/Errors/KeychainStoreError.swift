package import Basics
import CSQLite
import GRDB
import GRDBSQLite
import KeychainCrypto
import KeychainFormats
package import KeychainRules
import SystemPackage

/// Why the keychain database did not do what it was asked.
package struct KeychainStoreError: ExplainedError, Equatable {
  /// What went wrong, with the name that Apple's `SecBase.h` gives its result code.
  package enum Code: String, Sendable, CaseIterable {
    /// An item with the same primary key is there already.
    case duplicateItem
    /// No row matches what was asked for.
    case itemNotFound
    /// The key of the item's class is not in memory: the device is locked.
    case interactionNotAllowed
    /// A class that needs a passcode on a device that has none.
    case authFailed
    /// The item cannot be decrypted or read with any key this device has.
    case decode
    /// A question or an item that makes no sense.
    case parameter
    /// The kind of item has no such attribute.
    case noSuchAttribute
    /// The file could not be read or written.
    case io
    /// There is no space left; the transaction was taken back.
    case diskFull
    /// No class key at all, or the database cannot be opened.
    case notAvailable
    /// `close()` was called before.
    case closed
    /// Whoever waits for a change of many items no longer wants it; the transaction was taken back.
    case cancelled
    /// Another process holds the database.
    case busy
    /// The file is not a keychain database, or holds what does not belong there.
    case damaged
  }

  /// What went wrong, for a program to switch on.
  package let code: Code
  /// The fact found; it quotes no value of an item.
  package let reason: String

  /// Creates an error of a code and a reason.
  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// One sentence and one advice for each code.
  package var meaning: ErrorMeaning {
    switch code {
    case .duplicateItem:
      .init(.failed, "the item already exists", advice: "update the existing item, or delete it first")
    case .itemNotFound: .init(.notFound, "no item matches", advice: "search with fewer attributes")
    case .interactionNotAllowed: .init(.locked, "the item's key is not in memory", advice: "unlock the device")
    case .authFailed:
      .init(.refused, "the device has no passcode", advice: "set a passcode, or choose another protection")
    case .decode: KeychainRuleError.Code.decode.meaning
    case .parameter: KeychainRuleError.Code.parameter.meaning
    case .noSuchAttribute: KeychainRuleError.Code.noSuchAttribute.meaning
    case .io:
      .init(
        .failed, "the keychain database cannot be read or written",
        advice: "check the disk and the permissions of the device's folder")
    case .diskFull: .init(.failed, "the disk is full", advice: "free some space; nothing was changed")
    case .notAvailable: KeychainRuleError.Code.notAvailable.meaning
    case .closed: .init(.failed, "the keychain is closed", advice: "open the device again")
    case .cancelled: .init(.failed, "the change was stopped", advice: "run it again and let it finish")
    case .busy: .init(.busy, "the keychain database is in use", advice: "wait until the other process has finished")
    case .damaged: .init(.damaged, "the keychain database is damaged", advice: "restore the device from a backup")
    }
  }
}

extension KeychainStoreError {
  init(_ error: DataProtectionError) { self.init(.notAvailable, error.description) }

  /// SQLite's own message names tables and columns, never a value. What has no status of its own makes the keychain
  /// unavailable, as for Apple's daemon.
  ///
  /// - Parameter reason: The system's, of the call about a file that the error comes of.
  init(_ error: DatabaseError, _ reason: Errno? = nil) {
    // SQLite itself says that the disk is full only where a write was cut short. It also needs room to read: for the
    // index of its log.
    let isOfFile =
      [.SQLITE_IOERR, .SQLITE_CANTOPEN].contains(error.resultCode)
      || error.resultCode == .SQLITE_CORRUPT && reason.map(Database.readFailures.contains) == true
    let code: Code =
      switch error.resultCode {
      case _ where isOfFile && reason?.isDiskFull == true: .diskFull
      case _ where isOfFile && reason?.isShortage == true: .io
      case .SQLITE_FULL: .diskFull
      case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
      case .SQLITE_CORRUPT where isOfFile: .io
      case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_SCHEMA, .SQLITE_MISMATCH: .damaged
      case .SQLITE_CONSTRAINT:
        error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE ? .duplicateItem : .damaged
      case .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_NOMEM: .io
      case .SQLITE_TOOBIG: .parameter
      default: .notAvailable
      }
    let system = isOfFile ? reason.map { ", \($0.reason)" } ?? "" : ""
    self.init(code, "SQLite returned \(error.resultCode.rawValue): \(error.message ?? "no message")\(system)")
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

extension KeychainStoreError {
  /// Source: Apple `SecItemServer.c`, `SecKeybagSupport.c` (key store results to `OSStatus`).
  init(sealing error: ItemSealError) {
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

extension KeychainStoreError {
  /// What a rule says of an item or a value.
  package init(_ error: KeychainRuleError) {
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
func byRule<Value>(_ body: @autoclosure () throws(KeychainRuleError) -> Value) throws(KeychainStoreError) -> Value {
  do throws(KeychainRuleError) { return try body() } catch { throw KeychainStoreError(error) }
}

extension Database {
  /// Runs a piece of work on this database and turns what it throws into this layer's error, with the system's reason.
  @discardableResult
  func translatingErrors<Value>(_ body: () throws -> Value) throws(KeychainStoreError) -> Value {
    do {
      return try body()
    } catch let error as DatabaseError {
      throw KeychainStoreError(error, systemReason(of: error))
    } catch {
      throw KeychainStoreError(fromDatabase: error)
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
func translatingErrors<Value>(_ body: () throws -> Value) throws(KeychainStoreError) -> Value {
  do { return try body() } catch { throw KeychainStoreError(fromDatabase: error) }
}
