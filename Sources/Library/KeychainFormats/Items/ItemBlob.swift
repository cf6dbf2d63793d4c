import Basics

/// An encrypted keychain item: its class, its own key wrapped with the class key, and the result of AES-256-GCM.
///
/// Versions 2 and 3, as in backups and in the databases of iOS 5 to 10. All integers are little-endian.
///
/// ```
/// blob      version (4 bytes), class (4), length of the wrapped key (4), wrapped key (40 or 72),
///           ciphertext, tag (16)
/// ```
///
/// Source: Apple `SecItemDb.c` and `SecDbKeychainItem.m` (`ks_encrypt_data`, `ks_decrypt_data`).
package struct ItemBlob: Sendable, Hashable {
  /// The encoding of the plaintext.
  package enum Version: UInt32, Sendable, Hashable {
    /// A property list (iOS 5 and 6).
    case v2 = 2
    /// Apple's DER (iOS 7 and later).
    case v3 = 3
  }

  /// The version, which determines the encoding of the plaintext.
  package let version: Version
  /// Whether the item uses a fixed initialization vector of 12 bytes, and `authenticatedHeader` as additional data. This
  /// is the top bit of the version word. In backups the bit is clear: the vector is empty, and there is no additional
  /// data.
  package let hasStaticIV: Bool
  /// The class as stored. In a device's own copy, the upper bits may contain the generation of the key.
  package let keyClass: KeyClass
  /// The wrapped key: 40 bytes for a symmetric class key, 72 for a Curve25519 one.
  package let wrappedKey: [UInt8]
  /// The encrypted dictionary, as long as its plaintext.
  package let ciphertext: [UInt8]
  /// The authentication tag, 16 bytes.
  package let tag: [UInt8]

  /// The two possible lengths of a wrapped key, in bytes: RFC 3394 adds 8 bytes to the key's 32, and Curve25519 also
  /// adds a public key of 32 bytes.
  static let wrappedKeyByteCounts = [40, 72]
  /// The length of a GCM tag, in bytes.
  package static let tagByteCount = 16
  /// The maximum number of bytes of an encrypted item: 72 MiB, for a secret of 64 MiB with its attributes. Almost all
  /// items have a few kilobytes.
  package static let maximumByteCount = DERPropertyList.maximumByteCount

  /// Reads an encrypted item of a backup or a database.
  ///
  /// - Throws: `.unsupportedVersion` for versions other than 2 and 3, `.malformed` if the wrapped key does not have 40
  ///   or 72 bytes, `.truncated` and `.overLimit`.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> ItemBlob in
      try ItemBlob(ByteCursor(buffer, format: .itemBlob))
    }
  }

  private init(_ start: ByteCursor) throws(FormatError) {
    var cursor = start
    let word = try BlobVersionWord(&cursor)
    guard let version = Version(rawValue: word.number) else { throw word.unsupported }
    keyClass = KeyClass(rawValue: try cursor.takeLittleEndianWord("the class"))
    let lengthOffset = cursor.offset
    let length = try cursor.takeLittleEndianWord("the length of the wrapped key")
    guard let keyByteCount = Self.wrappedKeyByteCounts.first(where: { $0 == Int(length) }) else {
      throw FormatError(
        .itemBlob, .malformed, "the wrapped key is \(length) bytes, not 40 or 72", offset: lengthOffset)
    }
    self.version = version
    hasStaticIV = word.hasStaticIV
    wrappedKey = try cursor.takeBytes(keyByteCount, "the wrapped key")
    (ciphertext, tag) = try cursor.takeCiphertextAndTag()
  }

  /// Creates a blob from encrypted data.
  ///
  /// - Throws: `.unencodable` if the wrapped key does not have 40 or 72 bytes or the tag does not have 16.
  package init(
    version: Version = .v3, hasStaticIV: Bool, keyClass: KeyClass, wrappedKey: [UInt8], ciphertext: [UInt8],
    tag: [UInt8]
  ) throws(FormatError) {
    guard Self.wrappedKeyByteCounts.contains(wrappedKey.count) else {
      throw FormatError(.itemBlob, .unencodable, "the wrapped key is \(wrappedKey.count) bytes, not 40 or 72")
    }
    guard tag.count == Self.tagByteCount else {
      throw FormatError(.itemBlob, .unencodable, "the tag has \(tag.count) bytes, not 16")
    }
    self.version = version
    self.hasStaticIV = hasStaticIV
    self.keyClass = keyClass
    self.wrappedKey = wrappedKey
    self.ciphertext = ciphertext
    self.tag = tag
  }

  /// The 12 bytes before the wrapped key, which are authenticated if `hasStaticIV` is set.
  package var authenticatedHeader: [UInt8] {
    Self.authenticatedHeader(
      version: version, hasStaticIV: hasStaticIV, keyClass: keyClass, wrappedKeyByteCount: wrappedKey.count)
  }

  /// Returns the header of a new blob.
  package static func authenticatedHeader(
    version: Version, hasStaticIV: Bool, keyClass: KeyClass, wrappedKeyByteCount: Int
  ) -> [UInt8] {
    var header: [UInt8] = []
    header.append(littleEndian: BlobVersionWord(number: version.rawValue, hasStaticIV: hasStaticIV).rawValue)
    header.append(littleEndian: keyClass.rawValue)
    header.append(littleEndian: UInt32(truncatingIfNeeded: wrappedKeyByteCount))
    return header
  }

  /// Returns the blob's bytes, which equal the original bytes if the blob was read.
  package func serialized() -> [UInt8] {
    let parts = [authenticatedHeader, wrappedKey, ciphertext, tag]
    var bytes: [UInt8] = []
    // The exact size is reserved, because a keychain contains very many blobs.
    bytes.reserveCapacity(parts.reduce(0) { $0 + $1.count })
    for part in parts { bytes += part }
    return bytes
  }

  /// Returns the version number of a blob of any version, or `nil` if there are fewer than four bytes.
  package static func versionNumber(of bytes: [UInt8]) -> UInt32? {
    guard bytes.count >= 4 else { return nil }
    return (Array(bytes[..<4].reversed()).bigEndianWord).map { $0 & BlobVersionWord.numberMask }
  }
}

