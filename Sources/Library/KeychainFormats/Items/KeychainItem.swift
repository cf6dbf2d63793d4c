public import Basics

/// A decrypted keychain item: its kind, its attributes with their original types, and its secrets separately.
///
/// Unknown attributes are preserved. The description of an item contains no values.
public struct KeychainItem: Sendable, CustomStringConvertible, CustomReflectable {
  /// All attributes except the secrets. An absent attribute has no entry; `null` is never stored.
  package var attributes: AttributeMap<PropertyValue>
  /// The values of attributes flagged D: `v_Data` and, for internet passwords, `binn bini bin0…bin3`.
  package var secrets: AttributeMap<SensitiveBytes>
  /// The kind, which determines the possible attributes and which of them are secrets.
  public var kind: ItemKind

  /// Creates an item without attributes.
  public init(kind: ItemKind) { self.init(kind: kind, attributes: [:], secrets: [:]) }

  /// Creates an item. Attributes that are secrets of its kind must be in `secrets` only.
  package init(
    kind: ItemKind, attributes: AttributeMap<PropertyValue> = [:], secrets: AttributeMap<SensitiveBytes> = [:]
  ) {
    self.kind = kind
    self.attributes = attributes
    self.secrets = secrets
  }

  /// Returns whether both items were read from the same bytes, attribute for attribute; `false` is possible for equal
  /// items.
  package func hasSamePackedContent(as other: KeychainItem) -> Bool {
    kind == other.kind && attributes.hasSamePackedValues(as: other.attributes) && secrets.keys == other.secrets.keys
      && zip(secrets, other.secrets).allSatisfy { $0.value.constantTimeEquals($1.value) }
  }

  /// Packs the item into as little memory as possible until it is changed.
  package mutating func pack() {
    attributes.pack()
    secrets.pack()
  }

  /// Whether the item is packed.
  package var isPacked: Bool { attributes.packed != nil }

  /// Unpacks the attributes, for a caller that reads all of them more than once.
  package mutating func unpack() { attributes.unpack() }

  /// The value of a non-secret attribute, or `nil` if the item does not have it. Setting `nil` removes the attribute.
  public subscript(code: AttributeCode) -> PropertyValue? {
    get { attributes[code] }
    set { attributes[code] = newValue }
  }

  /// The item's secret (`v_Data`): a password, a DER certificate or the bytes of a key.
  public var secret: SensitiveBytes? {
    get { secrets[.valueData] }
    set { secrets[.valueData] = newValue }
  }

  /// The protection class in the `pdmn` attribute, or `nil` if it is absent or unknown.
  public var protection: ProtectionClass? {
    get { attributes[.protection]?.stringValue.flatMap(ProtectionClass.init(rawValue:)) }
    set { attributes[.protection] = newValue.map { .string($0.rawValue) } }
  }

  /// The access group (`agrp`) of apps that share the item, such as `ABCDE12345.org.example.app`.
  public var accessGroup: String? { attributes[.accessGroup]?.stringValue }
  /// Whether iCloud Keychain synchronizes the item (`sync` is 1). A restore does not remove such items from the target.
  package var isSynchronizable: Bool { attributes[.synchronizable]?.integerValue == 1 }
  /// Whether the item is a tombstone (`tomb` is 1), which informs other devices of a deletion.
  package var isTombstone: Bool { attributes[.tombstone]?.integerValue == 1 }
  /// The date of the last change (`mdat`), which decides between two items with the same primary key.
  public var modificationDate: KeychainDate? { attributes[.modificationDate]?.dateValue }
  /// The creation date (`cdat`).
  public var creationDate: KeychainDate? { attributes[.creationDate]?.dateValue }

  public var description: String { "<\(kind.reportName), \(attributes.count) attributes>" }
  public var customMirror: Mirror { Mirror(self, children: ["kind": kind]) }
}

extension KeychainItem {
  /// Reads a decrypted item of blob version 3: one DER dictionary with string keys and nothing after it.
  ///
  /// Secrets are copied only into `SensitiveBytes`. Malformed dates become 2001-03-24, as on a device.
  /// - Parameters:
  ///   - bytes: The plaintext of the blob. The caller has to wipe it.
  ///   - kind: The kind of the item's table or array, which determines the secret attributes.
  /// - Throws: `.malformed`, `.truncated`, `.trailingBytes` or `.overLimit`, with the offset.
  package init(derDictionary bytes: UnsafeRawBufferPointer, kind: ItemKind) throws(FormatError) {
    try self.init(derDictionary: bytes, kind: kind, repairsDates: true)
  }

