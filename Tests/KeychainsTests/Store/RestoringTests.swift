import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Restoring items into a keychain")
struct RestoringTests {
  /// Restores an item into an empty keychain and returns the stored item.
  private func restored(_ item: KeychainItem, reference: [UInt8]? = nil) throws -> KeychainItem {
    let keychain = try Keychain()
    #expect(try keychain.restore(item, reference: reference).outcome == .insertsNew)
    return try keychain.only(item.kind)
  }

  @Test("Dates and UUID come from the backup, and the digest is computed again")
  func attributesFromBackup() throws {
    let item = KeychainItem.genericPassword().dated(77).with([
      .uuid: .string("7F7A6E46-0000-4000-8000-000000000001"), .digest: .data([UInt8](repeating: 0, count: 20)),
      AttributeCode(rawValue: "future"): .string("kept"),
    ])
    let keychain = try Keychain()
    try keychain.restore(item)
    let stored = try keychain.only()
    #expect(stored.creationDate == .seconds(1))
    #expect(stored.modificationDate == .seconds(77))
    #expect(stored[.uuid] == item[.uuid])
    #expect(stored["future"] == .string("kept"))
    #expect(stored[.digest]?.dataValue == SHA1.hash(try item.digestEncoding().withBytes { Array($0) }))
    #expect(try keychain.sql("SELECT cdat, mdat FROM genp") == [["1.0", "77.0"]])
  }

  @Test("An item without a UUID and persistent reference gets random ones")
  func randomIdentifiers() throws {
    let stored = try restored(.genericPassword())
    #expect(stored[.uuid]?.stringValue?.count == 36)
    #expect(stored[.persistentReference]?.dataValue?.count == 16)
    #expect(stored.modificationDate == nil)
  }

  @Test("A valid reference stored next to an item takes precedence over the one inside it")
  func references() throws {
    let referenceInItem = [UInt8](repeating: 0x11, count: 16)
    let referenceBesideItem = [UInt8](repeating: 0x22, count: 16)
    let item = KeychainItem.genericPassword().with([.persistentReference: .data(referenceInItem)])
    func restoredReference(_ bytes: [UInt8]?) throws -> [UInt8]? {
      try restored(item, reference: bytes)[.persistentReference]?.dataValue
    }
    #expect(try restoredReference(Array("genp".utf8) + referenceBesideItem) == referenceBesideItem)
    let referenceToOtherTable = Array("inet".utf8) + referenceBesideItem
    let referenceByRowNumber = Array("genp".utf8) + [0, 0, 0, 0, 0, 0, 0, 9]
    for invalidReference in [nil, referenceToOtherTable, referenceByRowNumber, [1, 2, 3]] {
      #expect(try restoredReference(invalidReference) == referenceInItem)
    }
  }

  @Test("An item with an empty persistent reference gets a random one")
  func emptyReference() throws {
    let item = KeychainItem.genericPassword().with([.persistentReference: .data([])])
    #expect(try restored(item)[.persistentReference]?.dataValue?.count == 16)
  }

  @Test("A restore assigns all items except system keychain items to the single user")
  func users() throws {
    let user: [UInt8] = [0xA7, 0x5A, 0x3A, 0x35, 0xA5, 0x57, 0x4B, 0x10, 0xBE, 0x2E, 0x83, 0x94, 0, 0, 1, 0xF5]
    let system = try [UInt8](hex: "F623AE5CCC814CAC8AD4F0013F313511")
    for (value, expected) in [(user, []), (system, system), ([], [])] {
      let keychain = try Keychain()
      try keychain.restore(.genericPassword().with([.multiUser: .data(value)]))
      #expect(try keychain.sql("SELECT musr FROM genp") == [[expected.isEmpty ? "''" : "x" + expected.hex]])
    }
  }

  @Test("Safari's old passwords become synchronized")
  func inferredSync() throws {
    let safari = KeychainItem.internetPassword(group: "com.apple.cfnetwork")
    #expect(try restored(safari).isSynchronizable)
  }

