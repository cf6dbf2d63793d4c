// Values of `kSecAttrAccessible`, which determine when an item can be read and whether it migrates. Source: Apple
// `SecItem.h` and `SecItemConstants.c`.

public import Foundation

// MARK: Accessible

/// Accessible while the device is unlocked; can be restored to another device from a backup that has a password.
/// The default class.
nonisolated(unsafe) public let kSecAttrAccessibleWhenUnlocked: CFString = "ak"
/// Accessible after the first unlock since a restart; can be restored to another device from a backup that has a
/// password.
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlock: CFString = "ck"
/// Always accessible; can be restored to another device from a backup that has a password. Deprecated by Apple
/// since iOS 12.
nonisolated(unsafe) public let kSecAttrAccessibleAlways: CFString = "dk"
/// Apple's private name of `kSecAttrAccessibleAlways`, with the same value.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysPrivate: CFString = "dk"
/// Accessible while the device is unlocked; deleted with the passcode, and never in a backup. Adding such an item
/// without a passcode ends with `errSecAuthFailed`.
nonisolated(unsafe) public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "akpu"
/// Accessible while the device is unlocked; restored only to the same device.
nonisolated(unsafe) public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = "aku"
/// Accessible after the first unlock since a restart; restored only to the same device.
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
/// Always accessible; restored only to the same device. Deprecated by Apple since iOS 12.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysThisDeviceOnly: CFString = "dku"
/// Apple's private name of `kSecAttrAccessibleAlwaysThisDeviceOnly`, with the same value.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysThisDeviceOnlyPrivate: CFString = "dku"