  /// Reads a decrypted item, and optionally rejects malformed dates, as in the boxes of versions 7 and 8.
  ///
  /// - Parameters:
  ///   - bytes: The plaintext. The caller has to wipe it.
  ///   - kind: The kind of the item.
  ///   - repairsDates: Whether malformed dates are replaced instead of rejected.
  ///   - packs: Whether to pack the item, because it stays in memory.
  /// - Throws: `.malformed`, `.truncated`, `.trailingBytes` or `.overLimit`, with the offset.
  package init(
    derDictionary bytes: UnsafeRawBufferPointer, kind: ItemKind, repairsDates: Bool = true, packs: Bool = true
  ) throws(FormatError) {
    if packs, let packed = KeychainItem(packing: bytes, kind: kind) {
      self = packed
      return
    }
    var decoder = try DERDecoder(bytes, format: .item, dates: repairsDates ? .substitute : .refuse)
    let dictionary = try decoder.onlyElement()
    guard dictionary.tag == DERPropertyList.Tag.dictionary else {
      throw decoder.malformed(dictionary, "an item that is not a dictionary")
    }
    self.init(kind: kind)
    attributes.reserveCapacity(try decoder.pairCount(in: dictionary.contents))
    // The codes whose first value was null, which the item itself does not record.
    var absent: Set<AttributeCode> = []
    var contents = dictionary.contents
    while !contents.isAtEnd {
      let pair = try decoder.pair(in: &contents)
      let code = try decoder.attributeCode(of: pair.key)
      if code.isSecret(in: kind) {
        let secret = try Self.secret(of: pair.value, code: code, decoder: decoder)
        guard absent.isEmpty || !absent.contains(code), secrets[code] == nil else { continue }
        if let secret { secrets[code] = secret } else { absent.insert(code) }
      } else {
        let value = try decoder.value(of: pair.value, depth: 2)
        guard absent.isEmpty || !absent.contains(code) else { continue }
        // If a code occurs twice, the first value counts.
        if case .null = value {
          if attributes[code] == nil { absent.insert(code) }
        } else {
          attributes.insert(value, forKey: code)
        }
      }
    }
    if packs { pack() }
    attributes.internCodes(for: kind)
    secrets.internCodes(Self.usualSecretCodes)
  }

  /// Reads a decrypted item of blob version 3 from bytes that are wiped by their last owner.
  ///
  /// - Throws: `FormatError` with the offset if the bytes are not a DER dictionary with string keys.
  package init(derDictionary bytes: SensitiveBytes, kind: ItemKind) throws(FormatError) {
    self = try bytes.withBytes { (bytes) throws(FormatError) in try KeychainItem(derDictionary: bytes, kind: kind) }
  }

  /// The codes of almost every item's secrets.
  static let usualSecretCodes = [AttributeCode.valueData]

  /// Returns a secret that is data or text, or `nil` if it is null.
  private static func secret(
    of value: DERDecoder.Element, code: AttributeCode, decoder: DERDecoder
  ) throws(FormatError) -> SensitiveBytes? {
    switch value.tag {
    case DERPropertyList.Tag.data, DERPropertyList.Tag.string:
      var contents = value.contents
      let range = try contents.take(contents.remaining, "the secret")
      return SensitiveBytes(copying: contents.bytes(in: range))
    case DERPropertyList.Tag.null:
      return nil
    default:
      throw decoder.malformed(value, "a value of \(code.rawValue) that is not data")
    }
  }

  /// Returns the item's plaintext for a blob of version 3, secrets included; the original bytes if nothing has changed.
  ///
  /// - Throws: `.unencodable` for a value that DER cannot represent, or a secret's code among the attributes.
  package func derDictionary() throws(FormatError) -> SensitiveBytes {
    for code in attributes.keys where code.isSecret(in: kind) {
      throw FormatError(.item, .unencodable, "\(code.rawValue) is among the attributes but belongs to the secrets")
    }
    return try ItemEncoder(keepsDateText: true).encode(attributes: attributes, secrets: secrets)
  }

