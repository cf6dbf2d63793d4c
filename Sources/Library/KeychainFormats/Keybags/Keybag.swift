import Basics

/// The wrapped class keys of a backup or a device, and the parameters for deriving the key that unwraps them.
///
/// ```
/// keybag    header records, then the records of each class key
/// record    tag (4 letters), length (4 bytes, big-endian), value
/// ```
///
/// The first record `UUID` belongs to the header; every later one starts a class key. Unknown records are preserved, so
/// writing gives the original bytes. Reading checks only the structure of records, not their contents.
///
/// Source: the keybags of Apple Security's `secd-34-backup-der-parse` test; iphone-dataprotection,
/// `keystore/keybag.py`.
public struct Keybag: Sendable, Hashable {
  /// The maximum number of bytes; all known keybags have less than 2 kB.
  package static let maximumByteCount = 65_536
  /// The maximum number of class keys; all known keybags have 11 or 12.
  package static let maximumClassKeyCount = 64

  /// The header's records in their original order.
  package private(set) var header: [Record]
  /// The class keys in their original order.
  public var classKeys: [ClassKey]

  /// Creates an empty keybag, which replaces a keybag that cannot be read.
  package init() { (header, classKeys) = ([], []) }

  /// Reads a keybag without an outer signature (see `SignedKeybag` for the keybag of a device).
  ///
  /// - Throws: `.truncated` if a record is incomplete, `.overLimit` if a limit is exceeded.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
    let records = try Self.records(of: bytes)
    var keyStarts: [Int] = []
    for (index, record) in records.enumerated() where record.tag == .uuid { keyStarts.append(index) }
    keyStarts = Array(keyStarts.dropFirst())
    guard keyStarts.count <= Self.maximumClassKeyCount else {
      throw FormatError(
        .keybag, .overLimit, "\(keyStarts.count) class keys; at most \(Self.maximumClassKeyCount) are accepted")
    }
    header = Array(records[..<(keyStarts.first ?? records.count)])
    classKeys = keyStarts.indices.map { index in
      let end = index + 1 < keyStarts.count ? keyStarts[index + 1] : records.count
      return ClassKey(records: Array(records[keyStarts[index]..<end]))
    }
  }

  /// The slow SHA-256 step, which iOS 10.2 added to the password derivation. It runs before the SHA-1 step.
  package struct SecondStep: Sendable, Hashable {
    /// The iterations of PBKDF2-HMAC-SHA256 (`DPIC`).
    package var iterations: UInt32
    /// The salt (`DPSL`), 20 bytes.
    package var salt: [UInt8]

    /// Creates the step; `salt` has 20 bytes in every real keybag.
    package init(iterations: UInt32, salt: [UInt8]) {
      self.iterations = iterations
      self.salt = salt
    }
  }

  /// Creates a new keybag, with its header records in Apple's order.
  ///
  /// - Parameters:
  ///   - version: The version, 4 in current backups. Nothing depends on it.
  ///   - type: The purpose of the keybag.
  ///   - uuid: The UUID, 16 bytes.
  ///   - hmacKey: The key of the signature, 40 bytes; zeros in every real backup.
  ///   - wrap: The wrap flags of the header, which apply to no key.
  ///   - salt: The salt, 20 bytes.
  ///   - iterations: The iterations of PBKDF2-HMAC-SHA1, or of the tangling function in a device's keybag.
  ///   - secondStep: The SHA-256 step (iOS 10.2 and later), or `nil` if the keybag has only the SHA-1 step.
  ///   - classKeys: The class keys in the order of the bytes.
  /// - Throws: `.malformed` for a field of the wrong size or a class that occurs twice.
  package init(
    version: UInt32 = 4, type: BagType, uuid: [UInt8], hmacKey: [UInt8] = [UInt8](repeating: 0, count: 40),
    wrap: WrapFlags = [], salt: [UInt8], iterations: UInt32, secondStep: SecondStep? = nil, classKeys: [ClassKey]
  ) throws(FormatError) {
    header = [
      Record(.version, version), Record(.type, type.rawValue), Record(.uuid, uuid), Record(.hmacKey, hmacKey),
      Record(.wrap, wrap.rawValue), Record(.salt, salt), Record(.iterations, iterations),
    ]
    if let secondStep {
      header += [Record(.dpwt, 1), Record(.dpic, secondStep.iterations), Record(.dpsl, secondStep.salt)]
    }
    self.classKeys = classKeys
    try validate()
  }

  /// Returns the keybag's bytes, which equal the original bytes if nothing was changed.
  package func serialized() -> [UInt8] { Self.serialized(records) }

  /// The records of the header and the class keys, in the order of the bytes.
  var records: [Record] { header + classKeys.flatMap(\.records) }
}

