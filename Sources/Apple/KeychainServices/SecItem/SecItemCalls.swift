// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import VirtualDevice

// Apple's four keychain calls. Each uses the app and the device that `DefaultKeychain` has at the time of the call.
// Source of the signatures: Apple `SecItem.h`.

/// Adds one or several items.
///
/// - Parameters:
///   - attributes: The class, the attributes, the secret, and the return keys.
///   - result: Receives the requested values; may be `nil`.
/// - Returns: The status.
@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  perform(result) { (client) throws(SecItemError) in try client.add(SecItemQuery(attributes)) }
}

/// Searches for items.
///
/// - Parameters:
///   - query: The query.
///   - result: Receives the item, or an array if `kSecMatchLimit` allows several.
/// - Returns: The status.
@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  perform(result) { (client) throws(SecItemError) in try client.copyMatching(SecItemQuery(query)) }
}

/// Updates all matching items.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
  perform(nil) { (client) throws(SecItemError) in
    try client.update(SecItemQuery(query), SecItemQuery(attributesToUpdate))
    return nil
  }
}

/// Deletes all items that match.
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
