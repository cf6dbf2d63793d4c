import Basics
package import KeychainCrypto
public import KeychainFormats
package import KeychainRules

/// The description of an item for people: its kind and names, never its secret. Names are untrusted text.
public struct ItemDescriptor: Sendable, Hashable {
  /// The kind, which is also known for encrypted items.
  public var kind: ItemKind
  /// Whether the item is encrypted. Its names are then unknown, except for the access group in some cases.
  package let isEncrypted: Bool
  /// The names behind a single reference, because thousands of descriptors are copied repeatedly.
  private var box: Box

  private struct Names: Sendable, Hashable {
    var label: String?
    var account: String?
    var service: String?
    var server: String?
    var accessGroup: String?
  }

  private final class Box: Sendable, CustomReflectable {
    private let source: Source

    private enum Source {
      indirect case names(Names)
      /// The attributes of an item in memory. Names are computed on access.
      case attributes(AttributeMap<PropertyValue>)
    }

    /// The empty names of encrypted items.
    static let nameless = Box(Names())

    init(_ names: Names) { source = .names(names) }
    init(_ attributes: AttributeMap<PropertyValue>) { source = .attributes(attributes) }

    var names: Names {
      switch source {
      case .names(let names): names
      case .attributes(let attributes): ItemDescriptor.names(of: attributes)
      }
    }

    /// Only the names, so that dumps show nothing else.
    var customMirror: Mirror { Mirror(self, children: ["names": names]) }
  }

  private var storedNames: Names {
    get { box.names }
    set { box = Box(newValue) }
  }

  /// The label (`labl`), or `nil` if the item is encrypted or has none.
  public var label: String? {
    get { storedNames.label }
    set { storedNames.label = newValue }
  }
  /// The account (`acct`) as text.
  public var account: String? {
    get { storedNames.account }
    set { storedNames.account = newValue }
  }
  /// The service (`svce`) of a generic password.
  public var service: String? {
    get { storedNames.service }
    set { storedNames.service = newValue }
  }
  /// The server (`srvr`) of an internet password.
  public var server: String? {
    get { storedNames.server }
    set { storedNames.server = newValue }
  }
  /// The access group (`agrp`), which determines the apps that can use the item.
  public var accessGroup: String? {
    get { storedNames.accessGroup }
    set { storedNames.accessGroup = newValue }
  }

  /// Creates the descriptor of an item that cannot be decrypted.
  package init(undecryptable kind: ItemKind, accessGroup: String? = nil) {
    isEncrypted = true
    self.kind = kind
    box = accessGroup.map { Box(Names(accessGroup: $0)) } ?? .nameless
  }

  /// Creates a descriptor with a substitute name, for reports that are shared.
  package init(_ kind: ItemKind, called label: String) {
    isEncrypted = false
    self.kind = kind
    box = Box(Names(label: label))
  }

  /// Creates the descriptor of a decrypted item. A name that is UTF-8 data becomes text.
  package init(_ item: KeychainItem) {
    isEncrypted = false
    kind = item.kind
    box = Box(Self.names(of: item.attributes))
  }

  /// Creates the descriptor of an item that stays in memory, without copies of the item's names.
  package static func sharing(_ item: KeychainItem) -> ItemDescriptor {
    ItemDescriptor(kind: item.kind, isEncrypted: false, box: Box(item.attributes))
  }

  private init(kind: ItemKind, isEncrypted: Bool, box: Box) {
    self.kind = kind
    self.isEncrypted = isEncrypted
    self.box = box
  }

  public static func == (left: ItemDescriptor, right: ItemDescriptor) -> Bool {
    guard left.kind == right.kind, left.isEncrypted == right.isEncrypted else { return false }
    return left.box === right.box || left.storedNames == right.storedNames
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(isEncrypted)
    hasher.combine(storedNames)
  }

  private static func names(of attributes: AttributeMap<PropertyValue>) -> Names {
    Names(
      label: text(attributes[.label]), account: text(attributes[.account]), service: text(attributes[.service]),
      server: text(attributes[.server]), accessGroup: text(attributes[.accessGroup]))
  }

