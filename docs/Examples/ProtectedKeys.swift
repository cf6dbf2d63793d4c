public import Foundation
public import KeychainServices

/// Keys of one service with one protection class. Each call returns the keychain's own status, to show what a class
/// does.
public struct ProtectedKeys {
  /// The service under which the keys are stored.
  public let service: String
  /// The protection class of new keys, a value of `kSecAttrAccessible`.
  public let accessible: CFString

  public init(service: String, accessible: CFString) {
    self.service = service
    self.accessible = accessible
  }

  /// Adds a key under a new name.
  public func addKey(_ key: Data, named name: String) -> OSStatus {
    var item = entry(name)
    item[kSecAttrAccessible as String] = accessible
    item[kSecValueData as String] = key
    return SecItemAdd(item as CFDictionary, nil)
  }

  /// Replaces the key of this name.
  public func updateKey(_ key: Data, named name: String) -> OSStatus {
    let changes: [String: Any] = [kSecValueData as String: key]
    return SecItemUpdate(entry(name) as CFDictionary, changes as CFDictionary)
  }

  /// Reads the key of this name. The key is `nil` unless the status is success.
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
