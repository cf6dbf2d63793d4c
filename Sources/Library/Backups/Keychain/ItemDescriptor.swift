import Basics
public import KeychainFormats

/// The identity of an item for people: its kind and names, never its secret. Names are untrusted text.
public struct ItemDescriptor: Sendable, Hashable {
  /// The kind, which is also known for encrypted items.
  public var kind: ItemKind
  /// Whether the item is encrypted, so that its names are unknown. A decrypted item can also have no names.
  package let isEncrypted: Bool
  /// The names behind a single reference, because thousands of identities are copied repeatedly.
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

    /// The names of unknown items.
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
  /// The access group (`agrp`), which identifies the apps.
  public var accessGroup: String? {
    get { storedNames.accessGroup }
    set { storedNames.accessGroup = newValue }
  }

  /// Creates the identity of an item that cannot be decrypted.
  package init(undecryptable kind: ItemKind, accessGroup: String? = nil) {
    isEncrypted = true
    self.kind = kind
    box = accessGroup.map { Box(Names(accessGroup: $0)) } ?? .nameless
  }

  /// Creates an identity with a substitute name, for reports that are shared.
  package init(_ kind: ItemKind, called label: String) {
    isEncrypted = false
    self.kind = kind
    box = Box(Names(label: label))
  }

  /// Creates the identity of a decrypted item. UTF-8 data is text.
  package init(_ item: KeychainItem) {
    isEncrypted = false
    kind = item.kind
    box = Box(Self.names(of: item.attributes))
  }

  /// Creates the identity of an item that stays in memory, without copies of its names.
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
  /// Creates an item with the names of an identity.
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
