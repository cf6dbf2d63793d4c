import Basics
package import KeychainFormats

/// What an access control is asked to allow. The raw values are the short names of Apple's key store.
package enum AccessOperation: String, Sendable, CaseIterable {
  /// Reading the secret.
  case decrypt = "od"
  /// Encrypting, which the flags of an access control leave free.
  case encrypt = "oe"
  /// Deleting the item, which the flags leave free too.
  case delete = "odel"
  /// Signing with a private key.
  case sign = "osgn"
  /// Agreeing on a key with a private key.
  case computeKey = "ock"
  /// Taking a key out of its encapsulation (KEM) with a private key.
  case decapsulate = "okd"
  /// Attesting a key of the Secure Enclave.
  case attest = "oa"
  /// For every operation without an entry of its own.
  case standard = "dacl"
}

/// The bits of `SecAccessControlCreateFlags`. Source: Apple `SecAccessControl.h`.
package struct AccessControlFlags: OptionSet, Sendable, Hashable {
  package let rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Biometry or the passcode, as the person likes; of the other flags it goes with the two last alone.
  package static let userPresence = AccessControlFlags(rawValue: 1 << 0)
  /// A biometry that is enrolled, now or later.
  package static let biometryAny = AccessControlFlags(rawValue: 1 << 1)
  /// A biometry that was enrolled when the item was made.
  package static let biometryCurrentSet = AccessControlFlags(rawValue: 1 << 3)
  /// The device's passcode.
  package static let devicePasscode = AccessControlFlags(rawValue: 1 << 4)
  /// A paired device, such as a watch.
  package static let companion = AccessControlFlags(rawValue: 1 << 5)
  /// One of the factors suffices.
  package static let or = AccessControlFlags(rawValue: 1 << 14)
  /// All of the factors are needed, as without either word.
  package static let and = AccessControlFlags(rawValue: 1 << 15)
  /// Signing, key agreement and decapsulation with a private key.
  package static let privateKeyUsage = AccessControlFlags(rawValue: 1 << 30)
  /// A password of the app's own, beside the factors.
  package static let applicationPassword = AccessControlFlags(rawValue: 1 << 31)
}

/// What has to be shown before an operation: so many of these factors, and the application's password.
package struct AccessRequirement: Sendable, Hashable {
  /// One thing that a person can show.
  package enum Factor: String, Sendable, CaseIterable {
    /// The factors of Apple's flags of the same names. User presence is biometry or the passcode.
    case userPresence, biometryAny, biometryCurrentSet, devicePasscode, companion
  }

  /// The factors that count.
  package let factors: Set<Factor>
  /// How many of the factors it takes.
  package let requiredCount: Int
  /// True where the app's own password is needed as well.
  package let needsApplicationPassword: Bool
  /// True where the item's creator allowed the operation to nobody.
  package let isForbidden: Bool

  /// Creates a requirement; all of the factors are needed where no count is given. Without any it asks for nothing.
  package init(
    factors: Set<Factor> = [], requiredCount: Int? = nil, needsApplicationPassword: Bool = false,
    isForbidden: Bool = false
  ) {
    self.factors = factors
    self.requiredCount = requiredCount ?? factors.count
    self.needsApplicationPassword = needsApplicationPassword
    self.isForbidden = isForbidden
  }

  /// Whether the operation is free.
  package var isEmpty: Bool { factors.isEmpty && !needsApplicationPassword && !isForbidden }
}

