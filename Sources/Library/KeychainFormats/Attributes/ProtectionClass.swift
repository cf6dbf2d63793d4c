import Basics

/// When an item's secret may be read, and how far it may travel.
///
/// The raw value is what the keychain database stores in its `pdmn` column and what an item's blob repeats.
/// Source: Apple `SecItemConstants.c` (`kSecAttrAccessible…`), `SecDbKeychainItem.m`.
public enum ProtectionClass: String, Sendable, CaseIterable, Hashable, Codable {
  /// `kSecAttrAccessibleWhenUnlocked`: readable while the device is unlocked; migrates with the password of a backup.
  case whenUnlocked = "ak"
  /// `kSecAttrAccessibleAfterFirstUnlock`: readable from the first unlock after a start on; migrates with a password.
  case afterFirstUnlock = "ck"
  /// `kSecAttrAccessibleAlways`: readable at any time; migrates with a password. Deprecated by Apple since iOS 12.
  case always = "dk"
  /// `kSecAttrAccessibleWhenUnlockedThisDeviceOnly`: readable while unlocked; restores to the same device alone.
  case whenUnlockedThisDeviceOnly = "aku"
  /// `kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly`: readable from the first unlock on; restores to the same device
  /// alone.
  case afterFirstUnlockThisDeviceOnly = "cku"
  /// `kSecAttrAccessibleAlwaysThisDeviceOnly`: readable at any time; restores to the same device alone. Deprecated
  /// since iOS 12.
  case alwaysThisDeviceOnly = "dku"
  /// `kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly`: readable while unlocked, gone with the passcode; in no backup.
  case whenPasscodeSetThisDeviceOnly = "akpu"

  /// The keybag class whose key protects the item.
  public var keyClass: KeyClass {
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

  /// Creates the protection class for a keybag class of any key generation; `nil` if no keychain item can have that
  /// class (1-5, 13 to 15). The keybag class number itself determines the key that decrypts the item.
  public init?(keyClass: KeyClass) {
    guard let match = Self.allCases.first(where: { $0.keyClass == keyClass.withoutGeneration }) else { return nil }
    self = match
  }

  /// The class in words, as reports show it.
  public var phrase: String {
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

  /// The class in as few words as a narrow column has room for: "bound" is what is of this device only.
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

  /// The class in one word, as people type it: "when-unlocked-this-device".
  package var word: String { phrase.replacing(", ", with: "-").replacing(" ", with: "-") }

  /// The class that a person means by its word, by its code or by Apple's constant.
  package init?(named text: String) {
    guard let named = Self.named[text] else { return nil }
    self = named
  }

  private static let named = Dictionary(
    allCases.flatMap { each in [each.word, each.rawValue, each.constant].map { ($0, each) } },
    uniquingKeysWith: { first, _ in first })

  /// Whether items of this class are meant for the device that made them alone.
  public var isThisDeviceOnly: Bool {
    switch self {
    case .whenUnlocked, .afterFirstUnlock, .always: false
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
      .whenPasscodeSetThisDeviceOnly:
      true
    }
  }
}

extension KeyClass {
  /// The number with what it stands for, for people: "6 (when unlocked)", "22 (when unlocked, key generation 1)".
  package var words: String {
    let use = ProtectionClass(keyClass: self)?.phrase ?? (protectsFiles ? "files" : nil)
    guard let use else { return "\(rawValue) (unknown use)" }
    return "\(rawValue) (\(use)\(generationWords))"
  }

  /// Whether it is a class of files, whatever its key generation.
  package var protectsFiles: Bool { (1...4).contains(withoutGeneration.rawValue) }

  /// ", key generation 1"; empty where the number has no upper bits, as in backups.
  package var generationWords: String { generation == 0 ? "" : ", key generation \(generation)" }
}
