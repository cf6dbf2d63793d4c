public import Foundation
public import KeychainServices

/// Keys of one service under one class of protection, with the keychain's own statuses: to try out what a class does.
public struct ProtectedKeys {
  /// Under which the keys are stored.
  public let service: String
  /// The class of new keys, one of the values of `kSecAttrAccessible`.
  public let accessible: CFString

  public init(service: String, accessible: CFString) {
    self.service = service
    self.accessible = accessible
  }

  /// Adds a key of a name that has none.
  public func addKey(_ key: Data, named name: String) -> OSStatus {
    var item = entry(name)
    item[kSecAttrAccessible as String] = accessible
    item[kSecValueData as String] = key
    return SecItemAdd(item as CFDictionary, nil)
  }

  /// Puts a key in the place of the one that has this name.
  public func updateKey(_ key: Data, named name: String) -> OSStatus {
    let changes: [String: Any] = [kSecValueData as String: key]
    return SecItemUpdate(entry(name) as CFDictionary, changes as CFDictionary)
  }

  /// The key of this name, where the status is success.
  public func readKey(named name: String) -> (status: OSStatus, key: Data?) {
    var query = entry(name)
    query[kSecReturnData as String] = true
    var result: CFTypeRef?
    let status = SecItemCopyMatching(query as CFDictionary, &result)
    return (status, status == errSecSuccess ? result as? Data : nil)
  }

  /// Deletes all keys of the service.
  public func resetAll() -> OSStatus { SecItemDelete(all as CFDictionary) }

  private var all: [String: Any] {
    [kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service]
  }

  private func entry(_ name: String) -> [String: Any] {
    all.merging([kSecAttrAccount as String: name]) { $1 }
  }
}
