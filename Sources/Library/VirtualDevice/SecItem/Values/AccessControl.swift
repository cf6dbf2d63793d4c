import Basics
package import KeychainFormats

/// The flags for creating an access control: Apple's `SecAccessControlCreateFlags`.
///
/// Source: Apple `SecAccessControl.h`.
package struct AccessControlFlags: OptionSet, Sendable, Hashable {
  package let rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Biometry or the passcode. Only `privateKeyUsage` and `applicationPassword` can be combined with this flag.
  package static let userPresence = AccessControlFlags(rawValue: 1 << 0)
  /// Any enrolled biometry, including later enrollments.
  package static let biometryAny = AccessControlFlags(rawValue: 1 << 1)
  /// The biometry that was enrolled when the item was created.
  package static let biometryCurrentSet = AccessControlFlags(rawValue: 1 << 3)
  /// The device's passcode.
  package static let devicePasscode = AccessControlFlags(rawValue: 1 << 4)
  /// A paired device, such as a watch.
  package static let companion = AccessControlFlags(rawValue: 1 << 5)
  /// Any one of the factors above is sufficient.
  package static let or = AccessControlFlags(rawValue: 1 << 14)
  /// All of the factors above are required. This is also the default.
  package static let and = AccessControlFlags(rawValue: 1 << 15)
  /// The factors protect the use of a private key (signing, key agreement, decapsulation) instead of reading the item.
  package static let privateKeyUsage = AccessControlFlags(rawValue: 1 << 30)
  /// A password that the app chooses, in addition to the factors.
  package static let applicationPassword = AccessControlFlags(rawValue: 1 << 31)
}

