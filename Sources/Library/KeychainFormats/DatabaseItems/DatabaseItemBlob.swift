import Basics

/// An encrypted item in the databases of iOS 11 and later (versions 7 and 8), with attributes and secret in two boxes.
///
/// ```
/// blob            version word (4 bytes, little-endian), message
/// message         1: secret part, 2: attribute part, 3: class
/// secret part     1: box, 2: wrap of the box's key, 3: tamper check
/// attribute part  1: box, 2: wrapped key of the box, 3: tamper check
/// ```
///
/// The messages are protocol buffers, shown with the numbers of their fields. Each box has its own key. The key of the
/// attribute box is encrypted with a key that all items of a class share. The tamper checks are equal to each other and
/// to a string in each box, which shows that the boxes belong together. Both versions have the same layout; version 8
/// indicates only that the secret's key may belong to a persona.
///
/// Source: Apple `SecDbKeychainSerializedItemV7.proto` and its parts, `SecDbKeychainItemV7.m`.
package struct DatabaseItemBlob: Sendable {
  /// The version word's number.
  package enum Version: UInt32, Sendable, Hashable, CaseIterable {
    /// iOS 11 to 14, and later versions without key diversification.
    case v7 = 7
    /// iOS 15 and later.
    case v8 = 8
  }

  /// The part with the secret. Source: `SecDbKeychainSerializedSecretData`.
  package struct SecretPart: Sendable {
    /// The archive of the box (`ArchivedBox`).
    package let box: [UInt8]
    /// The wrap of the box's key, or `nil` if the item's source stores the key elsewhere or not at all.
    package let keyWrap: ItemKeyWrap?
    /// An upper-case UUID as a string. The part with the attributes and both boxes contain the same string.
    package let tamperCheck: String

    /// Creates the part.
    package init(box: [UInt8], keyWrap: ItemKeyWrap?, tamperCheck: String) {
      self.box = box
      self.keyWrap = keyWrap
      self.tamperCheck = tamperCheck
    }
  }

  /// The part with the attributes. Source: `SecDbKeychainSerializedMetadata`.
  package struct AttributesPart: Sendable {
    /// The archive of the box (`ArchivedBox`).
    package let box: [UInt8]
    /// The archive of a second box, which contains the key of `box`, encrypted with the key of the class.
    package let wrappedKey: [UInt8]
    /// An upper-case UUID as a string. The part with the secret and both boxes contain the same string.
    package let tamperCheck: String

    /// Creates the part.
    package init(box: [UInt8], wrappedKey: [UInt8], tamperCheck: String) {
      self.box = box
      self.wrappedKey = wrappedKey
      self.tamperCheck = tamperCheck
    }
  }

  /// The version. The top bit of the version word, which no writer sets, is dropped.
  package let version: Version
  /// The class as stored. Its upper bits may contain a key generation. The class is not authenticated.
  package let keyClass: KeyClass
  /// The part with the attributes.
  package let attributes: AttributesPart
  /// The part with the secret.
  package let secret: SecretPart

  /// The class of a blob that does not contain one.
  private static let defaultClass = Int32(KeyClass.whenPasscodeSetThisDeviceOnly.rawValue)

  /// Creates a blob from its parts.
  ///
  /// - Throws: `.malformed` for a class that items cannot have.
  package init(
    version: Version, keyClass: KeyClass, attributes: AttributesPart, secret: SecretPart
  ) throws(FormatError) {
    guard ProtectionClass(keyClass: keyClass) != nil, Int32(exactly: keyClass.rawValue) != nil else {
      throw FormatError(.itemBlob, .malformed, "its class \(keyClass.rawValue) is not a protection class")
    }
    self.version = version
    self.keyClass = keyClass
    self.attributes = attributes
    self.secret = secret
  }

  /// Reads an encrypted item of a database. Unknown fields are ignored; if a field occurs twice, the last one counts.
  ///
  /// - Throws: `.unsupportedVersion` for versions other than 7 and 8; `.malformed` for a missing field, a field with
  ///   the wrong wire type, or a class that items cannot have; `.truncated` and `.overLimit`.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    self = try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> DatabaseItemBlob in
      try DatabaseItemBlob(ByteCursor(buffer, format: .itemBlob))
    }
  }

  private init(_ start: ByteCursor) throws(FormatError) {
    var cursor = start
    let word = try BlobVersionWord(&cursor)
    guard let version = Version(rawValue: word.number) else { throw word.unsupported }
    var reader = ProtobufReader(try cursor.takeCursor(cursor.remaining, "the message"))
    var secret: SecretPart?
    var attributes: AttributesPart?
    var classNumber = Self.defaultClass
    while let field = try reader.next() {
      switch field.number {
      case 1: secret = try SecretPart(field.contents("the secret part"))
      case 2: attributes = try AttributesPart(field.contents("the attribute part"))
      case 3: classNumber = try field.number("the class")
      default: continue
      }
    }
    guard let secret else { throw FormatError(.itemBlob, .malformed, "the secret part is missing") }
    guard let attributes else { throw FormatError(.itemBlob, .malformed, "the attribute part is missing") }
    guard let rawClass = UInt32(exactly: classNumber) else {
      throw FormatError(.itemBlob, .malformed, "its class \(classNumber) is not a protection class")
    }
    try self.init(version: version, keyClass: KeyClass(rawValue: rawClass), attributes: attributes, secret: secret)
  }

  /// Returns the blob's bytes, which equal the original bytes if a device wrote the blob.
  ///
  /// - Throws: `.unencodable` if the wrap of the secret's key is missing.
  package func serialized() throws(FormatError) -> [UInt8] {
    guard let keyWrap = secret.keyWrap else {
      throw FormatError(.itemBlob, .unencodable, "the secret's key is not stored with it")
    }
    var secretMessage = ProtobufWriter()
    secretMessage.append(1, secret.box)
    secretMessage.append(2, keyWrap.serialized())
    secretMessage.append(3, Array(secret.tamperCheck.utf8))
    var attributesMessage = ProtobufWriter()
    attributesMessage.append(1, attributes.box)
    attributesMessage.append(2, attributes.wrappedKey)
    attributesMessage.append(3, Array(attributes.tamperCheck.utf8))
    var item = ProtobufWriter()
    item.append(1, secretMessage.bytes)
    item.append(2, attributesMessage.bytes)
    item.append(3, varint: UInt64(keyClass.rawValue))
    var bytes: [UInt8] = []
    bytes.append(littleEndian: version.rawValue)
    return bytes + item.bytes
  }
}