  @Test("A password that becomes synchronized conflicts with the synchronized row")
  func inferredSyncConflict() throws {
    let keychain = try Keychain()
    let safari = KeychainItem.internetPassword(group: "com.apple.cfnetwork")
    try keychain.restore(safari.with([.synchronizable: .integer(1)]).dated(10))
    #expect(try keychain.restore(safari.dated(20)).outcome == .replaces(.existingOlder))
    #expect(try keychain.sql("SELECT sync, mdat FROM inet") == [["1", "20.0"]])
  }

  private static let constraints = PropertyValue.dictionary(["od": .boolean(true)])

  @Test("An access control in a backup is not restored")
  func accessControlInBackup() throws {
    let item = KeychainItem.genericPassword()
    #expect(try restored(item.with([.accessControl: Self.constraints]))[.accessControl] == nil)
    #expect(try restored(item.with([.accessControl: .data([1])]))[.accessControl] == nil)
  }

  @Test("An item that is preserved during a restore keeps its access control")
  func accessControlOfPreservedItem() throws {
    let item = KeychainItem.genericPassword().with([.accessControl: Self.constraints])
    let keychain = try Keychain()
    let preserved = try IncomingItem(preserved: item)
    try keychain.store.restore { (transaction) throws(KeyhaulError) in
      try transaction.importItem(preserved, keys: keychain.keys, random: keychain.random)
    }
    #expect(try keychain.only()[.accessControl] == Self.constraints)
  }

  @Test("The largest item can be stored, and a larger one is rejected before the restore begins")
  func size() throws {
    func item(secretByteCount: Int) -> KeychainItem {
      var item = KeychainItem.genericPassword()
      item.secret = SensitiveBytes(copying: [UInt8](repeating: 7, count: secretByteCount))
      return item
    }
    // In DER, the length field of a secret has the same size from 16 MiB on.
    let sampleByteCount = 16 << 20
    let encodedByteCount = try IncomingItem(item(secretByteCount: sampleByteCount)).item.derDictionary().count
    let overhead = encodedByteCount - sampleByteCount
    let largest = IncomingItem.maximumByteCount - overhead
    #expect(try restored(item(secretByteCount: largest)).secret?.count == largest)
    let error = #expect(throws: KeychainRuleError.self) { try IncomingItem(item(secretByteCount: largest + 1)) }
    #expect(error?.code == .decode)
  }

  @Test("A restore first deletes all rows except those that are synchronized, shared, or in preserved groups")
  func deletion() throws {
    let keychain = try Keychain()
    let rows: [(name: String, item: KeychainItem, stays: Bool)] = [
      ("plain", .genericPassword("plain"), false),
      ("synced", .genericPassword("synced").with([.synchronizable: .integer(1)]), true),
      ("this device only", .genericPassword("device", as: .whenUnlockedThisDeviceOnly), false),
      ("passcode", .genericPassword("passcode", as: .whenPasscodeSetThisDeviceOnly), false),
      ("sos", .genericPassword("a", group: "com.apple.security.sos"), true),
      ("sos user", .genericPassword("a", group: "com.apple.security.sos-usercredential"), true),
      ("ckks", .genericPassword("a", group: "com.apple.security.ckks"), true),
      ("ego", .genericPassword("a", group: "com.apple.security.egoIdentities"), true),
      ("octagon", .genericPassword("a", group: "com.apple.security.octagon"), true),
      ("nearly", .genericPassword("a", group: "com.apple.security.octagon2"), false),
      ("bound", .genericPassword("bound").with([.systemBound: .integer(1)]), false),
      ("shared", .genericPassword("shared").with([.sharingGroup: .string("family")]), true),
      ("token", .genericPassword("token").with([.tokenID: .string("com.apple.setoken")]), false),
      ("tombstone", .genericPassword("tomb").with([.tombstone: .integer(1), .synchronizable: .integer(1)]), true),
      ("local tombstone", .genericPassword("tomb2").with([.tombstone: .integer(1)]), false),
      (
        "system keychain",
        .genericPassword("system").with([.multiUser: .data(IncomingItem.systemKeychainUser)]), false
      ),
      ("server", .internetPassword(), false),
    ]
    for row in rows { try keychain.restore(row.item.with([.label: .string(row.name)])) }

    let deletedCount = try keychain.store.restore { (transaction) throws(KeyhaulError) in
      try transaction.deleteNonSynced()
    }

    // The label column contains the SHA-1 of the label.
    let remaining = try ItemKind.allCases.flatMap { kind in
      try keychain.sql("SELECT labl FROM \(kind.rawValue)").joined()
    }
    let expected = rows.filter(\.stays).map { "x" + SHA1.hash(Array($0.name.utf8)).hex }
    #expect(Set(remaining) == Set(expected))
    #expect(deletedCount == rows.count { !$0.stays })
  }