  /// The names for people: the service, server, or label, then the account. Untrusted, and empty if nothing is known.
  package var names: [String] {
    let attributes: [String?] =
      switch kind {
      case .genericPassword: [service, account]
      case .internetPassword: [server, account]
      case .certificate, .key: [label]
      }
    let names = attributes.compactMap(\.self).filter { !$0.isEmpty }
    return names.isEmpty ? [label].compactMap(\.self).filter { !$0.isEmpty } : names
  }

  /// Returns a value as text: strings and UTF-8 data unchanged, other data in hexadecimal, numbers in decimal.
  package static func text(_ value: PropertyValue?) -> String? {
    switch value {
    case .string(let text): text
    case .integer(let number): String(number)
    case .data(let bytes): String(validating: bytes, as: UTF8.self) ?? "0x" + String(hexadecimal: bytes)
    default: nil
    }
  }
}

extension KeychainItem {
  /// Creates an item with the kind and the names of a descriptor.
  package init(named identity: ItemDescriptor, _ protection: ProtectionClass?) {
    self.init(kind: identity.kind)
    let names: [(AttributeCode, String?)] = [
      (.label, identity.label), (.account, identity.account), (.service, identity.service),
      (.server, identity.server), (.accessGroup, identity.accessGroup),
    ]
    for (code, name) in names { self[code] = name.map { .string($0) } }
    self.protection = protection
  }
}

/// The known properties of an item without its value, for reports.
package struct ItemSummary: Sendable, Hashable {
  /// The kind and the names. The names are unknown if the item is encrypted.
  package let identity: ItemDescriptor
  /// Whether the item is synchronizable, or `nil` if it is encrypted.
  package let isSynchronizable: Bool?
  /// Whether the value has the format of a Secure Enclave key, or `nil` if it is encrypted.
  package let containsSecureEnclaveKey: Bool?

  /// Creates the known properties of an item.
  ///
  /// - Parameters:
  ///   - identity: The kind and the names.
  ///   - isSynchronizable: Whether the item is synchronizable.
  ///   - containsSecureEnclaveKey: Whether the value has the format of a Secure Enclave key.
  package init(_ identity: ItemDescriptor, isSynchronizable: Bool? = nil, containsSecureEnclaveKey: Bool? = nil) {
    self.identity = identity
    self.isSynchronizable = isSynchronizable
    self.containsSecureEnclaveKey = containsSecureEnclaveKey
  }

  /// Creates the properties of a decrypted item.
  package init(_ item: KeychainItem) { self.init(item, named: ItemDescriptor(item)) }

  /// Creates the properties of an item that stays in memory.
  package static func sharing(_ item: KeychainItem) -> ItemSummary { ItemSummary(item, named: .sharing(item)) }

  private init(_ item: KeychainItem, named identity: ItemDescriptor) {
    self.init(
      identity, isSynchronizable: item.isSynchronizable, containsSecureEnclaveKey: item.containsSecureEnclaveKey)
  }
}

/// A SHA-256 digest of an item's stored data or primary key, for comparisons. The bytes are stored inline, because
/// every item has a digest.
package struct ItemFingerprint: Sendable, Hashable, Comparable {
  /// The 32 bytes of the digest.
  private let digest: (UInt64, UInt64, UInt64, UInt64)

  /// Creates a fingerprint from a digest.
  ///
  /// - Parameter digest: 32 bytes.
  init(_ digest: UnsafeRawBufferPointer) {
    var inlineDigest: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &inlineDigest) { $0.copyBytes(from: digest.prefix($0.count)) }
    self.digest = inlineDigest
  }

  /// Creates the fingerprint of bytes.
  package init(of bytes: [UInt8]) throws(DataProtectionError) {
    self = try Digest.sha256(bytes).withUnsafeBytes { ItemFingerprint($0) }
  }

  /// Creates the fingerprint of a primary key.
  package init(of key: PrimaryKey) throws(DataProtectionError) {
    let stream = try DigestStream(.sha256)
    try stream.update(Array(key.kind.rawValue.utf8))
    try key.withColumnBytes { (bytes) throws(DataProtectionError) in try stream.update(bytes) }
    self = try stream.finish { ItemFingerprint($0) }
  }

  package static func == (left: Self, right: Self) -> Bool { left.digest == right.digest }
  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }

  package func hash(into hasher: inout Hasher) {
    withUnsafeBytes(of: digest) { hasher.combine(bytes: $0) }
  }
}
