import Basics

/// The class keys of a backup or a device, wrapped, and how the key that opens them is derived.
///
/// A flat run of records: header fields first, then one group for each class key. The first `UUID` belongs to the
/// header, every later one starts a group. Records that nothing here knows are kept as they came, so that a bag that was
/// read is written byte for byte. Reading checks the records alone; `validate()` checks what they say.
///
/// Source: the bags of Apple Security's `secd-34-backup-der-parse` test; iphone-dataprotection, `keystore/keybag.py`.
public struct Keybag: Sendable, Hashable {
  /// Every bag seen is under 2 kB.
  public static let maximumByteCount = 65_536
  /// Every bag seen has eleven or twelve.
  public static let maximumClassKeyCount = 64

  /// Header records in the order they came.
  public private(set) var header: [Record]
  /// The class keys in the order they came.
  public var classKeys: [ClassKey]

  /// Creates a bag of nothing, for where there is none that can be read.
  public init() { (header, classKeys) = ([], []) }

  /// Reads a bag without its outer signature (see `SignedKeybag` for the bag of a device).
  ///
  /// - Throws: `.truncated` where a record runs past the end, `.overLimit` for a bag over a named limit.
  public init(parsing bytes: [UInt8]) throws(FormatError) {
    let records = try Self.records(of: bytes)
    var groupStarts: [Int] = []
    for (index, record) in records.enumerated() where record.tag == .uuid { groupStarts.append(index) }
    groupStarts = Array(groupStarts.dropFirst())
    guard groupStarts.count <= Self.maximumClassKeyCount else {
      throw FormatError(
        .keybag, .overLimit, "\(groupStarts.count) class keys; at most \(Self.maximumClassKeyCount) are accepted")
    }
    header = Array(records[..<(groupStarts.first ?? records.count)])
    classKeys = groupStarts.indices.map { index in
      let end = index + 1 < groupStarts.count ? groupStarts[index + 1] : records.count
      return ClassKey(records: Array(records[groupStarts[index]..<end]))
    }
  }

  /// The second, slower round of the password derivation (iOS 10.2 and later).
  public struct SecondRound: Sendable, Hashable {
    /// `DPIC`, the PBKDF2-HMAC-SHA256 rounds.
    public var rounds: UInt32
    /// `DPSL`, twenty bytes.
    public var salt: [UInt8]

    /// Creates the round; `salt` has twenty bytes in every real bag.
    public init(rounds: UInt32, salt: [UInt8]) {
      self.rounds = rounds
      self.salt = salt
    }
  }

  /// Builds a bag to write, with its header records in Apple's order.
  ///
  /// - Parameters:
  ///   - version: 4 in the bags of current backups; no reader decides by it.
  ///   - type: What the bag is for.
  ///   - uuid: Sixteen bytes.
  ///   - hmacKey: Forty bytes; zero in every real backup bag.
  ///   - wrap: Of the header, which no key is wrapped by.
  ///   - salt: Twenty bytes.
  ///   - iterations: The PBKDF2-HMAC-SHA1 rounds (or the tangling rounds of a device's bag).
  ///   - secondRound: The slow round since iOS 10.2; `nil` for a bag with one round.
  ///   - classKeys: The groups in the order of the bytes.
  /// - Throws: `.malformed` for a field of the wrong size or a class that occurs twice.
  public init(
    version: UInt32 = 4, type: BagType, uuid: [UInt8], hmacKey: [UInt8] = [UInt8](repeating: 0, count: 40),
    wrap: WrapFlags = [], salt: [UInt8], iterations: UInt32, secondRound: SecondRound? = nil, classKeys: [ClassKey]
  ) throws(FormatError) {
    header = [
      Record(.version, version), Record(.type, type.rawValue), Record(.uuid, uuid), Record(.hmacKey, hmacKey),
      Record(.wrap, wrap.rawValue), Record(.salt, salt), Record(.iterations, iterations),
    ]
    if let secondRound {
      header += [Record(.dpwt, 1), Record(.dpic, secondRound.rounds), Record(.dpsl, secondRound.salt)]
    }
    self.classKeys = classKeys
    try validate()
  }

  /// The bag's bytes; for a bag that was read and not changed, the same bytes.
  public func serialized() -> [UInt8] { Self.serialized(records) }

  /// Header and groups in the order of the bytes.
  var records: [Record] { header + classKeys.flatMap(\.records) }
}

/// Header fields. Reading gives `nil` if the record is absent or has a length that is not the field's.
/// Writing replaces the first record's value in place, adds an absent record, or removes it with `nil`.
extension Keybag {
  /// `VERS`, 2 to 5 in real bags. No reader decides anything by it.
  public var version: UInt32? {
    get { header.word(of: .version) }
    set { header.set(.version, to: newValue) }
  }

  /// The kind of bag, without the flag bits that device bags carry.
  public var type: BagType? { header.word(of: .type).map { BagType(rawValue: $0 & BagType.mask) } }

  /// Sixteen bytes.
  public var uuid: [UInt8]? {
    get { header.value(of: .uuid).flatMap { $0.count == 16 ? $0 : nil } }
    set { header.set(.uuid, to: newValue) }
  }

  /// The lower-case text of `uuid`, which a keychain file names as its `keybag-uuid`.
  public var uuidText: String? { uuid.flatMap(UUIDText.lowercase) }

  /// The `WRAP` of the header; 0 in backup bags, and without effect on the class keys, which have their own.
  public var wrap: WrapFlags? { header.word(of: .wrap).map(WrapFlags.init(rawValue:)) }

