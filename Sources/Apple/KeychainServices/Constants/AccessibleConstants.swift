// Values of `kSecAttrAccessible`: when an item may be read, and how far it may travel.
// Source: Apple `SecItem.h` and `SecItemConstants.c`.

public import Foundation

// MARK: Accessible

/// While the device is unlocked; migrates with a backup's password. What an item gets that asks for no class.
nonisolated(unsafe) public let kSecAttrAccessibleWhenUnlocked: CFString = "ak"
/// From the first unlock after a start on; migrates with a backup's password.
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlock: CFString = "ck"
/// At any time; migrates with a backup's password. Deprecated by Apple since iOS 12.
nonisolated(unsafe) public let kSecAttrAccessibleAlways: CFString = "dk"
/// Apple's private name of `kSecAttrAccessibleAlways`, with the same value.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysPrivate: CFString = "dk"
/// While the device is unlocked, gone with the passcode; in no backup. An add without a passcode ends with
/// `errSecAuthFailed`.
nonisolated(unsafe) public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "akpu"
/// While the device is unlocked; restores to the same device alone.
nonisolated(unsafe) public let kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString = "aku"
/// From the first unlock after a start on; restores to the same device alone.
nonisolated(unsafe) public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
/// At any time; restores to the same device alone. Deprecated by Apple since iOS 12.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysThisDeviceOnly: CFString = "dku"
/// Apple's private name of `kSecAttrAccessibleAlwaysThisDeviceOnly`, with the same value.
nonisolated(unsafe) public let kSecAttrAccessibleAlwaysThisDeviceOnlyPrivate: CFString = "dku"
