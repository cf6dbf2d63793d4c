package import KeychainFormats

/// An authentication requirement for the use of an item.
package enum AccessConstraint: String, Sendable, CaseIterable {
  /// Biometry or the passcode.
  case userPresence = "user-presence"
  /// Any enrolled biometry, including later enrollments.
  case biometryAny = "biometry-any"
  /// The currently enrolled biometry only.
  case biometryCurrentSet = "biometry-current-set"
  /// The device's passcode.
  case devicePasscode = "device-passcode"
  /// Signing and key agreement with a private key.
  case privateKeyUsage = "private-key-usage"
}

extension AccessConstraint {
  private typealias Code = AccessConstraintCode

  /// Returns the constraints of each operation, in the short names of Apple's key store.
  ///
  /// Encrypting and deleting are always allowed. Decrypting, or using a private key, requires all constraints. Source:
  /// Apple `SecAccessControl.m`.
  package static func operations(_ constraints: [AccessConstraint]) -> PropertyDictionary {
    var requirements = PropertyDictionary()
    for constraint in constraints {
      switch constraint {
      case .userPresence: requirements[Code.policy] = .string(Code.deviceOwner)
      case .biometryAny: requirements[Code.biometry] = .boolean(true)
      case .biometryCurrentSet: requirements[Code.biometry] = .string(Code.currentSet)
      case .devicePasscode: requirements[Code.passcode] = .boolean(true)
      case .privateKeyUsage: break
      }
    }
    let requirement = requirements.entries.isEmpty ? PropertyValue.boolean(true) : .dictionary(requirements)
    var operations = PropertyDictionary()
    for operation in [AccessOperation.encrypt, .delete] { operations[operation.rawValue] = .boolean(true) }
    let protectedOperations: [AccessOperation] =
      constraints.contains(.privateKeyUsage) ? [.sign, .computeKey, .decapsulate] : [.decrypt]
    for operation in protectedOperations { operations[operation.rawValue] = requirement }
    return operations
  }
}
