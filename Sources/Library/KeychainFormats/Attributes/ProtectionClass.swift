import Basics

/// When an item's secret can be read, and whether the item can move to another device.
///
/// The raw value is stored in the `pdmn` column of the keychain database and repeated in an item's blob.
/// Source: Apple `SecItemConstants.c` (`kSecAttrAccessible…`), `SecDbKeychainItem.m`.
public enum ProtectionClass: String, Sendable, CaseIterable, Hashable, Codable {
  /// `kSecAttrAccessibleWhenUnlocked`: readable while the device is unlocked; moves with an encrypted backup.
  case whenUnlocked = "ak"
  /// `kSecAttrAccessibleAfterFirstUnlock`: readable after the first unlock since the device started; moves with an
  /// encrypted backup.
  case afterFirstUnlock = "ck"
  /// `kSecAttrAccessibleAlways`: always readable; moves with an encrypted backup. Deprecated by Apple since iOS 12.
  case always = "dk"
  /// `kSecAttrAccessibleWhenUnlockedThisDeviceOnly`: readable while unlocked; can be restored only to the same device.
  case whenUnlockedThisDeviceOnly = "aku"
  /// `kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly`: readable after the first unlock; can be restored only to the
  /// same device.
  case afterFirstUnlockThisDeviceOnly = "cku"
  /// `kSecAttrAccessibleAlwaysThisDeviceOnly`: always readable; can be restored only to the same device. Deprecated
  /// since iOS 12.
  case alwaysThisDeviceOnly = "dku"
  /// `kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly`: readable while unlocked, deleted when the passcode is removed;
  /// never in a backup.
  case whenPasscodeSetThisDeviceOnly = "akpu"

  /// The keybag class whose key protects the item.
  package var keyClass: KeyClass {
    switch self {
    case .whenUnlocked: .whenUnlocked
    case .afterFirstUnlock: .afterFirstUnlock
    case .always: .always
    case .whenUnlockedThisDeviceOnly: .whenUnlockedThisDeviceOnly
    case .afterFirstUnlockThisDeviceOnly: .afterFirstUnlockThisDeviceOnly
    case .alwaysThisDeviceOnly: .alwaysThisDeviceOnly
    case .whenPasscodeSetThisDeviceOnly: .whenPasscodeSetThisDeviceOnly
    }
  }

  /// Creates the protection class for a keybag class of any key generation. `nil` if items cannot have the class:
  /// it is a class of files (1 to 4), the internal class 5, or an unknown number (0, 13 to 15).
  ///
  /// A protection class does not determine the key that decrypts an item, because it has no key generation.
  package init?(keyClass: KeyClass) {
    guard let match = Self.allCases.first(where: { $0.keyClass == keyClass.withoutGeneration }) else { return nil }
    self = match
  }

  /// The class in words, as in reports.
  package var phrase: String {
    switch self {
    case .whenUnlocked: "when unlocked"
    case .afterFirstUnlock: "after first unlock"
    case .always: "always"
    case .whenUnlockedThisDeviceOnly: "when unlocked, this device"
    case .afterFirstUnlockThisDeviceOnly: "after first unlock, this device"
    case .alwaysThisDeviceOnly: "always, this device"
    case .whenPasscodeSetThisDeviceOnly: "passcode only"
    }
  }

  /// The class in few words for a narrow column; "bound" means restricted to this device.
  package var shortPhrase: String {
    switch self {
    case .whenUnlocked: "unlocked"
    case .afterFirstUnlock: "first unlock"
    case .always: "always"
    case .whenUnlockedThisDeviceOnly: "unlocked, bound"
    case .afterFirstUnlockThisDeviceOnly: "first unlock, bound"
    case .alwaysThisDeviceOnly: "always, bound"
    case .whenPasscodeSetThisDeviceOnly: "passcode only"
    }
  }

  /// Apple's constant for the class.
  package var constant: String {
    switch self {
    case .whenUnlocked: "kSecAttrAccessibleWhenUnlocked"
    case .afterFirstUnlock: "kSecAttrAccessibleAfterFirstUnlock"
    case .always: "kSecAttrAccessibleAlways"
    case .whenUnlockedThisDeviceOnly: "kSecAttrAccessibleWhenUnlockedThisDeviceOnly"
    case .afterFirstUnlockThisDeviceOnly: "kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly"
    case .alwaysThisDeviceOnly: "kSecAttrAccessibleAlwaysThisDeviceOnly"
    case .whenPasscodeSetThisDeviceOnly: "kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly"
    }
  }

  /// The class as users type it: "when-unlocked-this-device".
  package var word: String { phrase.replacing(", ", with: "-").replacing(" ", with: "-") }

  /// Creates the class from its name for users, its code or Apple's constant, or `nil` if the name is unknown.
  package init?(named text: String) {
    guard let match = Self.byName[text] else { return nil }
    self = match
  }

  private static let byName = Dictionary(
    allCases.flatMap { each in [each.word, each.rawValue, each.constant].map { ($0, each) } },
    uniquingKeysWith: { first, _ in first })

  /// Whether items of this class are restricted to the device that created them.
  package var isThisDeviceOnly: Bool {
    switch self {
    case .whenUnlocked, .afterFirstUnlock, .always: false
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
      .whenPasscodeSetThisDeviceOnly:
      true
    }
  }
}

extension KeyClass {
  /// The number with its meaning for users: "6 (when unlocked)", "22 (when unlocked, key generation 1)".
  package var displayName: String {
    let use = ProtectionClass(keyClass: self)?.phrase ?? (protectsFiles ? "files" : nil)
    guard let use else { return "\(rawValue) (unknown use)" }
    return "\(rawValue) (\(use)\(generationSuffix))"
  }

  /// Whether the class protects files, in any key generation.
  package var protectsFiles: Bool { (1...4).contains(withoutGeneration.rawValue) }

  /// The key generation for users: ", key generation 1", or empty if there is none, as in backups.
  package var generationSuffix: String { generation == 0 ? "" : ", key generation \(generation)" }
}