extension DatabaseItemBlob.SecretPart {
  fileprivate init(_ message: ByteCursor) throws(FormatError) {
    var reader = ProtobufReader(message)
    var box: [UInt8]?
    var keyWrap: ItemKeyWrap?
    var tamperCheck: String?
    while let field = try reader.next() {
      switch field.number {
      case 1: box = try field.bytes("the box of the secret")
      case 2: keyWrap = try ItemKeyWrap(field.contents("the wrap of the secret's key"))
      case 3: tamperCheck = try field.text("the secret's tamper check")
      default: continue
      }
    }
    guard let box, let keyWrap, let tamperCheck else {
      throw FormatError(.itemBlob, .malformed, "a field of the secret part is missing", offset: message.offset)
    }
    self.init(box: box, keyWrap: keyWrap, tamperCheck: tamperCheck)
  }
}

extension DatabaseItemBlob.AttributesPart {
  fileprivate init(_ message: ByteCursor) throws(FormatError) {
    var reader = ProtobufReader(message)
    var box: [UInt8]?
    var wrappedKey: [UInt8]?
    var tamperCheck: String?
    while let field = try reader.next() {
      switch field.number {
      case 1: box = try field.bytes("the box of the attributes")
      case 2: wrappedKey = try field.bytes("the wrap of the attributes' key")
      case 3: tamperCheck = try field.text("the attributes' tamper check")
      default: continue
      }
    }
    guard let box, let wrappedKey, let tamperCheck else {
      throw FormatError(.itemBlob, .malformed, "a field of the attribute part is missing", offset: message.offset)
    }
    self.init(box: box, wrappedKey: wrappedKey, tamperCheck: tamperCheck)
  }
}
