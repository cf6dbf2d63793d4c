import Basics

/// The result of AES-256-GCM in a keyed archive. Every database item contains three of these archives.
///
/// Source: the archives of Apple's `SFAuthenticatedCiphertext` in databases that Apple's code wrote.
package struct ArchivedBox: Sendable, Hashable {
  /// The nonce: 32 bytes in all known databases; any length from 1 to `maximumNonceByteCount` is accepted.
  package let nonce: [UInt8]
  /// The ciphertext, as long as the plaintext.
  package let ciphertext: [UInt8]
  /// The authentication tag, 16 bytes.
  package let tag: [UInt8]

  /// The length of a nonce in a new box, in bytes.
  package static let nonceByteCount = 32
  /// The maximum length of a nonce, in bytes: the limit of OpenSSL.
  package static let maximumNonceByteCount = 128

  private static let archiver = "NSKeyedArchiver"
  private static let version: Int64 = 100_000
  private static let className = "_SFAuthenticatedCiphertext"
  private static let classes = [className, "_SFCiphertext", "NSObject"]
  private static let nonceKey = "SFInitializationVector"
  private static let ciphertextKey = "SFCiphertext"
  private static let tagKey = "SFAuthenticationCode"

  /// Creates a box from encrypted data.
  ///
  /// - Throws: `.malformed` if the tag does not have 16 bytes or the nonce is empty or too long.
  package init(nonce: [UInt8], ciphertext: [UInt8], tag: [UInt8]) throws(FormatError) {
    guard tag.count == ItemBlob.tagByteCount else {
      throw FormatError(.keyedArchive, .malformed, "the tag has \(tag.count) bytes, not 16")
    }
    guard (1...Self.maximumNonceByteCount).contains(nonce.count) else {
      throw FormatError(
        .keyedArchive, .malformed,
        "the nonce has \(nonce.count) bytes; 1 to \(Self.maximumNonceByteCount) are accepted")
    }
    self.nonce = nonce
    self.ciphertext = ciphertext
    self.tag = tag
  }

  /// Reads the archive. The objects are found by the references of the members, so the order of objects does not matter.
  ///
  /// - Throws: `.malformed` for an archive with a different structure or class, and the errors of `BinaryPlist` with
  ///   the limits for one item.
  package init(archive bytes: [UInt8]) throws(FormatError) {
    let archive = try BinaryPlist.decode(bytes, limits: .item).dictionaryValue
    guard let archive, archive["$archiver"]?.stringValue == Self.archiver,
      archive["$version"]?.integerValue == Self.version, let objects = archive["$objects"]?.arrayValue,
      let top = archive["$top"]?.dictionaryValue
    else { throw FormatError(.keyedArchive, .malformed, "it is not from NSKeyedArchiver, version 100000") }
    func object(_ name: String, in holder: PropertyDictionary) throws(FormatError) -> PropertyValue {
      guard case .uid(let reference)? = holder[name], let index = Int(exactly: reference), index > 0,
        index < objects.count
      else { throw FormatError(.keyedArchive, .malformed, "\(name) refers to no object") }
      return objects[index]
    }
    func data(_ name: String, in holder: PropertyDictionary) throws(FormatError) -> [UInt8] {
      guard let bytes = try object(name, in: holder).dataValue else {
        throw FormatError(.keyedArchive, .malformed, "\(name) is not data")
      }
      return bytes
    }
    guard let box = try object("root", in: top).dictionaryValue else {
      throw FormatError(.keyedArchive, .malformed, "its root is not an object with members")
    }
    guard try object("$class", in: box).dictionaryValue?["$classname"]?.stringValue == Self.className else {
      throw FormatError(.keyedArchive, .malformed, "its root has another class")
    }
    try self.init(
      nonce: data(Self.nonceKey, in: box), ciphertext: data(Self.ciphertextKey, in: box),
      tag: data(Self.tagKey, in: box))
  }

  /// Returns the archive, byte for byte as a device writes it.
  ///
  /// - Throws: `.unencodable` if the writer cannot encode a value, which never happens for a box.
  package func archive() throws(FormatError) -> [UInt8] {
    // The members refer to the objects below by their indices.
    let box: PropertyDictionary = [
      "$class": .uid(5), Self.nonceKey: .uid(4), Self.ciphertextKey: .uid(2), Self.tagKey: .uid(3),
    ]
    let type: PropertyDictionary = [
      "$classname": .string(Self.className), "$classes": .array(Self.classes.map(PropertyValue.string)),
    ]
    let objects: [PropertyValue] = [
      .string("$null"), .dictionary(box), .data(ciphertext), .data(tag), .data(nonce), .dictionary(type),
    ]
    let root: PropertyDictionary = [
      "$version": .integer(Self.version), "$objects": .array(objects), "$archiver": .string(Self.archiver),
      "$top": .dictionary(["root": .uid(1)]),
    ]
    var writer = KeyedArchiveWriter()
    return try writer.encode(.dictionary(root))
  }
}