  /// The salt of the SHA-1 round.
  public var salt: [UInt8]? {
    get { header.value(of: .salt) }
    set { header.set(.salt, to: newValue) }
  }

  /// The rounds of the SHA-1 derivation.
  public var iterations: UInt32? {
    get { header.word(of: .iterations) }
    set { header.set(.iterations, to: newValue) }
  }

  /// 1 where the second round is used; its meaning is not published.
  public var dpwt: UInt32? {
    get { header.word(of: .dpwt) }
    set { header.set(.dpwt, to: newValue) }
  }

  /// The rounds of the SHA-256 derivation.
  public var dpic: UInt32? {
    get { header.word(of: .dpic) }
    set { header.set(.dpic, to: newValue) }
  }

  /// The salt of the SHA-256 round.
  public var dpsl: [UInt8]? {
    get { header.value(of: .dpsl) }
    set { header.set(.dpsl, to: newValue) }
  }

  /// The wrapped key of the signature; forty zero bytes in real backup bags.
  public var hmacKey: [UInt8]? {
    get { header.value(of: .hmacKey) }
    set { header.set(.hmacKey, to: newValue) }
  }

  /// Both fields of the second round, where the bag has both and asks for at least one round.
  ///
  /// Setting it writes `DPWT`, `DPIC` and `DPSL`, or removes all three.
  public var secondRound: SecondRound? {
    get {
      guard let dpic, dpic > 0, let dpsl else { return nil }
      return SecondRound(rounds: dpic, salt: dpsl)
    }
    set {
      dpwt = newValue.map { _ in dpwt ?? 1 }
      dpic = newValue?.rounds
      dpsl = newValue?.salt
    }
  }

  /// The first group of a class.
  public func classKey(_ keyClass: KeyClass) -> ClassKey? { classKeys.first { $0.keyClass == keyClass } }
}

extension Keybag {
  /// Checks that every field that opening the bag needs is there once, with its length.
  ///
  /// Unknown records, class numbers and bag types are no fault, nor is any version.
  /// - Throws: `.malformed` that names the field, with the offset of the record at fault, or for an absent field the
  ///   offset where the header or the group ends.
  public func validate() throws(FormatError) {
    var offset = 0
    try Self.check(
      header, of: "the header", from: offset, required: Self.headerLengths, optional: Self.secondRoundLengths)
    offset += header.reduce(0) { $0 + $1.byteCount }
    if (dpic == nil) != (dpsl == nil) {
      throw FormatError(.keybag, .malformed, "the header has only one of DPIC and DPSL", offset: offset)
    }
    var seen: Set<KeyClass> = []
    for classKey in classKeys {
      try Self.check(
        classKey.records, of: "a class key", from: offset, required: Self.groupLengths, optional: Self.groupExtraLengths
      )
      try Self.checkKey(of: classKey, from: offset)
      if let keyClass = classKey.keyClass, !seen.insert(keyClass).inserted {
        throw FormatError(.keybag, .malformed, "class \(keyClass.rawValue) occurs twice", offset: offset)
      }
      offset += classKey.records.reduce(0) { $0 + $1.byteCount }
    }
  }

  private typealias Lengths = [(tag: Tag, count: Int)]

  private static let headerLengths: Lengths = [
    (.version, 4), (.type, 4), (.uuid, 16), (.hmacKey, 40), (.wrap, 4), (.salt, 20), (.iterations, 4),
  ]
  private static let secondRoundLengths: Lengths = [(.dpwt, 4), (.dpic, 4), (.dpsl, 20)]
  private static let groupLengths: Lengths = [(.uuid, 16), (.keyClass, 4), (.wrap, 4)]
  private static let groupExtraLengths: Lengths = [(.keyType, 4), (.publicKey, 32)]

  private static func check(
    _ records: [Record], of place: String, from start: Int, required: Lengths, optional: Lengths
  ) throws(FormatError) {
    var seen: Set<Tag> = []
    var offset = start
    for record in records {
      let known = (required + optional).first { $0.tag == record.tag }
      if let known {
        guard record.value.count == known.count else {
          throw FormatError(
            .keybag, .malformed, "\(record) in \(place); it should have \(known.count)", offset: offset)
        }
        guard seen.insert(record.tag).inserted else {
          throw FormatError(.keybag, .malformed, "\(record.tag) occurs twice in \(place)", offset: offset)
        }
      }
      offset += record.byteCount
    }
    for (tag, _) in required where !seen.contains(tag) {
      throw FormatError(.keybag, .malformed, "\(place) has no \(tag)", offset: offset)
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
        let expected = classKey.wrap?.contains(.password) == true ? 40 : 32
        guard record.value.count == expected else {
          throw FormatError(
            .keybag, .malformed, "\(record) in a class key; its WRAP requires \(expected)", offset: offset)
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
  /// Why the header does not say one thing about the derivation: a field that stands twice with two values, or a count of
  /// rounds that is none. A reader that took one of two values would derive another key than the next reader.
  public var derivationFault: String? {
    for tag in [Tag.salt, .iterations, .dpic, .dpsl] where Set(header.filter { $0.tag == tag }.map(\.value)).count > 1 {
      return "its \(tag) occurs twice with different values"
    }
    guard dpic == nil, let value = header.value(of: .dpic) else { return nil }
    return "its \(Tag.dpic) has \(value.count) bytes where 4 are expected"
  }
}

extension Keybag.ClassKey {
  /// Whether its wrapped key stands twice with two values.
  public var isAmbiguous: Bool { Set(records.filter { $0.tag == .wrappedKey }.map(\.value)).count > 1 }
}