/// A protection class and what a person has to do before the item opens: Apple's `SecAccessControl`.
///
/// Source: Apple `SecAccessControl.c`.
package struct AccessControl: Sendable, Hashable, CustomStringConvertible {
  /// The class that protects the item beside the constraints.
  package let protection: ProtectionClass
  /// Operation to constraint, as a sealed item keeps it; `nil` if there is nothing but the protection, as for items
  /// that were added with a class alone.
  package let operations: PropertyDictionary?

  /// Creates an access control of constraints that an item had; the order of the entries does not count.
  package init(protection: ProtectionClass, operations: PropertyDictionary? = nil) {
    self.protection = protection
    self.operations = operations.map(Self.sorted)
  }

  /// In one order, so that two controls are equal that say the same.
  private static func sorted(_ dictionary: PropertyDictionary) -> PropertyDictionary {
    let entries = dictionary.entries.map { entry in
      guard case .dictionary(let inner) = entry.value else { return entry }
      return PropertyDictionary.Entry(key: entry.key, value: .dictionary(sorted(inner)))
    }
    return PropertyDictionary(entries.sorted { ($0.key.stringValue ?? "") < ($1.key.stringValue ?? "") })
  }

  /// What `SecAccessControlCreateWithFlags` makes. Without flags it names a default for all operations, so that the item
  /// counts as guarded although it opens without asking.
  ///
  /// - Throws: `.parameter` for `or` with `and`, for both biometries, and for user presence together with anything but
  ///   the application password and private-key usage.
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

  /// The same with the protection's code.
  ///
  /// - Throws: Also `.parameter` for a code that is not a protection class.
  package init(protectionCode: String, flags: AccessControlFlags) throws(SecItemError) {
    guard let protection = ProtectionClass(rawValue: protectionCode) else {
      throw SecItemError(.parameter, "the protection class is not known")
    }
    try self.init(protection: protection, flags: flags)
  }

  /// Whether the item is sealed apart and stays out of backups.
  package var isConstrained: Bool { operations != nil }

  /// What the operation takes.
  package func requirement(for operation: AccessOperation) -> AccessRequirement {
    guard let operations, operations.entries.contains(where: { $0.key.stringValue != Key.requiresPassword }) else {
      return AccessRequirement()
    }
    let needsPassword = operations[Key.requiresPassword] == .boolean(true) && operation != .delete
    switch operations[operation.rawValue] ?? operations[AccessOperation.standard.rawValue] {
    case .boolean(true): return AccessRequirement(needsApplicationPassword: needsPassword)
    case .dictionary(let constraint): return Self.requirement(constraint, needsPassword: needsPassword)
    default: return AccessRequirement(isForbidden: true)
    }
  }

  package var description: String { "<access control of \(protection.rawValue)>" }
}

extension AccessControl {
  /// The short names inside a constraint. Source: Apple `SecAccessControl.c` and public dumps of items.
  private enum Key {
    static let policy = "cpo"
    static let biometry = "cbio"
    static let passcode = "cup"
    static let companion = "cw"
    static let requiredCount = "kofn"
    static let requiresPassword = "prp"
    static let deviceOwner = "DeviceOwnerAuthentication"
    static let currentSet = "current-set"
  }

  private static func operations(of flags: AccessControlFlags) -> PropertyDictionary {
    var constraint = PropertyDictionary()
    if flags.contains(.userPresence) { constraint[Key.policy] = .string(Key.deviceOwner) }
    if flags.contains(.devicePasscode) { constraint[Key.passcode] = .boolean(true) }
    if flags.contains(.biometryAny) { constraint[Key.biometry] = .boolean(true) }
    if flags.contains(.biometryCurrentSet) { constraint[Key.biometry] = .string(Key.currentSet) }
    if flags.contains(.companion) { constraint[Key.companion] = .boolean(true) }
    let count = constraint.entries.count
    if count > 1 { constraint[Key.requiredCount] = .integer(flags.contains(.or) ? 1 : Int64(count)) }

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
    if flags.contains(.applicationPassword) { operations[Key.requiresPassword] = .boolean(true) }
    return operations
  }

  private static func requirement(_ constraint: PropertyDictionary, needsPassword: Bool) -> AccessRequirement {
    var factors: Set<AccessRequirement.Factor> = []
    if constraint[Key.policy] != nil { factors.insert(.userPresence) }
    if constraint[Key.passcode] != nil { factors.insert(.devicePasscode) }
    if let biometry = constraint[Key.biometry] {
      factors.insert(biometry == .string(Key.currentSet) ? .biometryCurrentSet : .biometryAny)
    }
    if constraint[Key.companion] != nil { factors.insert(.companion) }
    // A constraint of another device's making that names nothing known here is nothing that can be fulfilled.
    guard !factors.isEmpty else { return AccessRequirement(isForbidden: true) }
    let count = constraint[Key.requiredCount]?.integerValue.flatMap { Int(exactly: $0) } ?? factors.count
    return AccessRequirement(
      factors: factors, requiredCount: min(max(count, 1), factors.count), needsApplicationPassword: needsPassword)
  }
}

extension KeychainItem {
  /// What guards the item: its class, and the constraints of its creator where it has some.
  var accessControlObject: AccessControl? {
    protection.map { AccessControl(protection: $0, operations: self[.accessControl]?.dictionaryValue) }
  }
}
