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