  /// The attributes for a box of versions 7 and 8, without the entries that the box adds.
  ///
  /// They are the attributes flagged C or U, required attributes with their defaults, and unknown attributes.
  package var boxedAttributes: AttributeMap<PropertyValue> {
    var boxed = attributes.filter { code, _ in AttributeTable.definition(of: code, in: kind) == nil }
    for definition in AttributeTable.definitions(of: kind) where definition.flags.isBoxed {
      boxed[definition.code] = attributes[definition.code] ?? definition.defaultValue
    }
    return boxed
  }

  /// Returns the DER of a dictionary for one of the boxes of versions 7 and 8, in memory that is wiped.
  ///
  /// - Throws: `.unencodable` for a value that DER cannot represent.
  package static func boxDictionary(
    _ attributes: AttributeMap<PropertyValue>, secrets: AttributeMap<SensitiveBytes> = [:]
  ) throws(FormatError) -> SensitiveBytes {
    try ItemEncoder(keepsDateText: true).encode(attributes: attributes, secrets: secrets)
  }
}

extension AttributeFlags {
  /// Whether a box of versions 7 and 8 contains the attribute.
  fileprivate var isBoxed: Bool {
    !contains(.returnedAsData) && (contains(.encrypted) || contains(.authenticated))
  }
}

extension KeychainItem {
  /// Returns whether the item's DER dictionary certainly fits into a number of bytes, and its digest can be encoded.
  ///
  /// Looks only at the sizes of values, which is much faster than encoding. `false` means that the result is unknown.
  package func certainlyEncodes(within maximumByteCount: Int) -> Bool {
    var count = ItemEncoder.maximumOverhead
    let packed = attributes.packed
    for (index, code) in attributes.keys.enumerated() {
      let contentCount =
        packed.map { $0.maximumDERByteCount(at: index) } ?? attributes[index].value.maximumEncodedByteCount
      guard !code.isSecret(in: kind), let contentCount else { return false }
      count += ItemEncoder.maximumOverhead + code.rawValue.utf8.count + contentCount
    }
    for (code, secret) in secrets { count += ItemEncoder.maximumOverhead + code.rawValue.utf8.count + secret.count }
    return count <= maximumByteCount
  }

  /// Whether encoding and decoding the item certainly gives the same item, in any order; `false` means that the result
  /// is unknown.
  package var roundTripsExactly: Bool {
    // An encoding of this size cannot contain more values than the decoder accepts.
    isPacked && secrets.keys.allSatisfy { $0.isSecret(in: kind) }
      && certainlyEncodes(within: DERPropertyList.maximumValueCount)
  }
}

extension PropertyValue {
  /// An upper bound in bytes, or `nil` if only encoding shows whether the value can be encoded.
  fileprivate var maximumEncodedByteCount: Int? {
    switch self {
    case .null, .boolean, .integer: 8
    case .data(let bytes): bytes.count
    case .string(let text): text.utf8.count
    case .date(let date): DERDate.maximumByteCount(of: date)
    case .unsignedInteger, .real, .uid, .array, .dictionary, .set: nil
    }
  }
}

extension AttributeCode {
  /// Returns whether an item of this kind stores the attribute with its secrets (flag D).
  func isSecret(in kind: ItemKind) -> Bool {
    AttributeTable.secretCodes(of: kind).contains(self)
  }
}

/// Encodes the dictionary of an item into memory that is wiped, without other copies of its secrets.
struct ItemEncoder {
  let keepsDateText: Bool

  /// The maximum number of bytes of a pair in addition to its code and its contents: three tags and three lengths of up
  /// to five bytes.
  static let maximumOverhead = 18

  /// A pair: the bytes before the value's contents, and the contents if they are secret.
  private struct Pair {
    var head: Range<Int>
    var secret: SensitiveBytes?

    var byteCount: Int { head.count + (secret?.count ?? 0) }
  }

