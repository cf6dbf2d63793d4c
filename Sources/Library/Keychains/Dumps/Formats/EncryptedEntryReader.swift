import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// A reader for entries encrypted as in a device's database, with their keys stored beside them (`.encryptedEntries`).
///
/// ```
/// classKeyIdxToUnwrappedMetadataClassKey  the unwrapped key for the attributes of each class, by the class's number
/// keychainEntries                         an array of entries:
///   table, version, classKeyIdx           the table (absent in older files), the version of the blob, the class
///   metadata                              the encrypted attributes: ciphertext, wrappedKey, tamperCheck
///   data                                  the encrypted secret: ciphertext, unwrappedKey, tamperCheck
/// ```
///
/// Source: public readers of such files; Apple `SecDbKeychainItemV7.m` for the encrypted parts.
struct EncryptedEntryReader {
  private static let entriesKey = "keychainEntries"
  private static let keysKey = "classKeyIdxToUnwrappedMetadataClassKey"
  private static let rawKey = "rawData"
  private static let keyByteCount = 32

  private let keys: DatabaseKeys
  /// The classes whose keys are not usable, each with its fault.
  private let unusableKeys: [KeyClass: DumpFault]
  private var collector: DumpCollector

  /// Returns whether a dictionary has both the entries and the keys.
  static func recognizes(_ root: PropertyDictionary) -> Bool {
    root[entriesKey]?.arrayValue != nil && root[keysKey]?.dictionaryValue != nil
  }

  /// Reads all entries of a dictionary.
  ///
  /// - Throws: `.unknownDump` if the dictionary also has tables, `.dumpOverLimit` if there are more entries than a dump
  ///   may have, `.dumpFailed` if the ciphers do not work.
  static func read(_ root: PropertyDictionary, _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    guard !TablesReader.recognizes(root) else {
      throw KeyhaulError(.unknownDump, "it has both encrypted entries and tables, which no known tool writes")
    }
    var reader = try EncryptedEntryReader(keys: root[keysKey]?.dictionaryValue ?? PropertyDictionary(), limit)
    reader.collector.repeatedKeyCount += repeatedKeyCount(in: root)
    for entry in root[entriesKey]?.arrayValue ?? [] {
      let position = try reader.collector.countEntry()
      try reader.append(entry, at: position)
    }
    return reader.collector.dump()
  }

  private init(keys storedKeys: PropertyDictionary, _ limit: Int) throws(KeyhaulError) {
    var usableKeys: [KeyClass: SensitiveBytes] = [:]
    var unusableKeys: [KeyClass: DumpFault] = [:]
    collector = DumpCollector(.encryptedEntries, acceptingAtMost: limit)
    collector.repeatedKeyCount += Self.repeatedKeyCount(in: storedKeys)
    for pair in storedKeys.entries {
      guard let name = pair.key.stringValue, let number = UInt32(name), String(number) == name else { continue }
      let keyClass = KeyClass(rawValue: number)
      guard usableKeys[keyClass] == nil, unusableKeys[keyClass] == nil else { continue }
      if let bytes = Self.bytes(pair.value), bytes.count >= Self.keyByteCount {
        usableKeys[keyClass] = Self.key(bytes)
      } else {
        unusableKeys[keyClass] = DumpFault(
          .malformed, "the key for attributes of class \(number) is not data of \(Self.keyByteCount) bytes or more")
      }
    }
    keys = try Self.translatingErrors { () throws(DataProtectionError) in try DatabaseKeys(metadataKeys: usableKeys) }
    self.unusableKeys = unusableKeys
  }

  // MARK: Single entries

  private mutating func append(_ value: PropertyValue, at position: Int) throws(KeyhaulError) {
    guard case .dictionary(let entry) = value else { return collector.skip(.notAnItem) }
    collector.repeatedKeyCount += Self.repeatedKeyCount(in: entry)
    // The layout of such an entry is not publicly described.
    guard entry[Self.rawKey] == nil else { return collector.skip(.unknownLayout) }
    guard let table = entry["table"] else { return try appendWithoutTable(entry, at: position) }
    guard let kind = table.stringValue.flatMap(ItemKind.init(rawValue:)) else {
      return collector.skipEntry(ofTable: table.stringValue)
    }
    let (content, hasMismatchedDigest) = try content(of: entry, as: kind)
    collector.append(
      DumpedItem(
        entryPosition: position, kind: kind, tableSource: .stated, content: content,
        hasMismatchedDigest: hasMismatchedDigest))
  }

