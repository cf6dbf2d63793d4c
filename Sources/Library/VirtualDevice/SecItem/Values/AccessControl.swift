import Basics
package import KeychainFormats

/// The bits of `SecAccessControlCreateFlags`. Source: Apple `SecAccessControl.h`.
package struct AccessControlFlags: OptionSet, Sendable, Hashable {
  package let rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Biometry or the passcode. Only the last two flags can be combined with it.
  package static let userPresence = AccessControlFlags(rawValue: 1 << 0)
  /// Any enrolled biometry, including later enrollments.
  package static let biometryAny = AccessControlFlags(rawValue: 1 << 1)
  /// The biometry that was enrolled when the item was created.
  package static let biometryCurrentSet = AccessControlFlags(rawValue: 1 << 3)
  /// The device's passcode.
  package static let devicePasscode = AccessControlFlags(rawValue: 1 << 4)
  /// A paired device, such as a watch.
  package static let companion = AccessControlFlags(rawValue: 1 << 5)
  /// A single factor is sufficient.
  package static let or = AccessControlFlags(rawValue: 1 << 14)
  /// All factors are required, which is also the default.
  package static let and = AccessControlFlags(rawValue: 1 << 15)
  /// Signing, key agreement and decapsulation with a private key.
  package static let privateKeyUsage = AccessControlFlags(rawValue: 1 << 30)
  /// An app-specific password, in addition to the factors.
  package static let applicationPassword = AccessControlFlags(rawValue: 1 << 31)
}

/// The authentication that an operation requires: a number of factors, and possibly the application password.
package struct AccessRequirement: Sendable, Hashable {
  /// An authentication factor.
  package enum Factor: String, Sendable, CaseIterable {
    /// The factors of the flags with the same names. User presence is biometry or the passcode.
    case userPresence, biometryAny, biometryCurrentSet, devicePasscode, companion
  }

  /// The accepted factors.
  package let factors: Set<Factor>
  /// The number of factors that are required.
  package let requiredCount: Int
  /// Whether the application password is also required.
  package let needsApplicationPassword: Bool
  /// Whether the item's access control never allows the operation.
  package let isForbidden: Bool

  /// Creates a requirement. By default, all given factors are required, and without factors nothing is.
  package init(
    factors: Set<Factor> = [], requiredCount: Int? = nil, needsApplicationPassword: Bool = false,
    isForbidden: Bool = false
  ) {
    self.factors = factors
    self.requiredCount = requiredCount ?? factors.count
    self.needsApplicationPassword = needsApplicationPassword
    self.isForbidden = isForbidden
  }

  /// Whether the operation requires no authentication.
  package var isEmpty: Bool { factors.isEmpty && !needsApplicationPassword && !isForbidden }
}

/// A protection class and the authentication that an item requires: Apple's `SecAccessControl`.
///
/// `ItemAccessControl` is the format in which an item of a database stores it.
///
/// Source: Apple `SecAccessControl.c`.
package struct AccessControl: Sendable, Hashable, CustomStringConvertible {
  /// The protection class of the item.
  package let protection: ProtectionClass
  /// The constraints by operation, as stored in the encrypted item; `nil` if there is only a protection class.
  package let operations: PropertyDictionary?

  /// Creates an access control from an item's constraints. The order of entries does not matter.
  package init(protection: ProtectionClass, operations: PropertyDictionary? = nil) {
    self.protection = protection
    self.operations = operations.map(Self.sorted)
  }

  /// Returns the entries in a fixed order, so that equal access controls compare as equal.
  private static func sorted(_ dictionary: PropertyDictionary) -> PropertyDictionary {
    let entries = dictionary.entries.map { entry in
      guard case .dictionary(let inner) = entry.value else { return entry }
      return PropertyDictionary.Entry(key: entry.key, value: .dictionary(sorted(inner)))
    }
    return PropertyDictionary(entries.sorted { ($0.key.stringValue ?? "") < ($1.key.stringValue ?? "") })
  }

  /// Creates an access control as `SecAccessControlCreateWithFlags` does. Without flags, it has a default for all
  /// operations, so the item counts as constrained although it requires no authentication.
  ///
  /// - Throws: `.parameter` for `or` with `and`, for both kinds of biometry, and for user presence with anything other
  ///   than the application password and private-key usage.
  package init(protection: ProtectionClass, flags: AccessControlFlags) throws(SecItemError) {
    guard !flags.isSuperset(of: [.or, .and]) else {
      throw SecItemError(.parameter, "an access control requires all its constraints or one of them, not both")
    }
    guard !flags.isSuperset(of: [.biometryAny, .biometryCurrentSet]) else {
      throw SecItemError(.parameter, "an access control can have only one kind of biometry")
    }
    guard
      !flags.contains(.userPresence)
        || flags.isSubset(of: [.userPresence, .applicationPassword, .privateKeyUsage])
    else {
      throw SecItemError(.parameter, "only application password and private-key usage can accompany user presence")
    }
    self.init(protection: protection, operations: Self.operations(of: flags))
  }

  /// Creates an access control from the code of a protection class.
  ///
  /// - Throws: `.parameter` for an unknown protection class or an invalid combination of flags.
  package init(protectionCode: String, flags: AccessControlFlags) throws(SecItemError) {
    guard let protection = ProtectionClass(rawValue: protectionCode) else {
      throw SecItemError(.parameter, "the protection class is not known")
    }
    try self.init(protection: protection, flags: flags)
  }

  /// Whether the item is encrypted separately and excluded from backups.
  package var isConstrained: Bool { operations != nil }

  /// Returns the authentication that an operation requires.
  package func requirement(for operation: AccessOperation) -> AccessRequirement {
    guard let operations, operations.entries.contains(where: { $0.key.stringValue != Code.requiresPassword }) else {
      return AccessRequirement()
    }
    let needsPassword = operations[Code.requiresPassword] == .boolean(true) && operation != .delete
    switch operations[operation.rawValue] ?? operations[AccessOperation.standard.rawValue] {
    case .boolean(true): return AccessRequirement(needsApplicationPassword: needsPassword)
    case .dictionary(let constraint): return Self.requirement(constraint, needsPassword: needsPassword)
    default: return AccessRequirement(isForbidden: true)
    }
  }

  package var description: String { "<access control of \(protection.rawValue)>" }
}

