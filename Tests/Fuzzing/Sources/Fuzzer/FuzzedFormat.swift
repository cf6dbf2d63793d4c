import Basics
import KeychainCrypto
import KeychainFormats

/// The formats that are parsed from arbitrary bytes.
enum FuzzedFormat: String, CaseIterable, FuzzedInput {
  case keybag
  case itemBlob = "item-blob"
  case accessControlledItemBlob = "access-control-blob"
  case databaseItem = "database-item"
  case persistentReference = "persistent-reference"
  case der
  case binaryPlist = "binary-plist"
  case xmlPlist = "xml-plist"
  case fileRecord = "file-record"
  case oldManifest = "old-manifest"
  case keychainFile = "keychain-file"
  case sealedItem = "sealed-item"

  /// Parses the bytes, and stops the process if the value is not the same after it is written and parsed again.
  ///
  /// Bytes that do not follow the format are expected, so their errors are not findings.
  func run(_ bytes: [UInt8]) {
    do throws(FormatError) {
      switch self {
      case .keybag: try checkKeybag(bytes)
      case .itemBlob: try checkItemBlob(bytes)
      case .accessControlledItemBlob:
        let blob = try AccessControlledItemBlob(parsing: bytes)
        expect(blob.serialized() == bytes, "a blob with access control is written as it was read")
      case .databaseItem: try checkDatabaseItem(bytes)
      case .persistentReference:
        let reference = try PersistentReference(parsing: bytes)
        expect(try reference.serialized() == bytes, "a reference is written as it was read")
      case .der:
        // Like Apple's decoder, this decoder accepts input that the encoder never writes: entitlements, numeric strings and
        // unsorted pairs. The bytes may therefore differ.
        try checkPropertyList(bytes, "DER", decode: DERPropertyList.decode, encode: DERPropertyList.encode)
      case .binaryPlist:
        // Nulls and sets are decoded, but never encoded.
        try checkPropertyList(
          bytes, "a property list", decode: { (bytes) throws(FormatError) in try BinaryPlist.decode(bytes) },
          encode: BinaryPlist.encode)
      case .xmlPlist:
        try checkPropertyList(
          bytes, "a property list in XML", decode: { (bytes) throws(FormatError) in try XMLPlist.decode(bytes) },
          encode: XMLPlist.encode)
      case .fileRecord: try checkFileRecord(bytes)
      case .oldManifest: try checkOldManifest(bytes)
      case .keychainFile: try checkKeychainFile(bytes)
      case .sealedItem:
        guard let secret = EncryptedSamples.open(bytes) else { return }
        expect(EncryptedSamples.secrets.contains(secret), "a decrypted secret is one of the samples")
      }
    } catch {
      // The bytes do not follow the format. The description of the error must not fail either.
      _ = String(describing: error)
    }
  }

  private func checkKeybag(_ bytes: [UInt8]) throws(FormatError) {
    let keybag = try Keybag(parsing: bytes)
    expect(keybag.serialized() == bytes, "a keybag is written as it was read")
    try? keybag.validate()
  }

  private func checkItemBlob(_ bytes: [UInt8]) throws(FormatError) {
    // The description must not crash.
    if let legacyBlob = try? LegacyItemBlob(parsing: bytes) { _ = String(describing: legacyBlob) }
    let blob = try ItemBlob(parsing: bytes)
    expect(blob.serialized() == bytes, "a blob is written as it was read")
  }

  private func checkFileRecord(_ bytes: [UInt8]) throws(FormatError) {
    let record = try FileRecord(archive: bytes)
    guard let archive = try? record.archived() else { return }
    expect(try FileRecord(archive: archive) == record, "a file record is the same after it is written and read")
  }

  private func checkOldManifest(_ bytes: [UInt8]) throws(FormatError) {
    var entries = try MBDBManifest(bytes).entries()
    var count = 0
    while try entries.next() != nil { count += 1 }
    expect(count <= bytes.count, "a manifest has no more records than bytes")
  }

  private func checkDatabaseItem(_ bytes: [UInt8]) throws(FormatError) {
    // These calls must not crash.
    if let box = try? ArchivedBox(archive: bytes) { _ = String(describing: box) }
    if let access = try? ItemAccessControl(parsing: bytes) { _ = try access.serialized() }
    let blob = try DatabaseItemBlob(parsing: bytes)
    let written = try blob.serialized()
    let reread = try DatabaseItemBlob(parsing: written)
    expect(try reread.serialized() == written, "a row's blob is written the same each time")
    expect(
      String(describing: reread) == String(describing: blob),
      "a row's blob is the same after it is written and read")
  }

