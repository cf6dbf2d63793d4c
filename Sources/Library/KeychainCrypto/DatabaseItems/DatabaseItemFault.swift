import KeychainFormats

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

/// The first reason, in the order of `Step`, why a database item or its secret cannot be decrypted.
package struct DatabaseItemFault: Error, Sendable, Equatable {
  /// The steps of decrypting an item, in order.
  package enum Step: String, Sendable, CaseIterable, Hashable {
    /// The version word.
    case version
    /// The messages around the boxes, including the class.
    case messages
    /// The two tamper checks outside the boxes, which must be equal.
    case outerTamperChecks = "outer-tamper-checks"
    /// The class's metadata key, which decrypts the attributes' key.
    case metadataClassKey = "metadata-class-key"
    /// The box with the attributes' key.
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
