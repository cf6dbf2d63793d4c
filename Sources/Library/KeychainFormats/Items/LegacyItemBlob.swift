import Basics

/// One sealed keychain item as iOS 4 wrote it (version 0): its secret alone, without attributes and without a tag.
///
/// Little-endian: version, class, the item's key wrapped in forty bytes, then AES-256-CBC with a zero vector and PKCS#7
/// padding. Source: iphone-dataprotection, `keychain/keychain4.py`.
public struct LegacyItemBlob: Sendable, Hashable {
  /// The class whose key opens the secret.
  public let keyClass: KeyClass
  /// Forty bytes.
  public let wrappedKey: [UInt8]
  /// Whole blocks of sixteen bytes, at least one.
  public let ciphertext: [UInt8]

  private static let wrappedKeyByteCount = 40
  private static let blockByteCount = 16

  /// Reads a sealed secret as a backup of iOS 4 holds it.
  ///
  /// - Throws: `.unsupportedVersion` for every version but 0, `.truncated`, `.malformed` for a ciphertext that is not whole
  ///   blocks, `.overLimit`.
  public init(parsing bytes: [UInt8]) throws(FormatError) {
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> LegacyItemBlob in
      var cursor = ByteCursor(buffer, format: .itemBlob)
      let word = try BlobVersionWord(&cursor)
      guard word.number == 0, !word.hasStaticIV else { throw word.unsupported }
      let keyClass = KeyClass(rawValue: try cursor.takeLittleEndianWord("the class"))
      let key = try cursor.takeBytes(Self.wrappedKeyByteCount, "the wrapped key")
      let offset = cursor.offset
      guard cursor.remaining > 0 else {
        throw FormatError(.itemBlob, .truncated, "the ciphertext is missing", offset: offset)
      }
      guard cursor.remaining.isMultiple(of: Self.blockByteCount) else {
        throw FormatError(.itemBlob, .malformed, "a ciphertext that is not whole blocks", offset: offset)
      }
      return LegacyItemBlob(
        keyClass: keyClass, wrappedKey: key, ciphertext: try cursor.takeBytes(cursor.remaining, "the ciphertext"))
    }
  }

  private init(keyClass: KeyClass, wrappedKey: [UInt8], ciphertext: [UInt8]) {
    self.keyClass = keyClass
    self.wrappedKey = wrappedKey
    self.ciphertext = ciphertext
  }
}