/// Header fields. A field is `nil` if its record is absent, or if a number or the UUID has the wrong length. Setting a
/// field replaces the first record's value in place, or adds a record; setting `nil` removes all records of the field.
extension Keybag {
  /// The version (`VERS`), 2 to 5 in real keybags. Nothing depends on it.
  package var version: UInt32? {
    get { header.word(of: .version) }
    set { header.set(.version, to: newValue) }
  }

  /// The purpose of the keybag, without the flag bits of a device's keybag.
  package var type: BagType? { header.word(of: .type).map { BagType(rawValue: $0 & BagType.mask) } }

  /// The UUID, 16 bytes.
  package var uuid: [UInt8]? {
    get { header.value(of: .uuid).flatMap { $0.count == 16 ? $0 : nil } }
    set { header.set(.uuid, to: newValue) }
  }

  /// The lower-case text of `uuid`, which a keychain file contains as `keybag-uuid`.
  package var uuidText: String? { uuid.flatMap(UUIDText.lowercase) }

  /// The wrap flags of the header (`WRAP`), 0 in backups. They do not apply to the class keys, which have their own flags.
  package var wrap: WrapFlags? { header.word(of: .wrap).map(WrapFlags.init(rawValue:)) }

  /// The salt of the SHA-1 derivation.
  package var salt: [UInt8]? {
    get { header.value(of: .salt) }
    set { header.set(.salt, to: newValue) }
  }

  /// The iterations of the SHA-1 derivation.
  package var iterations: UInt32? {
    get { header.word(of: .iterations) }
    set { header.set(.iterations, to: newValue) }
  }

  /// 1 if the SHA-256 step is used; the exact meaning is not published.
  package var dpwt: UInt32? {
    get { header.word(of: .dpwt) }
    set { header.set(.dpwt, to: newValue) }
  }

  /// The iterations of the SHA-256 derivation.
  package var dpic: UInt32? {
    get { header.word(of: .dpic) }
    set { header.set(.dpic, to: newValue) }
  }

  /// The salt of the SHA-256 derivation.
  package var dpsl: [UInt8]? {
    get { header.value(of: .dpsl) }
    set { header.set(.dpsl, to: newValue) }
  }

  /// The wrapped key of the signature; 40 zero bytes in real backups.
  package var hmacKey: [UInt8]? {
    get { header.value(of: .hmacKey) }
    set { header.set(.hmacKey, to: newValue) }
  }

  /// The SHA-256 step, or `nil` if one of its fields is missing or its number of iterations is 0.
  ///
  /// Setting it writes `DPWT`, `DPIC` and `DPSL`, or removes all three.
  package var secondStep: SecondStep? {
    get {
      guard let dpic, dpic > 0, let dpsl else { return nil }
      return SecondStep(iterations: dpic, salt: dpsl)
    }
    set {
      dpwt = newValue.map { _ in dpwt ?? 1 }
      dpic = newValue?.iterations
      dpsl = newValue?.salt
    }
  }

  /// Returns the first class key of a class, or `nil` if there is none.
  package func classKey(_ keyClass: KeyClass) -> ClassKey? { classKeys.first { $0.keyClass == keyClass } }
}

