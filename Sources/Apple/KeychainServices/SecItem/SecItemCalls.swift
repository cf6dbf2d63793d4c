// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import VirtualDevice

// Apple's four keychain calls. Each uses the app and the device that `DefaultKeychain` has at the time of the call.
// Source of the signatures: Apple `SecItem.h`.

/// Adds an item, or the certificate and the key of an identity.
///
/// - Parameters:
///   - attributes: The class, the attributes, the secret, and the return keys. Match keys are not allowed.
///   - result: Receives the requested values; may be `nil`. Not changed after an error.
/// - Returns: `errSecSuccess`; `errSecDuplicateItem` if an item with the same primary key exists;
///   `errSecInteractionNotAllowed` if the device is locked and the item's class requires an unlocked device;
///   `errSecAuthFailed` if the item's class requires a passcode and the device has none; `errSecMissingEntitlement` if
///   the app may not write to the access group; `errSecParam`, `errSecNoSuchAttr` or `errSecNoSuchClass` for invalid
///   attributes; `errSecNotAvailable` if the device cannot be used.
@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  perform(result) { (client) throws(SecItemError) in try client.add(SecItemQuery(attributes)) }
}

/// Searches for items.
///
/// - Parameters:
///   - query: The class, the attributes of the items, the match keys, and the return keys. Without `kSecMatchLimit`, the
///     call finds one item.
///   - result: Receives the item, or an array if `kSecMatchLimit` allows several; may be `nil`. Not changed after an
///     error.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecInteractionNotAllowed` if the key of a
///   matching item is not in memory, or if authentication is required but not possible; `errSecAuthFailed` or
///   `errSecUserCanceled` if the user was not authenticated; `errSecMissingEntitlement` if the app may not use the
///   access group; `errSecParam`, `errSecNoSuchAttr`, `errSecNoSuchClass` or `errSecUnimplemented` for an invalid
///   query; `errSecNotAvailable` if the device cannot be used.
@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  perform(result) { (client) throws(SecItemError) in try client.copyMatching(SecItemQuery(query)) }
}

/// Updates all matching items.
///
/// - Parameters:
///   - query: The class and the attributes of the items. Match and return keys are not allowed.
///   - attributesToUpdate: The new attributes, and the new secret as `kSecValueData`.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecDuplicateItem` if a changed item would
///   have the primary key of another item; `errSecInteractionNotAllowed` if the key of an item's old or new class is
///   not in memory, or if authentication is required but not possible; `errSecAuthFailed` or `errSecUserCanceled` if
///   the user was not authenticated; `errSecMissingEntitlement` if the app may not use the access group; `errSecParam`,
///   `errSecNoSuchAttr` or `errSecNoSuchClass` for an invalid query or change; `errSecNotAvailable` if the device
///   cannot be used.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
  perform(nil) { (client) throws(SecItemError) in
    try client.update(SecItemQuery(query), changes: SecItemQuery(attributesToUpdate))
    return nil
  }
}

/// Deletes all matching items, including those that cannot be decrypted now or ever.
///
/// - Parameter query: The class and the attributes of the items. Match keys are not allowed: the call always deletes all
///   items, and with `kSecMatchLimitAll` it ends with `errSecParam` (-50) and deletes nothing.
/// - Returns: `errSecSuccess`; `errSecItemNotFound` if no item matches; `errSecAuthFailed`, `errSecUserCanceled` or
///   `errSecInteractionNotAllowed` if an access control restricts the deletion and the user was not authenticated;
///   `errSecMissingEntitlement` if the app may not use the access group; `errSecParam`, `errSecNoSuchAttr` or
///   `errSecNoSuchClass` for an invalid query; `errSecNotAvailable` if the device cannot be used.
@discardableResult
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
  perform(nil) { (client) throws(SecItemError) in
    try client.delete(SecItemQuery(query))
    return nil
  }
}

/// Runs a call for the current client and returns its status.
private func perform(
  _ result: UnsafeMutablePointer<CFTypeRef?>?, _ call: (KeychainClient) throws(SecItemError) -> SecItemValue?
) -> OSStatus {
  guard let client = try? DefaultKeychain.client() else { return errSecNotAvailable }
  do throws(SecItemError) {
    let value = try call(client)
    result?.pointee = value?.object
    return errSecSuccess
  } catch {
    return error.status.rawValue
  }
}
