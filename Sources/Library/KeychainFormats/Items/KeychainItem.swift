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

extension AttributeCode {
  /// Returns whether an item of this kind stores the attribute with its secrets (flag D).
  func isSecret(in kind: ItemKind) -> Bool {
    AttributeTable.secretCodes(of: kind).contains(self)
  }
}
