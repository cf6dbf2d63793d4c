public import KeychainFormats

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

  private final class Box: Sendable, Hashable {
    let names: Names

    init(_ names: Names) { self.names = names }

    static func == (left: Box, right: Box) -> Bool { left === right || left.names == right.names }
    func hash(into hasher: inout Hasher) { hasher.combine(names) }
  }

  private var known: Names {
    get { box.names }
    set { box = Box(newValue) }
  }

  /// `nil` where the item is sealed or has no such attribute.
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
  public init(sealed kind: ItemKind, accessGroup: String? = nil) {
    isSealed = true
    self.kind = kind
    box = Box(Names(accessGroup: accessGroup))
  }

  /// An item under a name that is not its own, for reports that are shown to others.
  public init(_ kind: ItemKind, called label: String) {
    isSealed = false
    self.kind = kind
    box = Box(Names(label: label))
  }

  /// The names that an item in clear has; data that is UTF-8 counts as text.
  public init(_ item: KeychainItem) {
    isSealed = false
    kind = item.kind
    box = Box(
      Names(
        label: Self.text(item[.label]), account: Self.text(item[.account]), service: Self.text(item[.service]),
        server: Self.text(item[.server]), accessGroup: Self.text(item[.accessGroup])))
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
  static func text(_ value: PropertyValue?) -> String? {
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
