import Basics
import Foundation
import GRDB
import KeychainCrypto
import KeychainFormats
import TestSupport

@testable import KeychainRules
@testable import Keychains

/// A keychain in a temporary file, with the class keys of a device and a separate SQL connection.
final class Keychain {
  static let passcode = "271828"

  let directory: TemporaryDirectory
  let store: KeychainStore
  let keys: ClassKeys
  let random: SeededRandomSource
  private let keybag: SystemKeybag
  private let hardwareSeed: String

  /// Creates a keychain.
  ///
  /// - Parameters:
  ///   - name: The seed of all keys. Two keychains with the same name are on the same device.
  ///   - passcode: The device's passcode.
  init(_ name: String = "phone", passcode: String = Keychain.passcode) throws {
    directory = try TemporaryDirectory()
    store = try KeychainStore.create(at: directory.path("keychain-2.db"))
    random = SeededRandomSource(seed: name)
    hardwareSeed = name + " hardware"
    let newKeybag = try SystemKeybag.make(
      passcode: Secret(utf8: passcode), hardware: HardwareUID(from: SeededRandomSource(seed: hardwareSeed)), rounds: 1,
      random: random)
    keybag = newKeybag.keybag
    keys = newKeybag.classKeys
  }

  /// Returns the keys that a locked device keeps in memory.
  func lockedKeys() throws -> ClassKeys {
    let allKeys = try keybag.unlock(
      passcode: Secret(utf8: Keychain.passcode), hardware: HardwareUID(from: SeededRandomSource(seed: hardwareSeed)))
    return allKeys.dropping([
      .fileComplete, .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
    ])
  }

  var path: String { directory.path("keychain-2.db") }

  // MARK: Shortcuts

  @discardableResult
  func add(_ item: KeychainItem, at seconds: Double = 1000) throws -> StoredItem {
    try store.add(item, keys: keys, now: KeychainDate(secondsSinceReferenceDate: seconds), random: random)
  }

  @discardableResult
  func restore(_ item: KeychainItem, reference: [UInt8]? = nil) throws -> ImportResolution {
    let incoming = try IncomingItem(item, persistentReference: reference)
    return try store.restore { (transaction) throws(KeyhaulError) in
      try transaction.importItem(incoming, keys: keys, random: random)
    }
  }

  func find(_ query: ItemQuery) throws -> [StoredItem] { try store.find(query, keys: keys).items }

  /// Returns the only item of a kind.
  func only(_ kind: ItemKind = .genericPassword) throws -> KeychainItem {
    let rows = try store.rows(includingTombstones: true, keys: keys).filter { $0.summary.kind == kind }
    guard rows.count == 1, let item = rows[0].item else { throw UnexpectedRowCount(count: rows.count) }
    return item
  }

  struct UnexpectedRowCount: Error { let count: Int }

  // MARK: SQL, on a separate connection

  /// Returns the rows of a query, with each value as in SQL. Data begin with `x` and have no quotation marks.
  func sql(_ statement: String, _ arguments: StatementArguments = []) throws -> [[String]] {
    try DatabaseQueue(path: path).read { database in
      try Row.fetchAll(database, sql: statement, arguments: arguments).map { row in
        row.databaseValues.map { value in
          switch value.storage {
          case .null: "NULL"
          case .int64(let number): "\(number)"
          case .double(let number): "\(number)"
          case .string(let text): "'\(text)'"
          case .blob(let data): "x" + Array(data).hex
          }
        }
      }
    }
  }

  /// Changes the database as another program could do it.
  func tamper(_ statement: String, _ arguments: StatementArguments = []) throws {
    try DatabaseQueue(path: path).writeWithoutTransaction { try $0.execute(sql: statement, arguments: arguments) }
  }
}

extension KeychainItem {
  /// Returns the item with both dates, as in a backup.
  func dated(_ seconds: Double) -> KeychainItem {
    with([.creationDate: .date(.seconds(1)), .modificationDate: .date(.seconds(seconds))])
  }

  var secretText: String? { secret?.withBytes { String(decoding: $0, as: UTF8.self) } }
}

extension KeychainDate {
  static func seconds(_ seconds: Double) -> KeychainDate { KeychainDate(secondsSinceReferenceDate: seconds) }
}
