import Basics

/// An encrypted item with an access-control list (version 6). Only its own device can decrypt it, and no backup
/// contains it.
///
/// All integers are little-endian.
///
/// ```
/// blob      version (4 bytes), length (4) and DER of the protection value, length (4) and DER of the keys,
///           ciphertext, tag (16)
/// keys      dictionary: d1 (wrapped key), d2 (the key store's reference key)
/// ```
///
/// Source: Apple `SecDbKeychainItem.m` (`ks_encrypt_acl`, `ks_decrypt_data`).
package struct AccessControlledItemBlob: Sendable, Hashable {
  /// The version number in the blob's first word, without the bit for the static vector.
  package static let version: UInt32 = 6

  /// Whether the top bit of the first word is set: a fixed initialization vector, and `authenticatedHeader` as
  /// additional data.
  package let hasStaticIV: Bool
  /// The DER of the protection code, unchanged.
  private let protectionDER: [UInt8]
  /// The DER of the dictionary of keys, unchanged.
  private let keysDER: [UInt8]
  /// The code of the protection class, such as `ak`.
  package let protection: String
  /// `d1`: the item's key, wrapped by the class key.
  package let wrappedKey: [UInt8]
  /// `d2`: the reference key, whose external data contains the access-control list.
  package let referenceKey: [UInt8]
  /// The encrypted attributes and secret. Only the device's key store can decrypt them.
  package let ciphertext: [UInt8]
  /// The authentication tag, 16 bytes.
  package let tag: [UInt8]

  /// Reads an encrypted item of a database.
  ///
  /// - Throws: `.unsupportedVersion` for versions other than 6, `.malformed`, `.truncated` and `.overLimit`.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> AccessControlledItemBlob in
      try AccessControlledItemBlob(ByteCursor(buffer, format: .itemBlob))
    }
  }

  private init(_ start: ByteCursor) throws(FormatError) {
    var cursor = start
    let word = try BlobVersionWord(&cursor)
    guard word.number == Self.version else { throw word.unsupported }
    hasStaticIV = word.hasStaticIV

    let (protectionDER, protectionOffset) = try Self.takeLengthAndBytes(&cursor, "the protection value")
    guard case .string(let protection)? = try? DERPropertyList.decode(protectionDER) else {
      throw FormatError(.itemBlob, .malformed, "the protection value is not a DER string", offset: protectionOffset)
    }
    let (keysDER, keysOffset) = try Self.takeLengthAndBytes(&cursor, "the dictionary of keys")
    guard let keys = (try? DERPropertyList.decode(keysDER))?.dictionaryValue,
      let wrappedKey = keys["d1"]?.dataValue, let referenceKey = keys["d2"]?.dataValue
    else {
      throw FormatError(.itemBlob, .malformed, "the keys are not a DER dictionary with d1 and d2", offset: keysOffset)
    }
    self.protectionDER = protectionDER
    self.keysDER = keysDER
    self.protection = protection
    self.wrappedKey = wrappedKey
    self.referenceKey = referenceKey
    (ciphertext, tag) = try cursor.takeCiphertextAndTag()
  }

  /// Creates a blob from encrypted data.
  ///
  /// - Throws: `.unencodable` if the tag does not have 16 bytes.
  package init(
    hasStaticIV: Bool, protection: String, wrappedKey: [UInt8], referenceKey: [UInt8], ciphertext: [UInt8],
    tag: [UInt8]
  ) throws(FormatError) {
    guard tag.count == ItemBlob.tagByteCount else {
      throw FormatError(.itemBlob, .unencodable, "the tag has \(tag.count) bytes, not 16")
    }
    self.hasStaticIV = hasStaticIV
    self.protection = protection
    self.wrappedKey = wrappedKey
    self.referenceKey = referenceKey
    self.ciphertext = ciphertext
    self.tag = tag
    protectionDER = try DERPropertyList.encode(.string(protection))
    keysDER = try DERPropertyList.encode(.dictionary(["d1": .data(wrappedKey), "d2": .data(referenceKey)]))
  }

  /// The bytes up to and including the second length, which are authenticated if `hasStaticIV` is set.
  package var authenticatedHeader: [UInt8] {
    var header: [UInt8] = []
    header.append(littleEndian: BlobVersionWord(number: Self.version, hasStaticIV: hasStaticIV).rawValue)
    header.append(littleEndian: UInt32(truncatingIfNeeded: protectionDER.count))
    header += protectionDER
    header.append(littleEndian: UInt32(truncatingIfNeeded: keysDER.count))
    return header
  }

  /// Returns the blob's bytes, which equal the original bytes if the blob was read.
  package func serialized() -> [UInt8] { authenticatedHeader + keysDER + ciphertext + tag }

  /// Reads a length and as many bytes after it.
  ///
  /// - Returns: The bytes after the length, and their offset in the blob.
  private static func takeLengthAndBytes(
    _ cursor: inout ByteCursor, _ fieldName: String
  ) throws(FormatError) -> (bytes: [UInt8], offset: Int) {
    let length = try cursor.takeLittleEndianWord("the length of \(fieldName)")
    guard let count = Int(exactly: length) else {
      throw FormatError(.itemBlob, .truncated, "\(fieldName) does not fit", offset: cursor.offset)
    }
    let offset = cursor.offset
    return (try cursor.takeBytes(count, fieldName), offset)
  }
}
