public import Basics

/// One keychain item in clear: its kind, its attributes with the types they had, and its secrets apart from them.
///
/// Attributes this project does not know survive reading and writing. Printing an item shows no value of it.
public struct KeychainItem: Sendable, CustomStringConvertible, CustomReflectable {
  /// Everything but the secrets. An absent attribute has no entry; `null` is never stored.
  public var attributes: AttributeMap<PropertyValue>
  /// The values of attributes flagged D: `v_Data` and, of internet passwords, `binn bini bin0…bin3`.
  public var secrets: AttributeMap<SensitiveBytes>
  /// The kind, which decides what attributes there are and which of them are secrets.
  public var kind: ItemKind

  /// Creates an item; what is a secret of its kind belongs into `secrets` alone.
  public init(
    kind: ItemKind, attributes: AttributeMap<PropertyValue> = [:], secrets: AttributeMap<SensitiveBytes> = [:]
  ) {
    self.kind = kind
    self.attributes = attributes
    self.secrets = secrets
  }

  /// Whether it was read from the same bytes as another one, attribute for attribute. Items that are otherwise equal may not
  /// have been.
  package func wasReadAlike(_ other: KeychainItem) -> Bool {
    kind == other.kind && attributes.isKeptAlike(other.attributes) && secrets.keys == other.secrets.keys
      && zip(secrets, other.secrets).allSatisfy { $0.value.constantTimeEquals($1.value) }
  }

  /// Keeps it in as little memory as there is for it, until it is changed: for an item that is held.
  package mutating func pack() {
    attributes.pack()
    secrets.pack()
  }

  /// Whether it is kept so.
  package var isPacked: Bool { attributes.packed != nil }

  /// Has its values at hand, for whoever asks for all of them more than once.
  package mutating func unpack() { attributes.unpack() }

  /// The value of an attribute that is no secret; `nil` where the item has none. Setting `nil` removes it.
  public subscript(code: AttributeCode) -> PropertyValue? {
    get { attributes[code] }
    set { attributes[code] = newValue }
  }

  /// The item's secret (`v_Data`): a password, a DER certificate or the bytes of a key.
  public var secret: SensitiveBytes? {
    get { secrets[.valueData] }
    set { secrets[.valueData] = newValue }
  }

  /// The protection class its `pdmn` attribute names; `nil` where it is absent or unknown.
  public var protection: ProtectionClass? {
    get { attributes[.protection]?.stringValue.flatMap(ProtectionClass.init(rawValue:)) }
    set { attributes[.protection] = newValue.map { .string($0.rawValue) } }
  }

  /// The access group (`agrp`): which apps share the item, `ABCDE12345.org.example.app` for example.
  public var accessGroup: String? { attributes[.accessGroup]?.stringValue }
  /// True for `sync` 1: the item travels by iCloud Keychain, and a restore removes none that the target has.
  public var isSynchronizable: Bool { attributes[.synchronizable]?.integerValue == 1 }
  /// True for `tomb` 1: the item was deleted, and what is left of it tells other devices so.
  public var isTombstone: Bool { attributes[.tombstone]?.integerValue == 1 }
  /// The date of the last change (`mdat`), which decides between two items of one primary key.
  public var modificationDate: KeychainDate? { attributes[.modificationDate]?.dateValue }
  /// The date the item was made (`cdat`).
  public var creationDate: KeychainDate? { attributes[.creationDate]?.dateValue }

  public var description: String { "<\(kind.reportName), \(attributes.count) attributes>" }
  public var customMirror: Mirror { Mirror(self, children: ["kind": kind]) }
}
