import Basics
package import KeychainCrypto
public import KeychainFormats
package import KeychainRules

/// How a person recognizes an item: its kind and the names it carries, never its secret.
public struct ItemIdentity: Sendable, Hashable {
  /// The kind, which is known of a sealed item too.
  public var kind: ItemKind
  /// Whether the item does not open, so that its names are not known; an item without any name is not sealed.
  public let isSealed: Bool
  /// Handed around as one: thousands of identities are copied again and again.
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
      /// Of an item that is held anyway: each name is made where it is asked for.
      case attributes(AttributeMap<PropertyValue>)
    }

    /// Of all items that nothing is known of.
    static let nameless = Box(Names())

    init(_ names: Names) { source = .names(names) }
    init(_ attributes: AttributeMap<PropertyValue>) { source = .attributes(attributes) }

    var names: Names {
      switch source {
      case .names(let names): names
      case .attributes(let attributes): ItemIdentity.names(of: attributes)
      }
    }

    /// The names alone: a dump shows nothing else of an item.
    var customMirror: Mirror { Mirror(self, children: ["names": names]) }
  }

  private var known: Names {
    get { box.names }
    set { box = Box(newValue) }
  }

  /// `nil` if the item is sealed or has no such attribute.
  public var label: String? {
    get { known.label }
    set { known.label = newValue }
  }
  /// The account (`acct`), as text; hostile, as are the others.
  public var account: String? {
    get { known.account }
    set { known.account = newValue }
  }
  /// The service (`svce`) of a generic password.
  public var service: String? {
    get { known.service }
    set { known.service = newValue }
  }
  /// The server (`srvr`) of an internet password.
  public var server: String? {
    get { known.server }
    set { known.server = newValue }
  }
  /// The access group (`agrp`), which tells the apps.
  public var accessGroup: String? {
    get { known.accessGroup }
    set { known.accessGroup = newValue }
  }

  /// What is known of an item that does not open.
  package init(sealed kind: ItemKind, accessGroup: String? = nil) {
    isSealed = true
    self.kind = kind
    box = accessGroup.map { Box(Names(accessGroup: $0)) } ?? .nameless
  }

  /// An item under a name that is not its own, for reports that are shown to others.
  package init(_ kind: ItemKind, called label: String) {
    isSealed = false
    self.kind = kind
    box = Box(Names(label: label))
  }

  /// The names that an item in clear has; data that is UTF-8 counts as text.
  package init(_ item: KeychainItem) {
    isSealed = false
    kind = item.kind
    box = Box(Self.names(of: item.attributes))
  }

  /// The same of an item that is held as long as this is, and whose names are not copied: each is made where it is asked for.
  package static func sharing(_ item: KeychainItem) -> ItemIdentity {
    ItemIdentity(kind: item.kind, isSealed: false, box: Box(item.attributes))
  }

  private init(kind: ItemKind, isSealed: Bool, box: Box) {
    self.kind = kind
    self.isSealed = isSealed
    self.box = box
  }

  public static func == (left: ItemIdentity, right: ItemIdentity) -> Bool {
    guard left.kind == right.kind, left.isSealed == right.isSealed else { return false }
    return left.box === right.box || left.known == right.known
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(isSealed)
    hasher.combine(known)
  }

  private static func names(of attributes: AttributeMap<PropertyValue>) -> Names {
    Names(
      label: text(attributes[.label]), account: text(attributes[.account]), service: text(attributes[.service]),
      server: text(attributes[.server]), accessGroup: text(attributes[.accessGroup]))
  }

  /// What a person knows it by: the service, server or label that it is for, then whose it is; its label where it has
  /// neither. Hostile, and empty where nothing is known.
  package var names: [String] {
    let attributes: [String?] =
      switch kind {
      case .genericPassword: [service, account]
      case .internetPassword: [server, account]
      case .certificate, .key: [label]
      }
    let known = attributes.compactMap(\.self).filter { !$0.isEmpty }
    return known.isEmpty ? [label].compactMap(\.self).filter { !$0.isEmpty } : known
  }

  /// Strings as they are, data as text where it is UTF-8 and else in hexadecimal, numbers in decimal.
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
  /// As much of an item as its names say.
  package init(named identity: ItemIdentity, _ protection: ProtectionClass?) {
    self.init(kind: identity.kind)
    let names: [(AttributeCode, String?)] = [
      (.label, identity.label), (.account, identity.account), (.service, identity.service),
      (.server, identity.server), (.accessGroup, identity.accessGroup),
    ]
    for (code, name) in names { self[code] = name.map { .string($0) } }
    self.protection = protection
  }
}

/// SHA-256 of what an archive stores of an item, or of its primary key, to tell whether two are the same. Held in place:
/// there is one for every item.
package struct ItemFingerprint: Sendable, Hashable, Comparable {
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// - Parameter digest: 32 bytes.
  init(_ digest: UnsafeRawBufferPointer) {
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: digest.prefix($0.count)) }
    self.words = words
  }

  /// Of these bytes.
  package init(of bytes: [UInt8]) throws(DataProtectionError) {
    self = try Digest.sha256(bytes).withUnsafeBytes { ItemFingerprint($0) }
  }

  /// Of a primary key.
  package init(of key: PrimaryKey) throws(DataProtectionError) {
    let digest = try DigestStream(.sha256)
    try digest.update(Array(key.kind.rawValue.utf8))
    try key.withColumnBytes { (bytes) throws(DataProtectionError) in try digest.update(bytes) }
    self = try digest.finish { ItemFingerprint($0) }
  }

  package static func == (left: Self, right: Self) -> Bool { left.words == right.words }
  package static func < (left: Self, right: Self) -> Bool { left.words < right.words }

  package func hash(into hasher: inout Hasher) {
    withUnsafeBytes(of: words) { hasher.combine(bytes: $0) }
  }
}

/// What is known of an item without its value: its names, and the facts that reports tell of it.
package struct KnownItem: Sendable, Hashable {
  /// The names that it is known by; sealed where nothing at hand opens it.
  package let identity: ItemIdentity
  /// Whether it is marked to synchronize; `nil` if that is sealed.
  package let isSynchronizable: Bool?
  /// Whether its value has the form of a key of the Secure Enclave; `nil` if that is sealed.
  package let containsSecureEnclaveKey: Bool?

  /// Creates what is known of an item.
  ///
  /// - Parameters:
  ///   - identity: The names that it is known by.
  ///   - isSynchronizable: Whether it is marked to synchronize.
  ///   - containsSecureEnclaveKey: Whether its value has the form of a key of the Secure Enclave.
  package init(_ identity: ItemIdentity, isSynchronizable: Bool? = nil, containsSecureEnclaveKey: Bool? = nil) {
    self.identity = identity
    self.isSynchronizable = isSynchronizable
    self.containsSecureEnclaveKey = containsSecureEnclaveKey
  }

  /// What an item in clear shows.
  package init(_ item: KeychainItem) { self.init(item, named: ItemIdentity(item)) }

  /// The same of an item that is held as long as this is.
  package static func sharing(_ item: KeychainItem) -> KnownItem { KnownItem(item, named: .sharing(item)) }

  private init(_ item: KeychainItem, named identity: ItemIdentity) {
    self.init(
      identity, isSynchronizable: item.isSynchronizable, containsSecureEnclaveKey: item.containsSecureEnclaveKey)
  }
}
