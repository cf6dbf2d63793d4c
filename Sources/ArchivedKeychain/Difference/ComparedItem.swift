import BackupArchive
public import KeychainFormats
public import KeychainRules

/// One item of a keychain that is compared with another keychain: opened, or as much as is known of a sealed one.
public struct ComparedItem: Sendable {
  /// Its position in its list, counted from 0 as every report does.
  public let index: Int
  /// The names that it is known by; sealed where it does not open.
  public let identity: ItemIdentity
  /// The class that protects it; `nil` where nothing says it.
  public let protection: ProtectionClass?
  /// `nil` where it does not open.
  public let item: KeychainItem?
  /// What both keychains may call it by, beside its content: as stored in an archive, 12 or 20 bytes.
  public let persistentReference: [UInt8]?
  /// Why it does not open; `nil` where it does.
  public let reason: Reason?
  /// SHA-256 of the bytes that an archive stores of it; `nil` of a device's item.
  package var fingerprint: [UInt8]?
  /// How much of the item its source can tell.
  package var scope = Scope()

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

  /// The kind of item.
  public var kind: ItemKind { identity.kind }

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
    identity = ItemIdentity(item)
    self.protection = protection ?? item.protection
    self.item = item
    self.persistentReference = persistentReference
    reason = nil
  }

  /// An item that does not open.
  public init(
    index: Int, sealed identity: ItemIdentity, protection: ProtectionClass?, persistentReference: [UInt8]?,
    reason: Reason
  ) {
    self.index = index
    self.identity = identity
    self.protection = protection
    item = nil
    self.persistentReference = persistentReference
    self.reason = reason
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