  /// - Parameter attributes: The attributes, with distinct codes.
  func encode(
    attributes: some Sequence<(key: AttributeCode, value: PropertyValue)>, secrets: AttributeMap<SensitiveBytes>
  ) throws(FormatError) -> SensitiveBytes {
    let encoder = DEREncoder(keepsDateText: keepsDateText)
    var pairs: [Pair] = []
    pairs.reserveCapacity(attributes.underestimatedCount + secrets.count)
    // The heads of all pairs share one array, because an array for each would cost more than its contents.
    var heads: [UInt8] = []
    var contents: [UInt8] = []
    func appendPair(_ secret: SensitiveBytes?) {
      let start = heads.count
      DEREncoder.appendHeader(DERPropertyList.Tag.sequence, count: contents.count + (secret?.count ?? 0), to: &heads)
      heads.append(contentsOf: contents)
      pairs.append(Pair(head: start..<heads.count, secret: secret))
      contents.removeAll(keepingCapacity: true)
    }
    for (code, value) in attributes where value != .null {
      DEREncoder.appendElement(DERPropertyList.Tag.string, code.rawValue.utf8, to: &contents)
      try encoder.append(value, depth: 2, to: &contents)
      appendPair(nil)
    }
    for (code, secret) in secrets {
      DEREncoder.appendElement(DERPropertyList.Tag.string, code.rawValue.utf8, to: &contents)
      DEREncoder.appendHeader(DERPropertyList.Tag.data, count: secret.count, to: &contents)
      appendPair(secret)
    }
    // The keys are distinct and none is a prefix of another, so a comparison never reaches a value.
    pairs.sort { heads[$0.head].lexicographicallyPrecedes(heads[$1.head]) }
    let count = pairs.reduce(0) { $0 + $1.byteCount }
    var head: [UInt8] = []
    DEREncoder.appendHeader(DERPropertyList.Tag.dictionary, count: count, to: &head)
    return SensitiveBytes(count: head.count + count) { target in
      var offset = 0
      func append(_ bytes: UnsafeRawBufferPointer) {
        UnsafeMutableRawBufferPointer(rebasing: target[offset..<(offset + bytes.count)]).copyMemory(from: bytes)
        offset += bytes.count
      }
      head.withUnsafeBytes { append($0) }
      heads.withUnsafeBytes { heads in
        for pair in pairs {
          append(UnsafeRawBufferPointer(rebasing: heads[pair.head]))
          pair.secret?.withBytes { append($0) }
        }
      }
    }
  }
}

extension KeychainItem {
  /// Returns the dictionary whose SHA-1 is the item's primary-key digest and whose SHA-256 gives its derived UUID.
  ///
  /// It contains all attributes flagged P. Absent required attributes have their defaults; an absent `vwht`, `tkid` or
  /// `ggrp` is omitted. Dates are encoded from their seconds. Source: Apple `SecDbItem.c` (`SecDbItemCopyPrimaryKey`).
  /// - Throws: `.unencodable` for a value that DER cannot represent.
  package func primaryKeyEncoding() throws(FormatError) -> [UInt8] {
    let encoded = try ItemEncoder(keepsDateText: false).encode(
      attributes: attributesWithDefaults(flagged: .primaryKey), secrets: [:])
    return encoded.withBytes { Array($0) }
  }

  /// Returns the dictionary whose SHA-1 is the item's stored digest (`sha1`): all attributes flagged H, including the
  /// secret.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetSHA1`).
  /// - Throws: `.unencodable` for a value that DER cannot represent.
  package func digestEncoding() throws(FormatError) -> SensitiveBytes {
    let secrets = self.secrets.filter { code, _ in
      AttributeTable.definition(of: code, in: kind)?.flags.contains(.inDigest) ?? false
    }
    return try ItemEncoder(keepsDateText: false).encode(
      attributes: attributesWithDefaults(flagged: .inDigest), secrets: secrets)
  }

  private func attributesWithDefaults(flagged flag: AttributeFlags) -> [(key: AttributeCode, value: PropertyValue)] {
    AttributeTable.definitions(of: kind).compactMap { definition in
      guard definition.flags.contains(flag), !definition.flags.contains(.returnedAsData) else { return nil }
      return (attributes[definition.code] ?? definition.defaultValue).map { (definition.code, $0) }
    }
  }
}

extension AttributeDefinition {
  /// The value to assume if a required attribute is absent, or `nil` if the attribute is optional.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbAttrCopyDefaultValue`).
  package var defaultValue: PropertyValue? {
    guard flags.contains(.notNull) else { return nil }
    return switch kind {
    case .number, .sync, .tomb, .useTombstone, .rowID: .integer(0)
    case .creationDate, .modificationDate, .date: .date(.reference)
    case .blob, .data, .encryptedData, .sha1, .primaryKey, .uuid, .accessControl: .data([])
    case .string, .access: .string("")
    }
  }
}