  /// Adds an entry of an older file, which names no table. The decrypted attributes determine the table.
  private mutating func appendWithoutTable(_ entry: PropertyDictionary, at position: Int) throws(KeyhaulError) {
    let (contentAsPassword, _) = try content(of: entry, as: .genericPassword)
    let password: KeychainItem
    switch contentAsPassword {
    case .open(let item), .attributesOnly(let item, _): password = item
    case .undecryptable: return collector.skip(.noTable)
    }
    guard let kind = ItemArrayReader.kind(determinedBy: { password[AttributeCode(rawValue: $0)] != nil }) else {
      return collector.append(
        DumpedItem(entryPosition: position, kind: .genericPassword, tableSource: .inferred, content: contentAsPassword))
    }
    let (content, hasMismatchedDigest) = try content(of: entry, as: kind)
    collector.append(
      DumpedItem(
        entryPosition: position, kind: kind, tableSource: .inferred, content: content,
        hasMismatchedDigest: hasMismatchedDigest))
  }

  private mutating func content(
    of entry: PropertyDictionary, as kind: ItemKind
  ) throws(KeyhaulError) -> (content: DumpedItem.Content, hasMismatchedDigest: Bool) {
    let keyClass = entry["classKeyIdx"]?.integerValue.flatMap(UInt32.init(exactly:)).map(KeyClass.init(rawValue:))
    let protection = keyClass.flatMap(ProtectionClass.init(keyClass:))
    let blob: DatabaseItemBlob
    do throws(EncryptedPartError) {
      blob = try Self.blob(of: entry, keyClass)
    } catch {
      return (.undecryptable(error.fault, protection: protection), false)
    }
    if let fault = unusableKeys[blob.keyClass.withoutGeneration] {
      return (.undecryptable(fault, protection: protection), false)
    }
    let storedKey = entry["data"]?.dictionaryValue?["unwrappedKey"]
    let secretKey = storedKey.map { Self.bytes($0).map(Self.key) ?? SensitiveBytes(copying: []) }
    let decrypted = try Self.translatingErrors { [keys] () throws(DataProtectionError) in
      try keys.open(blob, kind: kind, secretKey: secretKey)
    }
    return (DumpedItem.Content(decrypted), decrypted.findings.contains(.digestDiffers))
  }

  private static func blob(of entry: PropertyDictionary, _ keyClass: KeyClass?) throws(EncryptedPartError)
    -> DatabaseItemBlob
  {
    guard let number = entry["version"]?.integerValue else { throw EncryptedPartError("it names no version") }
    guard let version = UInt32(exactly: number).flatMap(DatabaseItemBlob.Version.init(rawValue:)) else {
      throw EncryptedPartError("its version is \(number); Keyhaul decrypts versions 7 and 8", .unsupportedVersion)
    }
    guard let keyClass else { throw EncryptedPartError("it names no key class") }
    guard let attributes = entry["metadata"]?.dictionaryValue, let secret = entry["data"]?.dictionaryValue else {
      throw EncryptedPartError("it does not have both parts, metadata and data")
    }
    guard let attributesBox = bytes(attributes["ciphertext"]), let wrappedKey = bytes(attributes["wrappedKey"]),
      let attributesCheck = attributes["tamperCheck"]?.stringValue
    else { throw EncryptedPartError("a field of its metadata is missing or has the wrong type") }
    guard let secretBox = bytes(secret["ciphertext"]), let secretCheck = secret["tamperCheck"]?.stringValue else {
      throw EncryptedPartError("a field of its data is missing or has the wrong type")
    }
    do throws(FormatError) {
      return try DatabaseItemBlob(
        version: version, keyClass: keyClass,
        attributes: .init(box: attributesBox, wrappedKey: wrappedKey, tamperCheck: attributesCheck),
        secret: .init(box: secretBox, keyWrap: nil, tamperCheck: secretCheck))
    } catch {
      throw EncryptedPartError(error.reason)
    }
  }

  // MARK: Values

  /// Returns the bytes of data or of Base64 text.
  private static func bytes(_ value: PropertyValue?) -> [UInt8]? {
    switch value {
    case .data(let bytes): bytes
    case .string(let text): Base64Digits.bytes(of: text.utf8)
    default: nil
    }
  }

  /// Returns a key: the first 32 bytes. Other bytes may follow it.
  private static func key(_ bytes: [UInt8]) -> SensitiveBytes {
    SensitiveBytes(copying: Array(bytes.prefix(keyByteCount)))
  }

  private static func repeatedKeyCount(in dictionary: PropertyDictionary) -> Int {
    dictionary.entries.count - Set(dictionary.entries.map(\.key)).count
  }

  /// Calls a closure and converts an error that the dump did not cause.
  private static func translatingErrors<Result>(
    _ work: () throws(DataProtectionError) -> Result
  ) throws(KeyhaulError) -> Result {
    try converting({ KeyhaulError(.dumpFailed, $0.reason) }, work)
  }
}

/// An error in the structure of an encrypted entry.
private struct EncryptedPartError: Error {
  let fault: DumpFault

  init(_ detail: String, _ reason: Reason = .malformed) { fault = DumpFault(reason, detail) }
}
