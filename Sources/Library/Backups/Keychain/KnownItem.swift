public import KeychainFormats

/// What is known of an item without its value: its names, and the facts that reports tell of it.
public struct KnownItem: Sendable, Hashable {
  /// The names that it is known by; sealed where nothing at hand opens it.
  public let identity: ItemIdentity
  /// Whether it is marked to synchronize; `nil` where that is sealed.
  public let isSynchronizable: Bool?
  /// Whether its value has the form of a key of the Secure Enclave; `nil` where that is sealed.
  public let holdsEnclaveKey: Bool?

  /// Creates what is known of an item.
  ///
  /// - Parameters:
  ///   - identity: The names that it is known by.
  ///   - isSynchronizable: Whether it is marked to synchronize.
  ///   - holdsEnclaveKey: Whether its value has the form of a key of the Secure Enclave.
  public init(_ identity: ItemIdentity, isSynchronizable: Bool? = nil, holdsEnclaveKey: Bool? = nil) {
    self.identity = identity
    self.isSynchronizable = isSynchronizable
    self.holdsEnclaveKey = holdsEnclaveKey
  }

  /// What an item in clear shows.
  public init(_ item: KeychainItem) { self.init(item, named: ItemIdentity(item)) }

  /// The same of an item that is held as long as this is.
  package static func sharing(_ item: KeychainItem) -> KnownItem { KnownItem(item, named: .sharing(item)) }

  /// The same of an item of an archive, which is opened again for each name where the archive holds none.
  ///
  /// - Parameter item: What it opened to.
  package static func sharing(_ item: KeychainItem, of archived: ArchivedItem) -> KnownItem {
    guard let items = archived.reopening else { return .sharing(item) }
    return KnownItem(item, named: ItemIdentity(of: archived, openedBy: items))
  }

  /// What is known of an item that is not held, without opening it.
  package static func reopened(_ archived: ArchivedItem, _ ordinary: OrdinaryItem) -> KnownItem {
    KnownItem(
      archived.reopening.map { ItemIdentity(of: archived, openedBy: $0) } ?? ItemIdentity(sealed: archived.kind),
      isSynchronizable: ordinary.isSynchronizable, holdsEnclaveKey: ordinary.holdsEnclaveKey)
  }

  private init(_ item: KeychainItem, named identity: ItemIdentity) {
    self.init(identity, isSynchronizable: item.isSynchronizable, holdsEnclaveKey: item.holdsEnclaveKey)
  }
}