/// The authentication that an operation on an item requires.
package struct AccessRequirement: Sendable, Hashable {
  /// A proof of the user's identity. Each case means the same as the flag with its name in `AccessControlFlags`.
  package enum Factor: String, Sendable, CaseIterable {
    case userPresence, biometryAny, biometryCurrentSet, devicePasscode, companion
  }

  /// The factors that are accepted.
  package let factors: Set<Factor>
  /// The number of these factors that are required.
  package let requiredCount: Int
  /// Whether the application password is required, in addition to any factors.
  package let needsApplicationPassword: Bool
  /// Whether the operation is never allowed, regardless of the authentication.
  package let isForbidden: Bool

  /// Creates a requirement. Without arguments, the operation requires no authentication.
  ///
  /// - Parameters:
  ///   - factors: The factors that are accepted.
  ///   - requiredCount: The number of required factors, or `nil` if all are required.
  ///   - needsApplicationPassword: Whether the application password is required.
  ///   - isForbidden: Whether the operation is never allowed.
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

/// An item's protection class and the authentication that its operations require: Apple's `SecAccessControl`.
///
/// The database stores it in the encrypted item, in the format that `ItemAccessControl` reads and writes.
///
/// Source: Apple `SecAccessControl.m` (`SecAccessControlCreateWithFlags`).
package struct AccessControl: Sendable, Hashable, CustomStringConvertible {
  /// The protection class of the item.
  package let protection: ProtectionClass
  /// The constraint of each operation, and possibly the entry that requires an application password (`prp`). `nil` if
  /// the access control is only a protection class.
  package let operations: PropertyDictionary?

  /// Creates an access control from an item's protection class and constraints, whose order does not matter.
  package init(protection: ProtectionClass, operations: PropertyDictionary? = nil) {
    self.protection = protection
    self.operations = operations.map(Self.sorted)
  }

  /// Returns the entries in the order of their keys, because two dictionaries are equal only if their orders
  /// are the same.
  private static func sorted(_ dictionary: PropertyDictionary) -> PropertyDictionary {
    let entries = dictionary.entries.map { entry in
      guard case .dictionary(let inner) = entry.value else { return entry }
      return PropertyDictionary.Entry(key: entry.key, value: .dictionary(sorted(inner)))
    }
    return PropertyDictionary(entries.sorted { ($0.key.stringValue ?? "") < ($1.key.stringValue ?? "") })
  }

  /// Creates an access control from flags, as `SecAccessControlCreateWithFlags` does.
  ///
  /// Without flags, no operation requires authentication. The item still counts as constrained, because the access
  /// control contains a default for all operations.
  ///
  /// - Throws: `.parameter` if the flags contain `or` and `and`, or both kinds of biometry. Also if they contain
  ///   `userPresence` and any flag other than `applicationPassword` and `privateKeyUsage`.
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

  /// Creates an access control from the code of a protection class, such as `ak`, and flags.
  ///
  /// - Throws: `.parameter` if the code is unknown or the flags cannot be combined.
  package init(protectionCode: String, flags: AccessControlFlags) throws(SecItemError) {
    guard let protection = ProtectionClass(rawValue: protectionCode) else {
      throw SecItemError(.parameter, "the protection class is not known")
    }
    try self.init(protection: protection, flags: flags)
  }

  /// Whether there are constraints, even if they require no authentication. Devices never back up an item with
  /// constraints.
  package var isConstrained: Bool { operations != nil }

  /// Returns the authentication that an operation requires.
  package func requirement(for operation: AccessOperation) -> AccessRequirement {
    // Without an entry for any operation, nothing is required, even if there is an entry for the application password.
    // Flags always create an entry for an operation, so only stored constraints can lack one.
    guard let operations, operations.entries.contains(where: { $0.key.stringValue != Code.requiresPassword }) else {
      return AccessRequirement()
    }
    // An item can be deleted without its application password.
    let needsPassword = operations[Code.requiresPassword] == .boolean(true) && operation != .delete
    switch operations[operation.rawValue] ?? operations[AccessOperation.standard.rawValue] {
    case .boolean(true): return AccessRequirement(needsApplicationPassword: needsPassword)
    case .dictionary(let constraint): return Self.requirement(constraint, needsPassword: needsPassword)
    // An operation without its own entry and without a default is never allowed.
    default: return AccessRequirement(isForbidden: true)
    }
  }

  package var description: String { "<access control of \(protection.rawValue)>" }
}

extension AccessControl {
  private typealias Code = AccessConstraintCode

  /// Returns the constraint of each operation that flags stand for. `true` allows an operation without authentication.
  private static func operations(of flags: AccessControlFlags) -> PropertyDictionary {
    var constraint = PropertyDictionary()
    if flags.contains(.userPresence) { constraint[Code.policy] = .string(Code.deviceOwner) }
    if flags.contains(.devicePasscode) { constraint[Code.passcode] = .boolean(true) }
    if flags.contains(.biometryAny) { constraint[Code.biometry] = .boolean(true) }
    if flags.contains(.biometryCurrentSet) { constraint[Code.biometry] = .string(Code.currentSet) }
    if flags.contains(.companion) { constraint[Code.companion] = .boolean(true) }
    let factorCount = constraint.entries.count
    if factorCount > 1 { constraint[Code.requiredCount] = .integer(flags.contains(.or) ? 1 : Int64(factorCount)) }

    let allowed = PropertyValue.boolean(true)
    let withFactors = factorCount == 0 ? allowed : .dictionary(constraint)
    var operations = PropertyDictionary()
    if flags.contains(.privateKeyUsage) {
      // There is no entry for decryption, so it is never allowed.
      for operation in [AccessOperation.sign, .computeKey, .decapsulate] {
        operations[operation.rawValue] = withFactors
      }
      for operation in [AccessOperation.attest, .delete] { operations[operation.rawValue] = allowed }
    } else if factorCount > 0 {
      operations[AccessOperation.decrypt.rawValue] = withFactors
      for operation in [AccessOperation.encrypt, .delete] { operations[operation.rawValue] = allowed }
    } else {
      operations[AccessOperation.standard.rawValue] = allowed
    }
    if flags.contains(.applicationPassword) { operations[Code.requiresPassword] = .boolean(true) }
    return operations
  }

  /// Returns the authentication that an operation's constraint requires.
  private static func requirement(_ constraint: PropertyDictionary, needsPassword: Bool) -> AccessRequirement {
    var factors: Set<AccessRequirement.Factor> = []
    if constraint[Code.policy] != nil { factors.insert(.userPresence) }
    if constraint[Code.passcode] != nil { factors.insert(.devicePasscode) }
    if let biometry = constraint[Code.biometry] {
      factors.insert(biometry == .string(Code.currentSet) ? .biometryCurrentSet : .biometryAny)
    }
    if constraint[Code.companion] != nil { factors.insert(.companion) }
    // The user cannot satisfy a constraint without any known factor.
    guard !factors.isEmpty else { return AccessRequirement(isForbidden: true) }
    let count = constraint[Code.requiredCount]?.integerValue.flatMap { Int(exactly: $0) } ?? factors.count
    return AccessRequirement(
      factors: factors, requiredCount: min(max(count, 1), factors.count), needsApplicationPassword: needsPassword)
  }
}

extension KeychainItem {
  /// The item's access control: its protection class and constraints. `nil` if the item has no protection class.
  var accessControlObject: AccessControl? {
    protection.map { AccessControl(protection: $0, operations: self[.accessControl]?.dictionaryValue) }
  }
}
