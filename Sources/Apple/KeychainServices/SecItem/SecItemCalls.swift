// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import VirtualDevice

// Apple's four calls. Each acts as the app, and on the device, that `DefaultKeychain` names at the moment of the call.
// Source of the signatures: Apple `SecItem.h`.

/// Adds an item, or several.
///
/// - Parameters:
///   - attributes: The class, the attributes, the secret, and what is wanted back.
///   - result: Receives what is wanted back; may be `nil`.
@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  answer(result) { (client) throws(SecItemError) in try client.add(SecItemQuery(attributes)) }
}

/// Finds items.
///
/// - Parameters:
///   - query: Apple's keys with their values.
///   - result: Receives the item, or an array where `kSecMatchLimit` allows several.
@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  answer(result) { (client) throws(SecItemError) in try client.copyMatching(SecItemQuery(query)) }
}

/// Changes all items that match.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
  answer(nil) { (client) throws(SecItemError) in
    try client.update(SecItemQuery(query), SecItemQuery(attributesToUpdate))
    return nil
  }
}

/// Deletes all items that match.
@discardableResult
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
  answer(nil) { (client) throws(SecItemError) in
    try client.delete(SecItemQuery(query))
    return nil
  }
}

/// Runs a call for the current client, and turns its end into a status.
private func answer(
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
