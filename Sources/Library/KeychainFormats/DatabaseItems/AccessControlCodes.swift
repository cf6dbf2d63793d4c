/// An operation that an access control can restrict. The raw values are the short names of Apple's key store.
package enum AccessOperation: String, Sendable, CaseIterable {
  /// Reading the secret.
  case decrypt = "od"
  /// Encrypting, which the flags of an access control do not restrict.
  case encrypt = "oe"
  /// Deleting the item, which the flags do not restrict either.
  case delete = "odel"
  /// Signing with a private key.
  case sign = "osgn"
  /// Key agreement with a private key.
  case computeKey = "ock"
  /// Decapsulating a key (KEM) with a private key.
  case decapsulate = "okd"
  /// Attesting a key of the Secure Enclave.
  case attest = "oa"
  /// The default for every operation without its own entry.
  case standard = "dacl"

  /// Returns whether an item's constraints contain more than the default for every operation.
  package static func hasEntry(in constraints: PropertyDictionary) -> Bool {
    constraints.entries.contains { $0.key.stringValue != standard.rawValue }
  }
}

/// The short names in the constraints of an operation, and their text values. Source: Apple `SecAccessControl.m` and
/// public dumps of items.
package enum AccessConstraintCode {
  /// A policy, such as `deviceOwner`.
  package static let policy = "cpo"
  /// Biometry: true for any enrolled biometry, or `currentSet`.
  package static let biometry = "cbio"
  /// The device's passcode.
  package static let passcode = "cup"
  /// A paired device.
  package static let companion = "cw"
  /// The number of constraints that are required.
  package static let requiredCount = "kofn"
  /// An app-specific password. It is stored next to the operations and applies to all of them except deletion.
  package static let requiresPassword = "prp"
  /// The policy that accepts biometry or the passcode.
  package static let deviceOwner = "DeviceOwnerAuthentication"
  /// The biometry that was enrolled when the item was created.
  package static let currentSet = "current-set"
}
