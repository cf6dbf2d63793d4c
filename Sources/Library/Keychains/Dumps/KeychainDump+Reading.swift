package import Basics
package import KeychainFormats

extension KeychainDump {
  /// The number of bytes that `hasSignature(_:)` needs from the start of a file.
  package static let signatureByteCount = 64

  /// Returns whether a file that starts with these bytes may be a dump: a property list, JSON or the text of a tool. A
  /// backup in a single file starts differently.
  package static func hasSignature(_ start: [UInt8]) -> Bool {
    isBinary(start) || XMLPlist.isXML(start) || isJSON(start) || KeychainDumperReader.hasSignature(start)
      || IRestoreReader.hasLinesBefore(start)
  }

  /// Reads a dump in any known format. An entry that cannot be used does not prevent reading the others.
  ///
  /// - Parameter bytes: The contents of the file. Secrets of items are copied into memory that is overwritten when it
  ///   is released; the file's own bytes are not.
  /// - Throws: `.unreadableDump` if the bytes are not a property list, JSON or a tool's text, `.unknownDump` if they
  ///   are not a keychain dump, `.backupKeychain` for the encrypted keychain of a backup, `.dumpOverLimit`, and
  ///   `.dumpFailed` if the ciphers that decrypt entries do not work.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    try self.init(parsing: bytes, acceptingAtMost: Self.maximumItemCount)
  }

  /// Reads a dump with a given limit on the number of entries.
  package init(parsing bytes: [UInt8], acceptingAtMost limit: Int) throws(KeyhaulError) {
    guard bytes.count <= Self.maximumByteCount else {
      throw KeyhaulError(
        .dumpOverLimit,
        "\(HumanReadable.bytes(bytes.count)); Keyhaul reads at most \(HumanReadable.grouped(Self.maximumByteCount))"
      )
    }
    if Self.isJSON(bytes) {
      self = try Self.fromJSON(bytes, limit)
    } else if KeychainDumperReader.hasSignature(bytes) {
      self = try KeychainDumperReader.read(bytes, limit)
    } else if IRestoreReader.hasLinesBefore(bytes) {
      guard let parts = IRestoreReader.parts(of: bytes) else {
        throw KeyhaulError(.unreadableDump, "it begins as irestore's output, but has no JSON")
      }
      let root = try Self.json(parts.json)
      guard IRestoreReader.recognizes(root) else {
        throw KeyhaulError(.unknownDump, "it is text before JSON, but not what irestore prints")
      }
      self = try IRestoreReader.read(root, limit, omitted: parts.omitted)
    } else {
      self = try Self.fromPropertyList(bytes, limit)
    }
  }

  private static func isBinary(_ bytes: [UInt8]) -> Bool { bytes.starts(with: Array("bplist".utf8)) }

  /// Returns whether XML contains the element of a property list near its start.
  private static func isPropertyList(_ bytes: [UInt8]) -> Bool {
    let name = Array("<plist".utf8)
    let start = bytes.prefix(4096)
    return start.indices.contains { start[$0...].starts(with: name) }
  }

  private static func isJSON(_ bytes: [UInt8]) -> Bool {
    let start = bytes.prefix(signatureByteCount).dropFirst(UTF8Scalars.byteOrderMarkCount(of: bytes))
      .drop { " \t\n\r".utf8.contains($0) }
    return start.first == UInt8(ascii: "[") || start.first == UInt8(ascii: "{")
  }

  private static func json(_ bytes: [UInt8]) throws(KeyhaulError) -> JSONValue {
    do throws(JSONParseError) {
      return try JSONValue(parsing: bytes)
    } catch {
      throw KeyhaulError(
        error.isOverLimit ? .dumpOverLimit : .unreadableDump,
        error.location(in: bytes).map { "\(error.reason) (\($0))" } ?? error.reason)
    }
  }

  private static func fromJSON(_ bytes: [UInt8], _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    let root = try json(bytes)
    if ObjectionReader.recognizes(root) { return try ObjectionReader.read(root, limit) }
    if GrapefruitReader.recognizes(root) { return try GrapefruitReader.read(root, limit) }
    if IRestoreReader.recognizes(root) { return try IRestoreReader.read(root, limit) }
    throw KeyhaulError(
      .unknownDump,
      "it is JSON, but not an array of objects with an item_class or a clazz, or an object with General, Internet, "
        + "Certs and Keys")
  }

  private static func fromPropertyList(_ bytes: [UInt8], _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    if XMLPlist.isXML(bytes), !isPropertyList(bytes) {
      throw KeyhaulError(
        .unknownDump,
        "it is XML, but not a property list. Keyhaul reads no other XML: no description of Elcomsoft's keychain XML is "
          + "known")
    }
    let root: PropertyValue
    do throws(FormatError) {
      root =
        try isBinary(bytes)
        ? BinaryPlist.decode(bytes, limits: .keychainFile) : XMLPlist.decodeKeepingRepeatedKeys(bytes)
    } catch {
      throw KeyhaulError(error.code == .overLimit ? .dumpOverLimit : .unreadableDump, error.reason)
    }
    switch root {
    case .dictionary(let root) where EncryptedEntryReader.recognizes(root):
      return try EncryptedEntryReader.read(root, limit)
    case .dictionary(let tables) where TablesReader.recognizes(tables): return try TablesReader.read(tables, limit)
    case .array(let entries) where ItemArrayReader.recognizes(entries): return try ItemArrayReader.read(entries, limit)
    default:
      throw KeyhaulError(
        .unknownDump, "it is a property list, but has neither keychain tables nor an array of items")
    }
  }
}

extension KeychainDump {
  /// The attributes that the format can contain, or `nil` if it can contain all attributes. Some formats omit attributes,
  /// so an attribute outside this set may exist although the dump does not contain it.
  package var recordedAttributes: Set<AttributeCode>? {
    switch format {
    case .objection: Set(ObjectionReader.codes.values).union([.protection, .accessControl])
    // The attributes that occur in this dump.
    case .genericPasswords: items.reduce(into: []) { $0.formUnion($1.item?.attributes.keys.map { $0 } ?? []) }
    case .grapefruit: Set(GrapefruitReader.codes.values).union([.protection, .accessControl])
    // For generic passwords, the text contains more attributes. Older versions do not print the protection class.
    case .keychainDumper:
      Set([.service, .server, .account, .accessGroup, .label])
        .union(items.contains { $0.protection != nil } ? [.protection] : [])
    case .tables, .untypedTables, .items, .irestore, .encryptedEntries, .database: nil
    }
  }
}
