package import Basics

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
  ///   - packs: Whether to pack the item, which saves memory if the item is kept.
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
    var nullCodes: Set<AttributeCode> = []
    var contents = dictionary.contents
    while !contents.isAtEnd {
      let pair = try decoder.pair(in: &contents)
      try add(pair, from: &decoder, nullCodes: &nullCodes)
    }
    if packs { pack() }
    attributes.internCodes(for: kind)
    secrets.internCodes(Self.usualSecretCodes)
  }

  /// Adds an attribute or a secret. If a code occurs twice, the first value counts, even if it is null.
  ///
  /// - Parameters:
  ///   - pair: The code and the value.
  ///   - decoder: The decoder of the pair.
  ///   - nullCodes: The codes whose first value was null, which the item itself does not record.
  private mutating func add(
    _ pair: (key: DERDecoder.Element, value: DERDecoder.Element), from decoder: inout DERDecoder,
    nullCodes: inout Set<AttributeCode>
  ) throws(FormatError) {
    let code = try decoder.attributeCode(of: pair.key)
    if code.isSecret(in: kind) {
      let secret = try Self.secret(of: pair.value, code: code, decoder: decoder)
      guard !nullCodes.contains(code), secrets[code] == nil else { return }
      if let secret { secrets[code] = secret } else { nullCodes.insert(code) }
    } else {
      let value = try decoder.value(of: pair.value, depth: 2)
      guard !nullCodes.contains(code), attributes[code] == nil else { return }
      if case .null = value { nullCodes.insert(code) } else { attributes[code] = value }
    }
  }

  /// Reads a decrypted item of blob version 3 from bytes that are wiped by their last owner.
  ///
  /// - Throws: `FormatError` with the offset if the bytes are not a DER dictionary with string keys.
  package init(derDictionary bytes: SensitiveBytes, kind: ItemKind) throws(FormatError) {
    self = try bytes.withBytes { (bytes) throws(FormatError) in try KeychainItem(derDictionary: bytes, kind: kind) }
  }

  /// The secret codes that almost every item has.
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

  /// Returns the item's plaintext for a blob of version 3, secrets included. For an unchanged item that a device
  /// encoded, these are the original bytes.
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
