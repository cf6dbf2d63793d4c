import Basics

/// What AES-256-GCM gave, in the keyed archive in which a database's items hold it three times.
///
/// Source: the archives of Apple's `SFAuthenticatedCiphertext` in databases that Apple's own code wrote.
public struct ArchivedBox: Sendable, Hashable {
  /// Thirty-two bytes in all that was seen; any number from 1 to `maximumNonceByteCount` is read.
  public let nonce: [UInt8]
  /// As long as the plaintext.
  public let ciphertext: [UInt8]
  /// Sixteen bytes.
  public let tag: [UInt8]

  /// The length of a nonce that is written, in bytes.
  public static let nonceByteCount = 32
  /// The longest nonce that is read, in bytes: what OpenSSL takes.
  public static let maximumNonceByteCount = 128

  private static let archiver = "NSKeyedArchiver"
  private static let version: Int64 = 100_000
  private static let className = "_SFAuthenticatedCiphertext"
  private static let classes = [className, "_SFCiphertext", "NSObject"]
  private static let nonceKey = "SFInitializationVector"
  private static let ciphertextKey = "SFCiphertext"
  private static let tagKey = "SFAuthenticationCode"

  /// Creates a box of what was sealed.
  ///
  /// - Throws: `.malformed` for a tag that is not sixteen bytes and for a nonce that is empty or too long.
  public init(nonce: [UInt8], ciphertext: [UInt8], tag: [UInt8]) throws(FormatError) {
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

  /// Reads the archive. Its references are followed by name, in whatever order its objects stand.
  ///
  /// - Throws: `.malformed` for an archive of another shape or class, and what `BinaryPlist` refuses, with the limits of
  ///   one item.
  public init(archive bytes: [UInt8]) throws(FormatError) {
    let archive = try BinaryPlist.decode(bytes, limits: .item).dictionaryValue
    guard let archive, archive["$archiver"]?.stringValue == Self.archiver,
      archive["$version"]?.integerValue == Self.version, let objects = archive["$objects"]?.arrayValue,
      let top = archive["$top"]?.dictionaryValue
    else { throw FormatError(.keyedArchive, .malformed, "it is not from NSKeyedArchiver, version 100000") }
    func object(_ name: String, in holder: PropertyDictionary) throws(FormatError) -> PropertyValue {
      guard case .uid(let number)? = holder[name], let index = Int(exactly: number), index > 0, index < objects.count
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

  /// The archive, byte for byte as a device writes it.
  ///
  /// - Throws: `.unencodable` where the writer has no form for it, which is never so for a box.
  public func archive() throws(FormatError) -> [UInt8] {
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
    var writer = UnsharedPlistWriter()
    return try writer.encode(.dictionary(root))
  }
}
