import Basics

/// The number of a class key in a keybag (`CLAS`) and in an item blob.
///
/// Any number may stand in a file: 1-4 protect files, 5 is internal, 6-12 protect keychain items, others are kept as
/// they are and match nothing. Source: Apple `SecDbKeychainSerializedItemV7.proto`, `SecKeybagSupport.h`.
public struct KeyClass: RawRepresentable, Sendable, Hashable, Comparable {
  public let rawValue: UInt32

  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Files that open only while the device is unlocked (`NSFileProtectionComplete`).
  public static let fileComplete = KeyClass(rawValue: 1)
  /// Files that stay writable after a lock (`NSFileProtectionCompleteUnlessOpen`); its key is a Curve25519 pair.
  public static let fileCompleteUnlessOpen = KeyClass(rawValue: 2)
  /// Files that open from the first unlock on (`NSFileProtectionCompleteUntilFirstUserAuthentication`).
  public static let fileUntilFirstUserAuthentication = KeyClass(rawValue: 3)
  /// Files that always open (`NSFileProtectionNone`).
  public static let fileNone = KeyClass(rawValue: 4)
  /// Seen in every real bag, device-wrapped; its purpose is not published.
  public static let recovery = KeyClass(rawValue: 5)
  /// Items of `ak`: while unlocked, on any device.
  public static let whenUnlocked = KeyClass(rawValue: 6)
  /// Items of `ck`: after the first unlock, on any device.
  public static let afterFirstUnlock = KeyClass(rawValue: 7)
  /// Items of `dk`: always, on any device.
  public static let always = KeyClass(rawValue: 8)
  /// Items of `aku`: while unlocked, on this device.
  public static let whenUnlockedThisDeviceOnly = KeyClass(rawValue: 9)
  /// Items of `cku`: after the first unlock, on this device.
  public static let afterFirstUnlockThisDeviceOnly = KeyClass(rawValue: 10)
  /// Items of `dku`: always, on this device.
  public static let alwaysThisDeviceOnly = KeyClass(rawValue: 11)
  /// Items of `akpu`: while unlocked and a passcode is set. No backup keybag has this class.
  public static let whenPasscodeSetThisDeviceOnly = KeyClass(rawValue: 12)

  /// The class without the key-generation bits (0x10 and up) that a device's own database may carry.
  public var withoutGeneration: KeyClass { KeyClass(rawValue: rawValue & 0xF) }

  /// The key generation in the upper bits, counted from 0.
  package var generation: UInt32 { rawValue >> 4 }

  public static func < (left: KeyClass, right: KeyClass) -> Bool { left.rawValue < right.rawValue }
}
