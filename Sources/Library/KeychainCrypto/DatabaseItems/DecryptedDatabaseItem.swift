package import KeychainFormats

/// A database item after an attempt to decrypt it, which may have failed for some parts.
package struct DecryptedDatabaseItem: Sendable {
  /// The decrypted parts of an item.
  package enum Content: Sendable {
    /// No part could be decrypted.
    case undecryptable
    /// The attributes; the item lacks its secret.
    case attributes(KeychainItem)
    /// The attributes and the secret.
    case open(KeychainItem)
  }

  /// An unusual property of an item that can be decrypted.
  package enum Finding: String, Sendable, CaseIterable, Hashable {
    /// The stored digest differs from the digest of the content. Checked only if the secret was decrypted.
    case digestDiffers = "digest-differs"
    /// The class has a key generation, although a Simulator's key store wrapped the keys. A Simulator never writes a key
    /// generation.
    case generationInSimulator = "generation-in-simulator"
    /// The two keys of the item were wrapped by Simulator key stores of different releases.
    case mixedKeyStores = "mixed-key-stores"
  }

  /// The decrypted parts, without the access control and the tamper check.
  package internal(set) var content: Content = .undecryptable
  /// The key class as stored in the item, including the key generation, or `nil` if it could not be read.
  package internal(set) var keyClass: KeyClass?
  /// The access control, or `nil` if the attributes could not be decrypted or the item's version has none.
  package internal(set) var accessControl: ItemAccessControl?
  /// The reason why the item was not decrypted, or `nil` if it was.
  package internal(set) var fault: DatabaseItemFault?
  /// The unusual properties of the item.
  package internal(set) var findings: Set<Finding> = []

  /// The result of decrypting the item.
  package var verdict: DatabaseItemVerdict { fault?.verdict ?? .open }

  /// The decrypted item, or `nil` if its attributes could not be decrypted.
  package var item: KeychainItem? {
    switch content {
    case .undecryptable: nil
    case .attributes(let item), .open(let item): item
    }
  }

  /// Whether the secret was decrypted.
  package var isOpen: Bool { if case .open = content { true } else { false } }
}
