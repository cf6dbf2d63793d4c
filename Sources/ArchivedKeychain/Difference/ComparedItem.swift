import BackupArchive
public import KeychainFormats
public import KeychainRules

/// One item of a keychain that is compared with another keychain: opened, or as much as is known of a sealed one.
public struct ComparedItem: Sendable {
  /// Its position in its list, counted from 0 as every report does.
  public let index: Int
  /// The class that protects it; `nil` where nothing says it.
  public let protection: ProtectionClass?
  /// What both keychains may call it by, beside its content: as stored in an archive, 12 or 20 bytes.
  public let persistentReference: [UInt8]?
  private let content: Content
  /// SHA-256 of the bytes that an archive stores of it; `nil` of a device's item.
  package var fingerprint: [UInt8]?
  /// How much of the item its source can tell.
  package var scope = Scope()

  private enum Content: Sendable {
    case open(KeychainItem)
    /// By what names it is known, and why it does not open.
    indirect case sealed(ItemIdentity, Reason)
  }

  /// How much of an item a source can tell: what it cannot is no difference.
  package struct Scope: Sendable {
    /// Whether an absent secret means that the item has none.
    package var tellsSecret = true
    /// The attributes that the source can have; `nil` for all.
    package var attributes: Set<AttributeCode>?
    /// Whether its dates are cut to whole seconds.
    package var hasWholeSeconds = false

    package init(tellsSecret: Bool = true, attributes: Set<AttributeCode>? = nil, hasWholeSeconds: Bool = false) {
      self.tellsSecret = tellsSecret
      self.attributes = attributes
      self.hasWholeSeconds = hasWholeSeconds
    }

    func tells(_ code: AttributeCode) -> Bool { attributes?.contains(code) ?? true }
  }

  /// Whether the secret of one of two items is not told while the other has one, so that the two are not compared.
  func leavesSecretOpen(beside other: ComparedItem) -> Bool {
    !scope.tellsSecret && other.item?.secret != nil || !other.scope.tellsSecret && item?.secret != nil
  }

  /// `nil` where it does not open.
  public var item: KeychainItem? { if case .open(let item) = content { item } else { nil } }
  /// Why it does not open; `nil` where it does.
  public var reason: Reason? { if case .sealed(_, let reason) = content { reason } else { nil } }
  /// Whether it does not open.
  var isSealed: Bool { if case .sealed = content { true } else { false } }

  /// The kind of item.
  public var kind: ItemKind {
    switch content {
    case .open(let item): item.kind
    case .sealed(let identity, _): identity.kind
    }
  }

  /// The names that it is known by; sealed where it does not open. Made anew by each call.
  public var identity: ItemIdentity {
    switch content {
    case .open(let item): ItemIdentity(item)
    case .sealed(let identity, _): identity
    }
  }

  /// Creates an item that opens.
  ///
  /// - Parameters:
  ///   - index: Its position in its list, from 0.
  ///   - item: The item in clear.
  ///   - persistentReference: The reference beside it, 12 or 20 bytes; `nil` where there is none.
  ///   - protection: What the blob says, where that is at hand; otherwise what the item says.
  public init(
    index: Int, item: KeychainItem, persistentReference: [UInt8]? = nil, protection: ProtectionClass? = nil
  ) {
    self.index = index
    self.protection = protection ?? item.protection
    self.persistentReference = persistentReference
    content = .open(item)
  }

  /// An item that does not open.
  public init(
    index: Int, sealed identity: ItemIdentity, protection: ProtectionClass?, persistentReference: [UInt8]?,
    reason: Reason
  ) {
    self.index = index
    self.protection = protection
    self.persistentReference = persistentReference
    content = .sealed(identity, reason)
  }
}

extension OpenedArchive {
  /// Its items, as far as they open, for a comparison.
  public var comparedItems: [ComparedItem] {
    items.map { archived in
      var compared = compared(archived)
      compared.fingerprint = archived.fingerprint
      return compared
    }
  }

  private func compared(_ archived: ArchivedItem) -> ComparedItem {
    switch archived.opening {
    case .opened(let item):
      ComparedItem(
        index: archived.index, item: item, persistentReference: archived.persistentReference,
        protection: archived.protection)
    case .failed(let failure):
      ComparedItem(
        index: archived.index, sealed: ItemIdentity(sealed: archived.kind), protection: archived.protection,
        persistentReference: archived.persistentReference,
        reason: archived.reason(of: failure, hardware: hardware, backupHasPassword: archive.isEncrypted))
    }
  }
}
