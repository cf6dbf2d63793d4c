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
    var blobs: [String: [UInt8]] = [:]
    for fault in faults where fault.has("blob_base64") {
      blobs[try fault["name"].string] = try fault["blob_base64"].base64Bytes
    }
    for item in try vectors["item_blobs"].elements { blobs[try item["name"].string] = try item["expect"]["blob"].bytes }
    for fault in faults {
      let name = try fault["name"].string
      let blob = try #require(blobs[fault.has("blob_of") ? fault["blob_of"].string : name], "\(name)")
      let database = try KeychainDatabase(file: file(holding: blob, keys: fault["metadatakeys"].members))
      let classKeys = fault.has("class_keys") ? try fault["class_keys"].members : [:]
      let keys = try database.keys(
        classKeys: Dictionary(
          uniqueKeysWithValues: classKeys.map { (try keyClass($0), SensitiveBytes(copying: try $1.bytes)) }))
      let decrypted = try #require(database.decrypted(with: keys).first)
      #expect(decrypted.row.sealed == blob, "\(name)")
      guard !Self.unsupportedItems.contains(name) else {
        #expect(decrypted.opened.verdict == .unsupportedVersion && decrypted.opened.item == nil, "\(name)")
        continue
      }
      // Only the last byte of the padding is correct. Apple decrypts such an item.
      if fault.has("note"), try fault["note"].string.hasSuffix("Apple reads it") {
        #expect(decrypted.opened.isOpen && decrypted.opened.verdict == .open, "\(name)")
        continue
      }
      #expect(decrypted.opened.verdict.rawValue == (try fault["verdict"].string), "\(name)")
      let decryptableParts = try fault["opens"].elements.map { try $0.string }
      #expect((decrypted.opened.item != nil) == decryptableParts.contains("attributes"), "\(name)")
      #expect(decrypted.opened.isOpen == decryptableParts.contains("secret"), "\(name)")
    }
  }

  private func keyClass(_ text: String) throws -> KeyClass { KeyClass(rawValue: try #require(UInt32(text))) }

  private func file(holding blob: [UInt8], keys: [String: TestVectors]) throws -> [UInt8] {
    let rows = try keys.sorted { $0.key < $1.key }.map { keyClass, data in
      "INSERT INTO metadatakeys(keyclass, data) VALUES ('\(keyClass)', x'\(try data.bytes.hex)');"
    }
    return try DatabaseFile.changed(
      by: "UPDATE genp SET data = x'\(blob.hex)' WHERE rowid = 1; DELETE FROM metadatakeys;"
        + rows.joined())
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
