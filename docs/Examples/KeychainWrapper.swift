public import Foundation
public import KeychainServices

/// A dictionary in front of one generic password, which is found by a generic attribute that never changes.
///
/// Nothing is written before a value is set. Until then, the wrapper shows the values of a new item. Do not use it from
/// several threads at once.
public final class KeychainWrapper {
  /// The values that are shown if nothing is stored yet. The secret is under `kSecValueData`.
  public static let defaults: [String: String] = [
    kSecAttrLabel as String: "Item label",
    kSecAttrDescription as String: "Item description",
    kSecAttrAccount as String: "Account",
    kSecAttrService as String: "Service",
    kSecAttrComment as String: "Your comment here.",
    kSecValueData as String: "password",
  ]

  private let query: [String: Any]
  private var values = defaults
  /// Whether the item was in the keychain when the wrapper last read or changed it.
  public private(set) var isStored = false

  /// Finds the item.
  ///
  /// - Parameters:
  ///   - identifier: The item's generic attribute.
  ///   - accessGroup: The item's access group, or `nil` to search all of the app's groups and add to the first.
  /// - Throws: The keychain's status if the search fails. A missing item is not an error.
  public init(identifier: String, accessGroup: String? = nil) throws(KeychainFailure) {
    var query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrGeneric as String: Data(identifier.utf8),
    ]
    if let accessGroup { query[kSecAttrAccessGroup as String] = accessGroup }
    self.query = query
    try load()
  }

  /// A value of the item, or `nil` if the wrapper does not have the attribute.
  public subscript(attribute: CFString) -> String? { values[attribute as String] }

  /// Sets a value and stores all values. Does nothing if the value is unchanged.
  ///
  /// - Throws: `.badArguments` if the wrapper does not have the attribute, or the keychain's status if storing fails.
  ///   The value is then unchanged.
  public func set(_ value: String, for attribute: CFString) throws(KeychainFailure) {
    let name = attribute as String
    guard let former = values[name] else { throw .badArguments }
    guard former != value else { return }
    values[name] = value
    do throws(KeychainFailure) {
      try store()
    } catch {
      values[name] = former
      throw error
    }
  }

  /// Deletes the item and shows the defaults again.
  ///
  /// - Throws: The keychain's status if deleting fails. A missing item is not an error.
  public func reset() throws(KeychainFailure) {
    let status = SecItemDelete(query as CFDictionary)
    if status != errSecItemNotFound { try KeychainFailure.check(status) }
    values = Self.defaults
    isStored = false
  }

  private func load() throws(KeychainFailure) {
    var search = query
    search[kSecMatchLimit as String] = kSecMatchLimitOne
    search[kSecReturnAttributes as String] = true
    search[kSecReturnData as String] = true
    var result: CFTypeRef?
    let status = SecItemCopyMatching(search as CFDictionary, &result)
    guard status != errSecItemNotFound else { return }
    try KeychainFailure.check(status)
    guard let found = result as? [String: Any] else { throw KeychainFailure(status: errSecDecode) }
    isStored = true
    for name in values.keys {
      switch found[name] {
      case let text as String: values[name] = text
      case let data as Data: values[name] = String(decoding: data, as: UTF8.self)
      default: values[name] = ""
      }
    }
  }

  private func store() throws(KeychainFailure) {
    var changes: [String: Any] = values
    changes[kSecValueData as String] = values[kSecValueData as String].map { Data($0.utf8) }
    let updated = SecItemUpdate(query as CFDictionary, changes as CFDictionary)
    if updated == errSecItemNotFound {
      try KeychainFailure.check(SecItemAdd(query.merging(changes) { $1 } as CFDictionary, nil))
    } else {
      try KeychainFailure.check(updated)
    }
    isStored = true
  }
}