/// The first word of every encrypted item: a version number, and in bit 31 whether the fixed vector was used.
struct BlobVersionWord {
  static let numberMask: UInt32 = 0x7FFF_FFFF

  let number: UInt32
  let hasStaticIV: Bool

  init(number: UInt32, hasStaticIV: Bool) {
    self.number = number
    self.hasStaticIV = hasStaticIV
  }

  init(_ cursor: inout ByteCursor) throws(FormatError) {
    guard cursor.bytes.count <= ItemBlob.maximumByteCount else {
      throw FormatError(
        .itemBlob, .overLimit, "\(cursor.bytes.count) bytes; at most \(ItemBlob.maximumByteCount) are accepted")
    }
    let word = try cursor.takeLittleEndianWord("the version")
    self.init(number: word & Self.numberMask, hasStaticIV: word & ~Self.numberMask != 0)
  }

  var rawValue: UInt32 { number | (hasStaticIV ? ~Self.numberMask : 0) }

  /// The error for a version that cannot be decrypted.
  var unsupported: FormatError {
    let reason =
      switch number {
      case 0: "version 0 was written by iOS 4 and contains only the secret"
      case 1: "version 1 has been seen only in the code of programs that read it"
      // Only the readers of other blobs, such as `AccessControlledItemBlob`, reject versions 2 and 3.
      case 2, 3: "version \(number) has no access-control list"
      case 4, 5: "version \(number) contains an access-control list in an early format of iOS 8"
      case 6: "version 6 contains an access-control list and can be decrypted only on its device"
      case 7, 8: "version \(number) is used in a device's own database"
      default: "version \(number) is not known"
      }
    return FormatError(.itemBlob, .unsupportedVersion, reason, offset: 0)
  }
}

extension ByteCursor {
  /// Reads all remaining bytes: ciphertext of any length, then the tag.
  mutating func takeCiphertextAndTag() throws(FormatError) -> (ciphertext: [UInt8], tag: [UInt8]) {
    guard remaining >= ItemBlob.tagByteCount else {
      throw FormatError(.itemBlob, .truncated, "the tag of 16 bytes does not fit", offset: offset)
    }
    let ciphertext = try takeBytes(remaining - ItemBlob.tagByteCount, "the ciphertext")
    return (ciphertext, try takeBytes(ItemBlob.tagByteCount, "the tag"))
  }
}