  @Test("An item that is preserved, deleted and imported again keeps everything except its row number")
  func preserved() throws {
    let keychain = try Keychain()
    try keychain.restore(.genericPassword("bound").dated(50).with([.uuid: .string("U")]))
    let itemBefore = try keychain.only()

    let preserved = try keychain.store.rows(includingTombstones: true, keys: keychain.keys).compactMap(\.item)
      .map { try IncomingItem($0) }
    try keychain.store.restore { (transaction) throws(KeyhaulError) in
      try transaction.deleteNonSynced()
      for item in preserved {
        try transaction.importItem(item, keys: keychain.keys, random: keychain.random)
      }
    }

    #expect(try keychain.only().attributes == itemBefore.attributes)
    #expect(try keychain.sql("SELECT rowid FROM genp") == [["2"]])
  }

  @Test("An error during a restore leaves the keychain as it was")
  func rollback() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("old"))
    try keychain.add(.internetPassword())
    let rowsBefore = try ItemKind.allCases.map { try keychain.sql("SELECT * FROM \($0.rawValue)") }
    let incoming = try IncomingItem(.genericPassword("new"))

    let abort = KeyhaulError(.cancelled, "the test stopped it")
    #expect(throws: abort) {
      try keychain.store.restore { (transaction) throws(KeyhaulError) in
        try transaction.deleteNonSynced()
        try transaction.importItem(incoming, keys: keychain.keys, random: keychain.random)
        throw abort
      }
    }

    #expect(try ItemKind.allCases.map { try keychain.sql("SELECT * FROM \($0.rawValue)") } == rowsBefore)
    try keychain.add(.genericPassword("after"))
  }

  @Test("After a power failure during a restore, the database has its old content")
  func powerLoss() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("old"))
    let incoming = try (0..<500).map { try IncomingItem(.genericPassword("new \($0)")) }
    let copy = keychain.directory.path("copy.db")

    try keychain.store.restore { (transaction) throws(KeyhaulError) in
      try transaction.deleteNonSynced()
      for item in incoming { try transaction.importItem(item, keys: keychain.keys, random: keychain.random) }
      for suffix in ["", "-wal"] {
        do {
          try FileManager.default.copyItem(atPath: keychain.path + suffix, toPath: copy + suffix)
        } catch {
          Issue.record("the files could not be copied: \(error)")
        }
      }
    }

    let recovered = try KeychainStore.open(at: copy).find(ItemQuery(), keys: keychain.keys)
    #expect(recovered.items.map(\.item[.account]) == [.string("old")])
    #expect(try keychain.store.count(of: .genericPassword) == 500)
  }

  @Test("A thousand items are restored in one transaction and can all be decrypted")
  func many() throws {
    let keychain = try Keychain()
    let incoming = try (0..<1000).map { try IncomingItem(.genericPassword("account \($0)").dated(Double($0))) }
    try keychain.store.restore { (transaction) throws(KeyhaulError) in
      for item in incoming { try transaction.importItem(item, keys: keychain.keys, random: keychain.random) }
    }
    let rows = try keychain.store.rows(includingTombstones: false, keys: keychain.keys)
    #expect(rows.map { $0.item?.modificationDate } == (0..<1000).map { .seconds(Double($0)) })
    #expect(Set(rows.map(\.summary.primaryKey)) == Set(try incoming.map { try PrimaryKey(of: $0.item) }))
  }
}
