import Basics
package import KeychainFormats

/// The result of decrypting a database item. The raw value is the identifier in machine-readable output.
package enum DatabaseItemVerdict: String, Sendable, CaseIterable, Hashable {
  /// The attributes and the secret were decrypted.
  case open = "ok"
  /// The version is not supported.
  case unsupportedVersion = "unsupported-version"
  /// The item does not follow its format, or its parts contradict each other.
  case malformed
  /// The tamper checks in the parts of an item differ, or one is missing: the parts are from two items, or were changed.
  case tamper
  /// The key of the class or of the item is missing.
  case noClassKey = "no-class-key"
  /// The bytes were changed, or the key is wrong.
  case tagMismatch = "tag-mismatch"
  /// Only the source device can decrypt the secret, with the user's consent.
  case accessControl = "access-control"
}

/// A reason why a database item or its secret cannot be decrypted: the first one, in the order of `Step`.
package struct DatabaseItemFault: Error, Sendable, Equatable {
  /// The steps of decrypting an item, in order.
  package enum Step: String, Sendable, CaseIterable, Hashable {
    /// The version word.
    case version
    /// The messages around the boxes, including the class.
    case messages
    /// The two tamper checks outside the boxes, which must be equal.
    case outerTamperChecks = "outer-tamper-checks"
    /// The key of the class that decrypts the keys of attributes.
    case metadataClassKey = "metadata-class-key"
    /// The box with the key of the attributes.
    case metadataKeyBox = "metadata-key-box"
    /// The box of the attributes.
    case attributesBox = "attributes-box"
    /// The dictionary of attributes.
    case attributesDictionary = "attributes-dictionary"
    /// The tamper check in the box of the attributes.
    case attributesTamperCheck = "attributes-tamper-check"
    /// The access control in the box of the attributes.
    case accessControl = "access-control"
    /// The key of the secret. The attributes are decrypted from here on.
    case secretKey = "secret-key"
    /// The box of the secret.
    case secretBox = "secret-box"
    /// The padding of the secret's box.
    case padding
    /// The dictionary with the secret.
    case secretDictionary = "secret-dictionary"
    /// The tamper check in the box of the secret.
    case secretTamperCheck = "secret-tamper-check"
    /// The comparison of all fields that contain the class.
    case classes
  }

  /// The result for the item; never `.open`.
  package let verdict: DatabaseItemVerdict
  /// The step that failed.
  package let step: Step
  /// The reason, which contains no value of the item.
  package let reason: String

  init(_ verdict: DatabaseItemVerdict, _ step: Step, _ reason: String) {
    self.verdict = verdict
    self.step = step
    self.reason = reason
  }

  init(_ error: FormatError, _ step: Step) {
    self.init(error.code == .unsupportedVersion ? .unsupportedVersion : .malformed, step, error.reason)
  }
}

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
    /// The class has a key generation although a Simulator's key store wrapped the keys, which never writes one.
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