  /// Decodes a property list and, if it can be encoded, checks that it stays the same.
  private func checkPropertyList(
    _ bytes: [UInt8], _ name: String, decode: ([UInt8]) throws(FormatError) -> PropertyValue,
    encode: (PropertyValue) throws(FormatError) -> [UInt8]
  ) throws(FormatError) {
    let value = try decode(bytes)
    guard let written = try? encode(value) else { return }
    let reread = try decode(written)
    expect(try encode(reread) == written, "\(name) is written the same each time")
    expect(Self.isSame(reread, as: value), "\(name) is the same after it is written and read")
  }

  private func checkKeychainFile(_ bytes: [UInt8]) throws(FormatError) {
    let file = try KeychainBackupFile(parsing: bytes)
    let written = try file.serialized()
    let reread = try KeychainBackupFile(parsing: written)
    expect(try reread.serialized() == written, "a keychain file is written the same each time")
    // The bytes of the file may differ, but the entries keep their order.
    let hasSameEntries = reread.entries.elementsEqual(file.entries) {
      $0.kind == $1.kind && $0.blob == $1.blob && $0.persistentReference == $1.persistentReference
    }
    expect(reread.keybagUUID == file.keybagUUID && hasSameEntries, "a keychain file loses no entry")
  }

  /// Returns whether a value is the same after it is written and read, apart from the order of sets and dictionaries.
  ///
  /// A value that repeats a key cannot be compared, so it counts as the same.
  private static func isSame(_ reread: PropertyValue, as original: PropertyValue) -> Bool {
    reread == original || ordered(reread) == ordered(original) || repeatsKey(original)
  }

  /// Returns whether any dictionary in the value has two keys with the same encoding. Only one of them is written.
  private static func repeatsKey(_ value: PropertyValue) -> Bool {
    switch value {
    case .array(let elements), .set(let elements): elements.contains(where: repeatsKey)
    case .dictionary(let dictionary):
      Set(dictionary.entries.map { ordered($0.key) }).count < dictionary.entries.count
        || dictionary.entries.contains { repeatsKey($0.key) || repeatsKey($0.value) }
    default: false
    }
  }

  /// Returns a description that is the same for equal values in any order, and even for NaN.
  private static func ordered(_ value: PropertyValue) -> String {
    switch value {
    case .array(let elements): "[\(elements.map(ordered).joined(separator: ","))]"
    case .set(let elements): "(\(elements.map(ordered).sorted().joined(separator: ",")))"
    case .dictionary(let dictionary):
      "{\(dictionary.entries.map { "\(ordered($0.key)):\(ordered($0.value))" }.sorted().joined(separator: ","))}"
    default: String(describing: value)
    }
  }

  func accepts(_ bytes: [UInt8]) -> Bool {
    switch self {
    case .keybag: (try? Keybag(parsing: bytes)) != nil
    case .itemBlob: (try? ItemBlob(parsing: bytes)) != nil
    case .accessControlledItemBlob: (try? AccessControlledItemBlob(parsing: bytes)) != nil
    case .databaseItem:
      (try? DatabaseItemBlob(parsing: bytes)) != nil || (try? ArchivedBox(archive: bytes)) != nil
        || (try? ItemAccessControl(parsing: bytes)) != nil
    case .persistentReference: (try? PersistentReference(parsing: bytes)) != nil
    case .der: (try? DERPropertyList.decode(bytes)) != nil
    case .binaryPlist: (try? BinaryPlist.decode(bytes)) != nil
    case .xmlPlist: (try? XMLPlist.decode(bytes)) != nil
    case .fileRecord: (try? FileRecord(archive: bytes)) != nil
    case .oldManifest:
      (try? MBDBManifest(bytes)).map { manifest in
        var entries = manifest.entries()
        return (try? entries.next()) != nil
      } ?? false
    case .keychainFile: (try? KeychainBackupFile(parsing: bytes))?.entries.isEmpty == false
    case .sealedItem: EncryptedSamples.open(bytes) != nil
    }
  }
}