extension Keybag {
  /// Checks that every field for unlocking the keybag exists once with the right length.
  ///
  /// Unknown records, class numbers, types and versions are accepted.
  /// - Throws: `.malformed` with the name of the field and the offset of its record. For an absent field, this is the
  ///   offset of the end of the header or class key.
  package func validate() throws(FormatError) {
    var offset = 0
    try Self.check(
      header, of: "the header", from: offset, required: Self.headerLengths, optional: Self.secondStepLengths)
    offset += header.reduce(0) { $0 + $1.byteCount }
    if (dpic == nil) != (dpsl == nil) {
      throw FormatError(.keybag, .malformed, "the header has only one of DPIC and DPSL", offset: offset)
    }
    var keyClasses: Set<KeyClass> = []
    for classKey in classKeys {
      try Self.check(
        classKey.records, of: "a class key", from: offset, required: Self.classKeyLengths,
        optional: Self.classKeyExtraLengths)
      try Self.checkKey(of: classKey, from: offset)
      if let keyClass = classKey.keyClass, !keyClasses.insert(keyClass).inserted {
        throw FormatError(.keybag, .malformed, "class \(keyClass.rawValue) occurs twice", offset: offset)
      }
      offset += classKey.records.reduce(0) { $0 + $1.byteCount }
    }
  }

  private typealias Lengths = [(tag: Tag, count: Int)]

  private static let headerLengths: Lengths = [
    (.version, 4), (.type, 4), (.uuid, 16), (.hmacKey, 40), (.wrap, 4), (.salt, 20), (.iterations, 4),
  ]
  private static let secondStepLengths: Lengths = [(.dpwt, 4), (.dpic, 4), (.dpsl, 20)]
  private static let classKeyLengths: Lengths = [(.uuid, 16), (.keyClass, 4), (.wrap, 4)]
  private static let classKeyExtraLengths: Lengths = [(.keyType, 4), (.publicKey, 32)]

  private static func check(
    _ records: [Record], of section: String, from start: Int, required: Lengths, optional: Lengths
  ) throws(FormatError) {
    var foundTags: Set<Tag> = []
    var offset = start
    for record in records {
      if let expected = (required + optional).first(where: { $0.tag == record.tag }) {
        guard record.value.count == expected.count else {
          throw FormatError(
            .keybag, .malformed, "\(record) in \(section); it should have \(expected.count)", offset: offset)
        }
        guard foundTags.insert(record.tag).inserted else {
          throw FormatError(.keybag, .malformed, "\(record.tag) occurs twice in \(section)", offset: offset)
        }
      }
      offset += record.byteCount
    }
    for (tag, _) in required where !foundTags.contains(tag) {
      throw FormatError(.keybag, .malformed, "\(section) has no \(tag)", offset: offset)
    }
  }

  private static func checkKey(of classKey: ClassKey, from start: Int) throws(FormatError) {
    var offset = start
    var keyCount = 0
    for record in classKey.records {
      if record.tag == .wrappedKey {
        keyCount += 1
        guard keyCount == 1 else {
          throw FormatError(.keybag, .malformed, "WPKY occurs twice in a class key", offset: offset)
        }
        // RFC 3394 adds 8 bytes to the key's 32.
        let requiredCount = classKey.wrap?.contains(.password) == true ? 40 : 32
        guard record.value.count == requiredCount else {
          throw FormatError(
            .keybag, .malformed, "\(record) in a class key; its WRAP requires \(requiredCount)", offset: offset)
        }
      }
      offset += record.byteCount
    }
    guard keyCount == 1 else { throw FormatError(.keybag, .malformed, "a class key has no WPKY", offset: offset) }
    if classKey.keyType == .curve25519, classKey.publicKey == nil {
      throw FormatError(.keybag, .malformed, "a Curve25519 class key has no PBKY", offset: offset)
    }
  }
}

extension Keybag {
  /// The reason why the derivation parameters are ambiguous, or `nil` if they are not. A field may occur twice with
  /// different values, or `DPIC` may have the wrong length. Readers that pick different values would derive different
  /// keys.
  package var derivationFault: String? {
    for tag in [Tag.salt, .iterations, .dpic, .dpsl] where Set(header.filter { $0.tag == tag }.map(\.value)).count > 1 {
      return "its \(tag) occurs twice with different values"
    }
    guard dpic == nil, let value = header.value(of: .dpic) else { return nil }
    return "its \(Tag.dpic) has \(value.count) bytes where 4 are expected"
  }
}

extension Keybag.ClassKey {
  /// Whether the wrapped key occurs twice with different values.
  package var isAmbiguous: Bool { Set(records.filter { $0.tag == .wrappedKey }.map(\.value)).count > 1 }
}
