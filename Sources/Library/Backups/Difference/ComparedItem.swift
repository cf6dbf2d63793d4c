import Basics
public import KeychainFormats
public import KeychainRules

/// One item of a keychain that is compared with another keychain: opened, or as much as is known of a sealed one.
public struct ComparedItem: Sendable {
  /// Its position in its list, counted from 0 as every report does.
  public let index: Int
  /// How much of the item its source can tell.
  package var scope = Scope()
  private var content: Content

  private enum Content: Sendable {
    /// One that opens, of an archive.
    case archived(ArchivedItem)
    indirect case open(KeychainItem, Surroundings)
    /// By what names it is known, and why it does not open.
    indirect case sealed(ItemIdentity, Reason, Surroundings)
  }

  private struct Surroundings {
    let protection: ProtectionClass?
    let persistentReference: [UInt8]?
    var fingerprint: ItemFingerprint?
  }

  private var surroundings: Surroundings {
    switch content {
    case .archived(let archived):
      Surroundings(
        protection: archived.protection ?? archived.item?.protection,
        persistentReference: archived.persistentReference, fingerprint: archived.fingerprint)
    case .open(_, let surroundings), .sealed(_, _, let surroundings): surroundings
    }
  }

  /// The class that protects it; `nil` if nothing says it.
  public var protection: ProtectionClass? { surroundings.protection }
  /// What both keychains may call it by, beside its content: as stored in an archive, 12 or 20 bytes.
  public var persistentReference: [UInt8]? { surroundings.persistentReference }
  /// Of the bytes that an archive stores of it; `nil` of a device's item.
  package var fingerprint: ItemFingerprint? { surroundings.fingerprint }

  /// How much of an item a source can tell: what it cannot is no difference.
  package struct Scope: Sendable {
    /// The attributes that the source can have; `nil` for all.
    package var attributes: Set<AttributeCode>?
    /// Whether an absent secret means that the item has none.
    package var tellsSecret = true
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

  /// `nil` if it does not open.
  public var item: KeychainItem? {
    switch content {
    case .archived(let archived): archived.item
    case .open(let item, _): item
    case .sealed: nil
    }
  }
  /// Why it does not open; `nil` if it does.
  public var reason: Reason? { if case .sealed(_, let reason, _) = content { reason } else { nil } }
  /// Whether it does not open.
  var isSealed: Bool { if case .sealed = content { true } else { false } }

  /// The kind of item.
  public var kind: ItemKind {
    switch content {
    case .archived(let archived): archived.kind
    case .open(let item, _): item.kind
    case .sealed(let identity, _, _): identity.kind
    }
  }

  /// The names that it is known by; sealed where it does not open. Made again by each call.
  public var identity: ItemIdentity {
    if case .sealed(let identity, _, _) = content { return identity }
    return item.map(ItemIdentity.init) ?? ItemIdentity(sealed: kind)
  }

  /// Creates an item that opens.
  ///
  /// - Parameters:
  ///   - index: Its position in its list, from 0.
  ///   - item: The item in clear.
  ///   - persistentReference: The persistent reference stored with the item, 12 or 20 bytes; `nil` if it has none.
  ///   - protection: What the blob says, where that is available; otherwise what the item says.
  public init(
    index: Int, item: KeychainItem, persistentReference: [UInt8]? = nil, protection: ProtectionClass? = nil
  ) {
    self.index = index
    let surroundings = Surroundings(
      protection: protection ?? item.protection, persistentReference: persistentReference)
    content = .open(item, surroundings)
  }

  /// An item that does not open.
  public init(
    index: Int, sealed identity: ItemIdentity, protection: ProtectionClass?, persistentReference: [UInt8]?,
    reason: Reason
  ) {
    self.index = index
    let surroundings = Surroundings(protection: protection, persistentReference: persistentReference)
    content = .sealed(identity, reason, surroundings)
  }

  /// An item of an archive, which opens.
  package init(opened archived: ArchivedItem) {
    index = archived.index
    content = .archived(archived)
  }

  /// The same as an archive stores it.
  package func stored(as fingerprint: ItemFingerprint?) -> ComparedItem {
    var result = self
    var surroundings = surroundings
    surroundings.fingerprint = fingerprint
    if case .sealed(let identity, let reason, _) = content {
      result.content = .sealed(identity, reason, surroundings)
    } else if let item {
      result.content = .open(item, surroundings)
    }
    return result
  }
}

extension OpenedArchive {
  /// Its items, as far as they open, for a comparison.
  public var comparedItems: [ComparedItem] {
    items.map { archived in
      guard case .failed(let failure) = archived.opening else { return ComparedItem(opened: archived) }
      let sealed = ComparedItem(
        index: archived.index, sealed: ItemIdentity(sealed: archived.kind), protection: archived.protection,
        persistentReference: archived.persistentReference,
        reason: archived.reason(of: failure, hardware: hardware, backupHasPassword: archive.isEncrypted))
      return sealed.stored(as: archived.fingerprint)
    }
  }
}
