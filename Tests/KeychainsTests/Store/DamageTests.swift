import Basics
import GRDB
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Damaged keychain rows")
struct DamagedRowTests {
  private func keychainWithThreeItems() throws -> Keychain {
    let keychain = try Keychain()
    for name in ["a", "b", "c"] { try keychain.add(.genericPassword(name)) }
    return keychain
  }

  /// Returns whether each row is undecodable.
  private func undecodableRows(_ keychain: Keychain, keys: ClassKeys) throws -> [Bool] {
    try keychain.store.rows(includingTombstones: false, keys: keys).map { $0.fault?.isPermanent ?? false }
  }

  @Test("A flipped bit in an encrypted item makes only that item undecodable")
  func flippedBits() throws {
    let keychain = try keychainWithThreeItems()
    let hex = try #require(try keychain.sql("SELECT hex(data) FROM genp WHERE rowid = 2").first?.first)
    let encrypted = try [UInt8](hex: String(hex.dropFirst().dropLast()))
    for index in stride(from: 0, to: encrypted.count, by: encrypted.count / 40) + [8, 12, encrypted.count - 1] {
      var damagedItem = encrypted
      damagedItem[index] ^= 0x01
      try keychain.store.write { (transaction) throws(KeyhaulError) in
        try transaction.database.run("UPDATE genp SET data = ? WHERE rowid = 2", [.blob(damagedItem)])
      }
      #expect(try undecodableRows(keychain, keys: keychain.keys) == [false, true, false], "\(index)")
    }
  }

  @Test(
    "A wrong column value makes only its own row undecodable",
    arguments: [
      "data = NULL", "data = 'text'", "data = 7", "data = x''", "data = zeroblob(100)", "pdmn = NULL, data = NULL",
      "sha1 = 'x', cdat = 'x', mdat = x'00', data = 1.5", "tomb = 0.0, sync = 'x', data = NULL",
      "agrp = x'FF', data = NULL", "UUID = 5, persistref = 'text', data = NULL", "clip = 'x', data = NULL",
      "data = x'08000000'", "data = x'06000080FFFFFFFF'",
    ])
  func wrongTypes(change: String) throws {
    let keychain = try keychainWithThreeItems()
    try keychain.tamper("UPDATE genp SET \(change) WHERE rowid = 2")
    let found = try keychain.store.find(ItemQuery(kind: .genericPassword), keys: keychain.keys)
    #expect(found.items.map(\.rowID) == [1, 3])
    #expect(found.undecodableRows.map(\.summary.reference.rowID) == [2])
    #expect(try keychain.store.rowSummaries(includingTombstones: true).count == 3)
  }

  @Test("A row that another device encrypted cannot be decoded")
  func otherDevice() throws {
    let keychain = try keychainWithThreeItems()
    let otherKeychain = try Keychain("another phone")
    #expect(try undecodableRows(keychain, keys: otherKeychain.keys) == [true, true, true])
    #expect(try undecodableRows(keychain, keys: keychain.keys) == [false, false, false])
  }

  @Test("An encrypted item that was moved to another table counts as corrupt")
  func movedData() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword())
    try keychain.add(.internetPassword())
    try keychain.tamper("UPDATE inet SET data = (SELECT data FROM genp)")
    let row = try #require(
      try keychain.store.rows(includingTombstones: false, keys: keychain.keys).first {
        $0.summary.kind == .internetPassword
      })
    #expect(try ExistingRow(row).state == .corrupt)
  }

  @Test("The reason for an undecodable row quotes no value")
  func reasons() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("planted", service: "planted", secret: "planted"))
    try keychain.tamper("UPDATE genp SET data = substr(data, 1, 60)")
    let rows = try keychain.store.rows(includingTombstones: false, keys: keychain.keys)
    guard case .undecodable(let reason)? = rows.first?.fault else {
      Issue.record("the row was decoded")
      return
    }
    #expect(!reason.contains("planted"))
    #expect(!reason.isEmpty)
  }
}

@Suite("Errors of the keychain store")
struct KeychainErrorTests {
  @Test("Every error has a category, a summary and advice")
  func categories() {
    let expected: [(KeyhaulError.Code, ErrorCategory)] = [
      (.duplicateItem, .failed), (.itemNotFound, .notFound), (.interactionNotAllowed, .locked), (.authFailed, .refused),
      (.decode, .damaged), (.parameter, .failed), (.noSuchAttribute, .failed), (.storeIO, .failed),
      (.diskFull, .failed),
      (.notAvailable, .failed), (.closed, .failed), (.cancelled, .failed), (.storeBusy, .busy),
      (.storeDamaged, .damaged),
    ]
    #expect(Set(expected.map(\.0)) == Set(KeyhaulError.Code.storeCodes))
    for (code, category) in expected {
      let error = KeyhaulError(code, "a reason")
      #expect(error.category == category)
      #expect(error.description == "\(error.summary): a reason")
      #expect(!error.advice.isEmpty)
    }
  }

  @Test("An error of a rule keeps its reason and code", arguments: KeychainRuleError.Code.allCases)
  func ruleErrors(code: KeychainRuleError.Code) {
    let rule = KeychainRuleError(code, "a reason")
    let error = KeyhaulError(rule: rule)
    #expect(error.code.rawValue == code.rawValue)
    #expect(error.reason == "a reason")
    #expect(error.meaning == rule.meaning)
  }

  @Test(
    "SQLite's result codes are mapped to the store's errors",
    arguments: [
      (.SQLITE_FULL, .diskFull), (.SQLITE_BUSY, .storeBusy), (.SQLITE_LOCKED, .storeBusy),
      (.SQLITE_CORRUPT, .storeDamaged),
      (.SQLITE_NOTADB, .storeDamaged), (.SQLITE_CANTOPEN, .notAvailable), (.SQLITE_IOERR, .storeIO),
      (.SQLITE_READONLY, .storeIO),
      (.SQLITE_CONSTRAINT_UNIQUE, .duplicateItem), (.SQLITE_CONSTRAINT_NOTNULL, .storeDamaged),
      (.SQLITE_TOOBIG, .parameter),
      (.SQLITE_IOERR_FSYNC, .storeIO),
    ] as [(ResultCode, KeyhaulError.Code)])
  func resultCodes(result: ResultCode, code: KeyhaulError.Code) {
    let error = KeyhaulError(sqlite: DatabaseError(resultCode: result, sql: "SELECT 'planted'"))
    #expect(error.code == code)
    #expect(!error.description.contains("planted"))
  }

  @Test(
    "If SQLite could not use a file, a full disk has its own code, and the reason ends with the system's error text",
    arguments: [
      (.SQLITE_IOERR, .noSpace, .diskFull), (.SQLITE_IOERR_SHMSIZE, .diskQuotaExceeded, .diskFull),
      (.SQLITE_CANTOPEN, .noSpace, .diskFull), (.SQLITE_IOERR, .ioError, .storeIO),
      (.SQLITE_CANTOPEN, .permissionDenied, .notAvailable), (.SQLITE_CORRUPT, .noSpace, .storeDamaged),
    ] as [(ResultCode, Errno, KeyhaulError.Code)])
  func systemErrors(result: ResultCode, cause: Errno, code: KeyhaulError.Code) {
    let error = KeyhaulError(sqlite: DatabaseError(resultCode: result), cause: cause)
    #expect(error.code == code)
    let namesCause = code != .storeDamaged
    #expect(error.reason.hasSuffix(", \(cause.reason)") == namesCause)
  }
}
