import Basics

/// An encrypted keychain item of iOS 4 (version 0): only its secret, without attributes and without a tag.
///
/// ```
/// blob      version (4 bytes, little-endian), class (4, little-endian), wrapped key (40), ciphertext
/// ```
///
/// The ciphertext is AES-256-CBC with an initialization vector of zeros and PKCS#7 padding. Source:
/// iphone-dataprotection, `keychain/keychain4.py`.
package struct LegacyItemBlob: Sendable, Hashable {
  /// The class whose key decrypts the item's key.
  package let keyClass: KeyClass
  /// The wrapped key, 40 bytes.
  package let wrappedKey: [UInt8]
  /// The ciphertext: whole blocks of 16 bytes, at least one.
  package let ciphertext: [UInt8]

  private static let wrappedKeyByteCount = 40
  private static let blockByteCount = 16

  /// Reads an encrypted secret of a backup of iOS 4.
  ///
  /// - Throws: `.unsupportedVersion` for versions other than 0, `.malformed` if the ciphertext does not consist of
  ///   whole blocks, `.truncated` and `.overLimit`.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
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