extension AccessControl {
  private typealias Code = AccessConstraintCode

  private static func operations(of flags: AccessControlFlags) -> PropertyDictionary {
    var constraint = PropertyDictionary()
    if flags.contains(.userPresence) { constraint[Code.policy] = .string(Code.deviceOwner) }
    if flags.contains(.devicePasscode) { constraint[Code.passcode] = .boolean(true) }
    if flags.contains(.biometryAny) { constraint[Code.biometry] = .boolean(true) }
    if flags.contains(.biometryCurrentSet) { constraint[Code.biometry] = .string(Code.currentSet) }
    if flags.contains(.companion) { constraint[Code.companion] = .boolean(true) }
    let count = constraint.entries.count
    if count > 1 { constraint[Code.requiredCount] = .integer(flags.contains(.or) ? 1 : Int64(count)) }

    let value = count == 0 ? PropertyValue.boolean(true) : .dictionary(constraint)
    var operations = PropertyDictionary()
    if flags.contains(.privateKeyUsage) {
      for operation in [AccessOperation.sign, .computeKey, .decapsulate] { operations[operation.rawValue] = value }
      for operation in [AccessOperation.attest, .delete] { operations[operation.rawValue] = .boolean(true) }
    } else if count > 0 {
      operations[AccessOperation.decrypt.rawValue] = value
      for operation in [AccessOperation.encrypt, .delete] { operations[operation.rawValue] = .boolean(true) }
    } else {
      operations[AccessOperation.standard.rawValue] = .boolean(true)
    }
    if flags.contains(.applicationPassword) { operations[Code.requiresPassword] = .boolean(true) }
    return operations
  }

  private static func requirement(_ constraint: PropertyDictionary, needsPassword: Bool) -> AccessRequirement {
    var factors: Set<AccessRequirement.Factor> = []
    if constraint[Code.policy] != nil { factors.insert(.userPresence) }
    if constraint[Code.passcode] != nil { factors.insert(.devicePasscode) }
    if let biometry = constraint[Code.biometry] {
      factors.insert(biometry == .string(Code.currentSet) ? .biometryCurrentSet : .biometryAny)
    }
    if constraint[Code.companion] != nil { factors.insert(.companion) }
    // A constraint that contains no known factor can never be met.
    guard !factors.isEmpty else { return AccessRequirement(isForbidden: true) }
    let count = constraint[Code.requiredCount]?.integerValue.flatMap { Int(exactly: $0) } ?? factors.count
    return AccessRequirement(
      factors: factors, requiredCount: min(max(count, 1), factors.count), needsApplicationPassword: needsPassword)
  }
}

extension KeychainItem {
  /// The item's protection class and constraints; `nil` without a protection class.
  var accessControlObject: AccessControl? {
    protection.map { AccessControl(protection: $0, operations: self[.accessControl]?.dictionaryValue) }
  }
}
