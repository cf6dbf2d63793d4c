public import Basics

/// A decrypted keychain item: its kind, its attributes with their original types, and its secrets separately.
///
/// Unknown attributes are preserved. The description of an item contains no values.
public struct KeychainItem: Sendable, CustomStringConvertible, CustomReflectable {
  /// All attributes except the secrets. An absent attribute has no entry; `null` is never stored.
  package var attributes: AttributeMap<PropertyValue>
  /// The values of the attributes that Apple's schema returns as data (flag D): `v_Data` and, for internet passwords,
  /// `binn bini bin0…bin3`.
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

  /// Returns whether both items store the same secrets and the same packed attributes, in the same order. May
  /// be `false` even if the items are equal.
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

extension AttributeCode {
  /// Returns whether an item of this kind stores the attribute with its secrets, as data (flag D).
  func isSecret(in kind: ItemKind) -> Bool {
    AttributeTable.secretCodes(of: kind).contains(self)
  }
}

extension KeychainItem {
  /// Reads an item directly into its packed form. Returns `nil` if this fast reader cannot read the bytes;
  /// `init(derDictionary:)` then reads them or throws.
  package init?(packing bytes: UnsafeRawBufferPointer, kind: ItemKind) {
    var reader = CanonicalDERReader(bytes)
    guard let dictionary = reader.next(), dictionary.tag == DERPropertyList.Tag.dictionary,
      reader.remainingBytes.isEmpty
    else { return nil }
    // Items of kind key have the most attributes: 37 in the fixtures. A larger buffer would be allocated on the heap.
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
    var decoder = BinaryPlistDecoder(document, limits: .item)
    guard case .dictionary(let keys, let values) = try document.object(at: document.rootIndex) else {
      throw document.malformed("an item that is not a dictionary", try document.offset(ofObject: document.rootIndex))
    }
    self.init(kind: kind)
    var readCodes: Set<AttributeCode> = []
    for position in 0..<keys.count {
      let keyIndex = try document.index(position, of: keys)
      let valueIndex = try document.index(position, of: values)
      guard let name = try decoder.value(at: keyIndex).stringValue else {
        throw document.malformed("a key that is not a string", try document.offset(ofObject: keyIndex))
      }
      let code = AttributeCode(rawValue: name)
      guard readCodes.insert(code).inserted else { continue }
      if code.isSecret(in: kind) {
        secrets[code] = try Self.secret(at: valueIndex, code: code, of: document)
      } else {
        let value = try decoder.value(at: valueIndex)
        if value != .null { attributes[code] = value }
      }
    }
  }

  /// Reads a decrypted item of blob version 2 from bytes that are wiped when their last owner releases them.
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
