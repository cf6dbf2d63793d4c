import Basics

/// An app's persistent reference to an item, also stored as `v_PersistentRef` with each item of a backup.
///
/// Source: Apple `SecItemServer.c` (`_SecItemMakePersistentRef`, `_SecItemParsePersistentRef`) and `SecItem.m`.
package enum PersistentReference: Sendable, Hashable {
  /// The class and the row ID, big-endian: 12 bytes.
  case rowID(ItemKind, Int64)
  /// The class and the item's `persistref`: 20 bytes.
  case uuid(ItemKind, [UInt8])
  /// An item on a token. Never in a backup.
  case token(ItemKind, tokenID: String, objectID: [UInt8])

  private static let tokenPrefix = Array("tkpr".utf8)
  /// The length of a class, such as `genp`, and of the prefix for tokens.
  package static let classByteCount = 4
  /// The length of the identifier in a row's `persistref`.
  package static let uuidByteCount = 16

  /// The kind in the reference.
  package var kind: ItemKind {
    switch self {
    case .rowID(let kind, _), .uuid(let kind, _), .token(let kind, _, _): kind
    }
  }

  /// Reads a reference of an app or a backup.
  ///
  /// - Throws: `.truncated` for fewer than four bytes; `.malformed` for a wrong length or an unknown class. The class of
  ///   identities (`idnt`) is rejected too, because only API calls use references to identities.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    guard bytes.count >= Self.classByteCount else {
      throw FormatError(.persistentReference, .truncated, "\(bytes.count) bytes are too few for a class", offset: 0)
    }
    if bytes.starts(with: Self.tokenPrefix) {
      self = try Self.token(Array(bytes[Self.classByteCount...]))
      return
    }
    guard let kind = ItemKind.allCases.first(where: { bytes.starts(with: $0.rawValue.utf8) }) else {
      throw FormatError(.persistentReference, .malformed, "its class is not genp, inet, cert or keys", offset: 0)
    }
    let identifier = Array(bytes[Self.classByteCount...])
    switch identifier.count {
    case 8: self = .rowID(kind, Int64(bitPattern: bigEndianInteger(identifier)))
    case Self.uuidByteCount: self = .uuid(kind, identifier)
    default:
      throw FormatError(.persistentReference, .malformed, "it has \(bytes.count) bytes, not 12 or 20", offset: 4)
    }
  }

  private static func token(_ der: [UInt8]) throws(FormatError) -> PersistentReference {
    guard let parts = (try? DERPropertyList.decode(der))?.arrayValue, parts.count == 3,
      let kind = parts[0].stringValue.flatMap(ItemKind.init(rawValue:)), let tokenID = parts[1].stringValue,
      let objectID = parts[2].dataValue
    else {
      throw FormatError(
        .persistentReference, .malformed, "a token's reference is not a DER array of class, token and object", offset: 4
      )
    }
    return .token(kind, tokenID: tokenID, objectID: objectID)
  }

  /// Returns the reference's bytes.
  ///
  /// - Throws: `.unencodable` for a UUID that does not have 16 bytes.
  package func serialized() throws(FormatError) -> [UInt8] {
    switch self {
    case .rowID(let kind, let rowID):
      return Array(kind.rawValue.utf8) + bigEndianBytes(UInt64(bitPattern: rowID))
    case .uuid(let kind, let bytes):
      guard bytes.count == Self.uuidByteCount else {
        throw FormatError(.persistentReference, .unencodable, "an identifier of \(bytes.count) bytes, not 16")
      }
      return Array(kind.rawValue.utf8) + bytes
    case .token(let kind, let tokenID, let objectID):
      let parts: [PropertyValue] = [.string(kind.rawValue), .string(tokenID), .data(objectID)]
      return Self.tokenPrefix + (try DERPropertyList.encode(.array(parts)))
    }
  }
}
