import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Database items in vectors that other code created")
struct DatabaseItemVectorTests {
  @Test("item_blobs: encrypting every item gives the recorded bytes of each part")
  func sealing() throws {
    let vectors = try DatabaseItemVector.all()
    #expect(vectors.count == 6)
    for vector in vectors {
      let expected = try vector.vector["expect"]
      let keys = try vector.keys()
      let blob = try keys.seal(
        vector.item, accessControl: vector.accessControl, version: vector.version, wrapping: vector.wrapping,
        generation: vector.storedClass.generation, vector.randomValues())
      #expect(try vector.accessControl.serialized() == expected["access_control_der"].bytes)
      #expect(try vector.item.digest() == expected["sha1"].bytes)
      #expect(try blob.attributes.wrappedKey == expected["metadata_key_archive"].bytes)
      #expect(try blob.attributes.box == expected["metadata_archive"].bytes)
      #expect(try blob.secret.box == expected["secret_archive"].bytes)
      #expect(try blob.secret.keyWrap?.wrappedKey.revealed == expected["wrapped_secret_key"].bytes)
      #expect(try blob.serialized() == expected["blob"].bytes, "\(vector.name)")

      let secret = try SensitiveBytes(expected["secret_der"])
      #expect(try DatabaseKeys.padded(secret).revealed == expected["secret_padded"].bytes)
      let classKey = try Secret(vector.vector["inputs"]["metadata_class_key"])
      let protection = try #require(vector.item.protection)
      #expect(
        try keys.wrap(classKey, for: protection, vector.wrapping).revealed == expected["metadatakeys_data"].bytes)
    }
  }

  @Test("item_blobs: every item is decrypted, with the right digest")
  func opening() throws {
    for vector in try DatabaseItemVector.all() {
      let opened = try vector.keys().open(row: vector.blob, kind: vector.item.kind)
      #expect(opened.verdict == .open, "\(vector.name): \(String(describing: opened.fault))")
      let isSecretDecrypted = opened.isOpen
      #expect(isSecretDecrypted && isSame(opened.item, vector.item), "\(vector.name)")
      // Compared as DER, because DER sorts the members, and their order in memory may differ.
      #expect(try opened.accessControl?.serialized() == vector.accessControl.serialized())
      #expect(opened.keyClass == vector.storedClass)
      #expect(opened.findings.isEmpty)
      let blob = try DatabaseItemBlob(parsing: vector.blob)
      #expect(try blob.serialized() == vector.blob)
    }
  }

  @Test("v3_rows: items of version 3 in the same tables are decrypted")
  func olderRows() throws {
    let rows = try TestVectors.databaseItems()["v3_rows"].elements
    #expect(rows.count == 4)
    for row in rows {
      let inputs = try row["inputs"]
      let keys = try DatabaseKeys(
        classKeys: inputs.has("class_key") ? [.whenUnlocked: SensitiveBytes(inputs["class_key"])] : [:])
      let opened = try keys.open(row: row["expect"]["blob"].bytes, kind: .genericPassword)
      #expect(opened.verdict == .open)
      #expect(try opened.item?.derDictionary().revealed == row["expect"]["plaintext_der"].bytes)
      #expect(opened.accessControl == nil)
    }
  }

  @Test("A well-formed item of version 6 gives the verdict `accessControl`")
  func accessControlled() throws {
    let blob = try AccessControlledItemBlob(
      hasStaticIV: true, protection: "ak", wrappedKey: [UInt8](repeating: 1, count: 40), referenceKey: [2, 3],
      ciphertext: [4], tag: [UInt8](repeating: 5, count: 16))
    let opened = try DatabaseKeys().open(row: blob.serialized(), kind: .genericPassword)
    #expect(opened.verdict == .accessControl && opened.item == nil)
  }

  /// Damaged or old rows of version 6, for which the verdict is `unsupportedVersion`. In the first row, the dictionary of
  /// keys is two bytes longer than the blob's length field states. The second row has a format of old Simulators.
  private static let namesOfUnsupportedVersions = ["v6-device", "v6-simulator"]

  @Test("faults: every damaged item gives its verdict, and only the intact parts are decrypted")
  func faults() throws {
    let faults = try TestVectors.databaseItems()["faults"].elements
    #expect(faults.count == 71)
    let names = Set(try faults.map { try $0["name"].string })
    #expect(names.isSuperset(of: Self.expectedFindings.keys))
    let blobs = try namedBlobs(in: faults)
    for fault in faults {
      // An entry without its own blob names the entry whose blob it uses (`blob_of`).
      let blobName = try fault.has("blob_of") ? fault["blob_of"].string : fault["name"].string
      let keys = try DatabaseKeys(
        wrappedMetadataKeys: classKeys("metadatakeys", in: fault), classKeys: classKeys("class_keys", in: fault))
      let opened = try keys.open(row: #require(blobs[blobName]), kind: .genericPassword)
      try check(opened, against: fault)
    }
  }

  /// Returns each blob, with the name of its entry as the key.
  private func namedBlobs(in faults: [TestVectors]) throws -> [String: [UInt8]] {
    var blobs: [String: [UInt8]] = [:]
    for fault in faults where fault.has("blob_base64") {
      blobs[try fault["name"].string] = try fault["blob_base64"].base64Bytes
    }
    return blobs
  }

  private func classKeys(_ name: String, in fault: TestVectors) throws -> [KeyClass: SensitiveBytes] {
    guard fault.has(name) else { return [:] }
    var keys: [KeyClass: SensitiveBytes] = [:]
    for (number, key) in try fault[name].members {
      keys[KeyClass(rawValue: try #require(UInt32(number)))] = try SensitiveBytes(key)
    }
    return keys
  }

  private func check(_ opened: DecryptedDatabaseItem, against fault: TestVectors) throws {
    let name = try fault["name"].string
    let details: Comment = "\(name): \(String(describing: opened.fault))"
    if Self.namesOfUnsupportedVersions.contains(name) {
      #expect(opened.verdict == .unsupportedVersion && opened.item == nil)
      return
    }
    // Like Apple's reader, Keyhaul accepts a padding if its last byte is right.
    if fault.has("note"), try fault["note"].string.hasSuffix("Apple reads it") {
      #expect(opened.isOpen && opened.verdict == .open, details)
      return
    }
    #expect(try opened.verdict.rawValue == fault["verdict"].string, details)
    let decryptedParts = try fault["opens"].elements.map { try $0.string }
    #expect((opened.item != nil) == decryptedParts.contains("attributes"), "\(name)")
    let isSecretDecrypted = opened.isOpen
    #expect(isSecretDecrypted == decryptedParts.contains("secret"), "\(name)")
    if let expectedFindings = Self.expectedFindings[name] { #expect(opened.findings == expectedFindings) }
  }

  /// The findings about two entries, by the entry's name.
  private static let expectedFindings: [String: Set<DecryptedDatabaseItem.Finding>] = [
    // The key stores of different releases wrapped the two keys.
    "secret-key-pad-08-metadata-ff": [.mixedKeyStores],
    // 38 is class 6 with the key generation 2.
    "keyclass-38": [.generationInSimulator],
  ]
}
