import Basics
public import KeychainFormats

/// How one item of a database opened. The raw value is the identifier in machine-readable output.
public enum DatabaseItemVerdict: String, Sendable, CaseIterable, Hashable {
  /// Attributes and secret are open.
  case open = "ok"
  /// A version that is not opened.
  case unsupportedVersion = "unsupported-version"
  /// It does not follow its format, or its parts contradict each other.
  case malformed
  /// The text that ties the parts of one item together differs or is missing: parts of two items, or changed ones.
  case tamper
  /// There is no key for its class, or none for the item.
  case noClassKey = "no-class-key"
  /// Changed bytes, or another key.
  case tagMismatch = "tag-mismatch"
  /// Only the device that made it opens the secret, after its owner has agreed.
  case accessControl = "access-control"
}

/// What keeps an item of a database, or its secret, shut: the first that is found in the order of the places.
public struct DatabaseItemFault: Error, Sendable, Equatable {
  /// Where opening stopped, in the order in which an item is opened.
  public enum Place: String, Sendable, CaseIterable, Hashable {
    /// The version word.
    case version
    /// The messages around the boxes, the class among them.
    case messages
    /// The two texts outside the boxes.
    case outerTamperChecks = "outer-tamper-checks"
    /// The key of the class, which opens the keys of attributes.
    case metadataClassKey = "metadata-class-key"
    /// The box that holds the key of the attributes.
    case metadataKeyBox = "metadata-key-box"
    /// The box of the attributes.
    case attributesBox = "attributes-box"
    /// The dictionary in it.
    case attributesDictionary = "attributes-dictionary"
    /// The text in it.
    case attributesTamperCheck = "attributes-tamper-check"
    /// The access control in it.
    case accessControl = "access-control"
    /// The key of the secret. The attributes are open from here on.
    case secretKey = "secret-key"
    /// The box of the secret.
    case secretBox = "secret-box"
    /// What fills the secret's box up.
    case padding
    /// The dictionary in it.
    case secretDictionary = "secret-dictionary"
    /// The text in it.
    case secretTamperCheck = "secret-tamper-check"
    /// Whether all places that name the class name the same.
    case classes
  }

  /// What it means for the item; never `.open`.
  public let verdict: DatabaseItemVerdict
  /// Where it was found.
  public let place: Place
  /// The fact found. It quotes no value of the item.
  public let reason: String

  init(_ verdict: DatabaseItemVerdict, _ place: Place, _ reason: String) {
    self.verdict = verdict
    self.place = place
    self.reason = reason
  }

  init(_ error: FormatError, _ place: Place) {
    self.init(error.code == .unsupportedVersion ? .unsupportedVersion : .malformed, place, error.reason)
  }
}

/// An item of a database, as far as it opened.
public struct OpenedDatabaseItem: Sendable {
  /// What of it is in clear.
  public enum Content: Sendable {
    /// Nothing.
    case shut
    /// The attributes; the item has no secret in it.
    case attributes(KeychainItem)
    /// Attributes and secret.
    case open(KeychainItem)
  }

  /// What is worth saying of an item that opens all the same.
  public enum Finding: String, Sendable, CaseIterable, Hashable {
    /// Its digest is not the one of its content. Told only where the secret is open.
    case digestDiffers = "digest-differs"
    /// The class has a key generation where a Simulator's key store kept the keys, which writes none.
    case generationInSimulator = "generation-in-simulator"
    /// Its two keys were kept by key stores of different releases.
    case mixedKeyStores = "mixed-key-stores"
  }

  /// What of it is in clear. Its access control and the text against tampering are not among the attributes.
  public internal(set) var content: Content = .shut
  /// The key class as stored in the item, including the key generation; `nil` if it could not be read.
  public internal(set) var keyClass: KeyClass?
  /// The access control; `nil` if the attributes could not be opened, and for item versions that have none.
  public internal(set) var accessControl: ItemAccessControl?
  /// Why it is not open; `nil` if it is.
  public internal(set) var fault: DatabaseItemFault?
  /// What is worth saying of it.
  public internal(set) var findings: Set<Finding> = []

  /// How it opened.
  public var verdict: DatabaseItemVerdict { fault?.verdict ?? .open }

  /// The decrypted item; `nil` if its attributes could not be opened.
  public var item: KeychainItem? {
    switch content {
    case .shut: nil
    case .attributes(let item), .open(let item): item
    }
  }

  /// Whether the secret is open.
  public var isOpen: Bool { if case .open = content { true } else { false } }
}
