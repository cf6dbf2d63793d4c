/// One keychain item in clear: its kind, its attributes with the types they had, and its secrets apart from them.
///
/// Attributes this project does not know survive reading and writing. Printing an item shows no value of it.
public struct KeychainItem: Sendable, CustomStringConvertible, CustomReflectable {
  public var kind: ItemKind
  /// Everything but the secrets. An absent attribute has no entry; `null` is never stored.
  public var attributes: [AttributeCode: PropertyValue]
  /// The values of attributes flagged D: `v_Data` and, of internet passwords, `binn bini bin0…bin3`.
  public var secrets: [AttributeCode: SensitiveBytes]

  public init(
    kind: ItemKind, attributes: [AttributeCode: PropertyValue] = [:], secrets: [AttributeCode: SensitiveBytes] = [:]
  ) {
    self.kind = kind
    self.attributes = attributes
    self.secrets = secrets
  }

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

  public var accessGroup: String? { attributes[.accessGroup]?.stringValue }
  public var isSynchronizable: Bool { attributes[.synchronizable]?.integerValue == 1 }
  public var isTombstone: Bool { attributes[.tombstone]?.integerValue == 1 }
  public var modificationDate: KeychainDate? { attributes[.modificationDate]?.dateValue }
  public var creationDate: KeychainDate? { attributes[.creationDate]?.dateValue }

  public var description: String { "<\(kind.reportName), \(attributes.count) attributes>" }
  public var customMirror: Mirror { Mirror(self, children: ["kind": kind]) }
}
