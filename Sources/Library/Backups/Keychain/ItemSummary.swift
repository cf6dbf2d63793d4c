package import KeychainFormats

/// The known properties of an item without its value, for reports.
package struct ItemSummary: Sendable, Hashable {
  /// The names, which are unknown if the item is encrypted.
  package let identity: ItemDescriptor
  /// Whether the item is synchronizable, or `nil` if it is encrypted.
  package let isSynchronizable: Bool?
  /// Whether the value has the format of a Secure Enclave key, or `nil` if it is encrypted.
  package let containsSecureEnclaveKey: Bool?

  /// Creates the known properties of an item.
  ///
  /// - Parameters:
  ///   - identity: The names.
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