extension KeychainItem {
  /// Reads an item directly into its packed form, or returns `nil` if only `init(derDictionary:)` can read it or report
  /// its error.
  package init?(packing bytes: UnsafeRawBufferPointer, kind: ItemKind) {
    var reader = CanonicalDERReader(bytes)
    guard let dictionary = reader.next(), dictionary.tag == DERPropertyList.Tag.dictionary,
      reader.remainingBytes.isEmpty
    else { return nil }
    // Key items have the most attributes, 37 in the fixtures. With a larger capacity, the elements would not be on the
    // stack.
    let maximumCount = 42
    var secrets: AttributeMap<SensitiveBytes> = [:]
    let attributes = withUnsafeTemporaryAllocation(of: CanonicalDERReader.Element.self, capacity: maximumCount) {
      elements -> AttributeMap<PropertyValue>? in
      var codes: [AttributeCode] = []
      codes.reserveCapacity(maximumCount / 2)
      var pairs = CanonicalDERReader(dictionary.contents)
      while !pairs.remainingBytes.isEmpty {
        guard let (key, value) = pairs.nextPair(), let code = AttributeCode(utf8: key) else { return nil }
        if code.isSecret(in: kind) {
          guard value.tag == DERPropertyList.Tag.data, secrets[code] == nil else { return nil }
          secrets[code] = SensitiveBytes(copying: value.contents)
        } else {
          guard codes.count < maximumCount, AttributeCode.index(of: code, in: codes) == nil else { return nil }
          elements.initializeElement(at: codes.count, to: value)
          codes.append(code)
        }
      }
      let packed = PackedPropertyValues(UnsafeBufferPointer(rebasing: elements[..<codes.count]))
      return packed.map { AttributeMap(codes, packed: $0) }
    }
    guard let attributes else { return nil }
    self.init(kind: kind, attributes: attributes, secrets: secrets)
    self.secrets.pack()
    self.attributes.internCodes(for: kind)
    self.secrets.internCodes(Self.usualSecretCodes)
  }
}

extension KeychainItem {
  /// Reads a decrypted item of blob version 2: one binary property list, a dictionary with string keys.
  ///
  /// Secrets are copied only into `SensitiveBytes`.
  /// - Throws: `.malformed`, `.truncated`, `.unsupportedVersion` or `.overLimit`, with the offset.
  package init(plistDictionary bytes: UnsafeRawBufferPointer, kind: ItemKind) throws(FormatError) {
    let document = try BinaryPlistReader(bytes, limits: .item)
    var builder = BinaryPlistDecoder(document, limits: .item)
    guard case .dictionary(let keys, let values) = try document.object(at: document.rootIndex) else {
      throw document.malformed("an item that is not a dictionary", try document.offset(ofObject: document.rootIndex))
    }
    self.init(kind: kind)
    var seen: Set<AttributeCode> = []
    for position in 0..<keys.count {
      let keyIndex = try document.index(position, of: keys)
      let valueIndex = try document.index(position, of: values)
      guard let name = try builder.value(at: keyIndex).stringValue else {
        throw document.malformed("a key that is not a string", try document.offset(ofObject: keyIndex))
      }
      let code = AttributeCode(rawValue: name)
      guard seen.insert(code).inserted else { continue }
      if code.isSecret(in: kind) {
        secrets[code] = try Self.secret(at: valueIndex, code: code, of: document)
      } else {
        let value = try builder.value(at: valueIndex)
        if value != .null { attributes[code] = value }
      }
    }
  }

  /// Reads a decrypted item of blob version 2 from bytes that are wiped by their last owner.
  ///
  /// - Throws: `FormatError` with the offset if the bytes are not a property list with a dictionary.
  package init(plistDictionary bytes: SensitiveBytes, kind: ItemKind) throws(FormatError) {
    self = try bytes.withBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> KeychainItem in
      try KeychainItem(plistDictionary: buffer, kind: kind)
    }
  }

  /// Returns a secret that is data or ASCII text, or `nil` if it is null.
  private static func secret(
    at index: Int, code: AttributeCode, of document: BinaryPlistReader
  ) throws(FormatError) -> SensitiveBytes? {
    switch try document.object(at: index) {
    case .data(let range), .asciiString(let range):
      return document.bytes.withBytes(range) { SensitiveBytes(copying: $0) }
    case .null:
      return nil
    default:
      throw document.malformed("a value of \(code.rawValue) that is not data", try document.offset(ofObject: index))
    }
  }
}
