import Basics
import KeychainCrypto
import KeychainFormats
import Keychains
import TestSupport
import Testing

@Suite("Damaged rows of a keychain database")
struct FaultyRowTests {
  /// Items of version 6, which the reader of the vectors decrypts but Keyhaul does not.
  private static let unsupportedItems: Set = ["v6-device", "v6-simulator"]

  @Test("The 71 faults of the test vectors result in the expected verdicts and decrypted parts")
  func faults() throws {
    let vectors = try TestVectors.databaseItems()
    let faults = try vectors["faults"].elements
    #expect(faults.count == 71)
    let encryptedItems = try encryptedItemsByName(in: vectors)
    for fault in faults {
      let name = try fault["name"].string
      let itemName = fault.has("blob_of") ? try fault["blob_of"].string : name
      let encryptedItem = try #require(encryptedItems[itemName], "\(name)")
      let decrypted = try decryptedRow(with: encryptedItem, fault)
      #expect(decrypted.row.encryptedItem == encryptedItem, "\(name)")
      try expect(decrypted.result, from: fault, name: name)
    }
  }

  private func expect(_ result: DecryptedDatabaseItem, from fault: TestVectors, name: String) throws {
    guard !Self.unsupportedItems.contains(name) else {
      #expect(result.verdict == .unsupportedVersion && result.item == nil, "\(name)")
      return
    }
    // In a fault with this note, only the last byte of the padding is correct. Apple and Keyhaul decrypt the item.
    if fault.has("note"), try fault["note"].string.hasSuffix("Apple reads it") {
      #expect(result.isOpen && result.verdict == .open, "\(name)")
      return
    }
    #expect(result.verdict.rawValue == (try fault["verdict"].string), "\(name)")
    let decryptableParts = try fault["opens"].elements.map { try $0.string }
    #expect((result.item != nil) == decryptableParts.contains("attributes"), "\(name)")
    #expect(result.isOpen == decryptableParts.contains("secret"), "\(name)")
  }

  /// Returns the encrypted items of the faults and of the valid items, to which some faults refer.
  private func encryptedItemsByName(in vectors: TestVectors) throws -> [String: [UInt8]] {
    var items: [String: [UInt8]] = [:]
    for fault in try vectors["faults"].elements where fault.has("blob_base64") {
      items[try fault["name"].string] = try fault["blob_base64"].base64Bytes
    }
    for item in try vectors["item_blobs"].elements { items[try item["name"].string] = try item["expect"]["blob"].bytes }
    return items
  }

  /// Writes an encrypted item and the metadata keys of a fault to the first row of a database, and decrypts the row.
  private func decryptedRow(
    with encryptedItem: [UInt8], _ fault: TestVectors
  ) throws -> KeychainDatabase.DecryptedRow {
    let metadataKeys = try fault["metadatakeys"].members.sorted { $0.key < $1.key }
    let insertions = try metadataKeys.map { keyClass, data in
      "INSERT INTO metadatakeys(keyclass, data) VALUES ('\(keyClass)', x'\(try data.bytes.hex)');"
    }
    let database = try KeychainDatabase(
      file: DatabaseFile.changed(
        by: "UPDATE genp SET data = x'\(encryptedItem.hex)' WHERE rowid = 1; DELETE FROM metadatakeys;"
          + insertions.joined()))
    let keysByClass = fault.has("class_keys") ? try fault["class_keys"].members : [:]
    var classKeys: [KeyClass: SensitiveBytes] = [:]
    for (number, key) in keysByClass {
      let keyClass = KeyClass(rawValue: try #require(UInt32(number)))
      classKeys[keyClass] = SensitiveBytes(copying: try key.bytes)
    }
    return try #require(try database.decrypted(with: database.keys(classKeys: classKeys)).first)
  }

  @Test("A class key that is not 32 bytes long causes an error with both lengths")
  func shortClassKey() throws {
    let database = try KeychainDatabase(file: DatabaseFile.bytes())
    let error = #expect(throws: DataProtectionError.self) {
      try database.keys(classKeys: [.whenUnlocked: SensitiveBytes(copying: [UInt8](repeating: 1, count: 31))])
    }
    #expect(error?.code == .malformed)
    #expect(error?.reason.contains("31") == true && error?.reason.contains("32") == true)
  }
}
