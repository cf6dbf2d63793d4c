package import Basics
import KeychainCrypto
package import KeychainFormats
import Keychains

extension DeviceSession {
  /// Calls `SecItemAdd` as an app of the device.
  ///
  /// - Throws: Apple's status; `.notAvailable` or `.ioError` if the device cannot be used.
  @discardableResult
  package func secItemAdd(_ attributes: SecItemQuery, as app: String) throws(SecItemError) -> SecItemValue? {
    try secItemAdd(attributes, by: caller(app))
  }

  /// Calls `SecItemCopyMatching` as an app of the device. Rows that can never be decrypted are deleted if the session
  /// has write access.
  package func secItemCopyMatching(_ query: SecItemQuery, as app: String) throws(SecItemError) -> SecItemValue? {
    try secItemCopyMatching(query, by: caller(app))
  }

  /// Calls `SecItemUpdate` as an app of the device.
  package func secItemUpdate(
    _ query: SecItemQuery, changes: SecItemQuery, as app: String
  ) throws(SecItemError) {
    try secItemUpdate(query, changes: changes, by: caller(app))
  }

  /// Calls `SecItemDelete` as an app of the device.
  package func secItemDelete(_ query: SecItemQuery, as app: String) throws(SecItemError) {
    try secItemDelete(query, by: caller(app))
  }

  // MARK: Calls by any caller

  /// Calls `SecItemAdd` with the access groups of a caller.
  ///
  /// - Returns: The values that the query requests; `nil` if it requests none.
  /// - Throws: Apple's status; `.notAvailable` or `.ioError` if the device cannot be used.
  @discardableResult
  package func secItemAdd(_ attributes: SecItemQuery, by caller: SecItemCaller) throws(SecItemError) -> SecItemValue? {
    let service = try writingService()
    return try service.add(attributes, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// Calls `SecItemCopyMatching` with the access groups of a caller.
  ///
  /// - Throws: Apple's status, such as `.itemNotFound`.
  package func secItemCopyMatching(
    _ query: SecItemQuery, by caller: SecItemCaller
  ) throws(SecItemError) -> SecItemValue? {
    let service = SecItemService(store: try translatingKeyhaulErrors { () throws(KeyhaulError) in try keychain })
    let search = try service.search(query, caller: caller, keys: classKeys, environment: secItemEnvironment)
    if !search.undecodable.isEmpty, access == .writing {
      let store = try writingService().store
      try translatingKeyhaulErrors { () throws(KeyhaulError) in try store.remove(search.undecodable) }
    }
    return try search.outcome.get()
  }

  /// Calls `SecItemUpdate` with the access groups of a caller.
  ///
  /// - Throws: Apple's status. After an error, nothing was changed.
  package func secItemUpdate(
    _ query: SecItemQuery, changes: SecItemQuery, by caller: SecItemCaller
  ) throws(SecItemError) {
    let service = try writingService()
    try service.update(query, changes: changes, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// Calls `SecItemDelete` with the access groups of a caller.
  ///
  /// - Throws: Apple's status. After an error, nothing was deleted.
  package func secItemDelete(_ query: SecItemQuery, by caller: SecItemCaller) throws(SecItemError) {
    let service = try writingService()
    try service.delete(query, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// Returns an app of the device as a caller. An app that is not installed has no access groups.
  package func caller(_ app: String) -> SecItemCaller {
    SecItemCaller(keychainAccessGroups: record.apps.first { $0.name == app }?.accessGroups ?? [])
  }

  var secItemEnvironment: SecItemEnvironment {
    let user = device.user
    return SecItemEnvironment(
      now: environment.clock.now(), random: environment.random, isSyncing: record.isSyncing,
      defaultProtection: record.productVersion.defaultProtection
    ) { request in user.respond(to: request) }
  }

  /// Returns a service that may change items. Increases the revision of the keychain first.
  private func writingService() throws(SecItemError) -> SecItemService {
    SecItemService(store: try translatingKeyhaulErrors { () throws(KeyhaulError) in try prepareItemChanges() })
  }
}

/// The Secure Enclave's keys. Their private keys are stored wrapped with the hardware UID, and are unwrapped only for an
/// operation.
///
/// The token's identifier for such a key consists of the protection class code, a zero byte and the wrapped private key
/// of 40 bytes.
extension DeviceSession {
  /// Wraps the private key of a new Secure Enclave key.
  ///
  /// - Parameters:
  ///   - privateKey: The private key of 32 bytes (P-256).
  ///   - protection: The protection class of the key. The private key can be used only while the key of this class is in
  ///     memory.
  /// - Returns: The token's identifier for the key.
  /// - Throws: `.authFailed` for the class that requires a passcode, if none is set; `.interactionNotAllowed` if the
  ///   class key is not in memory; `.parameter` if the private key has another size.
  package func enclaveObjectID(
    of privateKey: SensitiveBytes, protection: ProtectionClass
  ) throws(SecItemError) -> [UInt8] {
    try requireKey(of: protection)
    do throws(DataProtectionError) {
      let wrapped = try privateKey.withBytes { (bytes) throws(DataProtectionError) in
        try hardware.wrapEnclaveKey(Secret(copying: bytes), for: protection)
      }
      return Array(protection.rawValue.utf8) + [0] + wrapped
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }

  /// Unwraps a private key for an operation, after the authentication that the key's access control requires.
  ///
  /// - Parameters:
  ///   - key: An item on the token `com.apple.setoken`.
  ///   - operation: The operation.
  /// - Returns: The private key of 32 bytes.
  /// - Throws: `.parameter` if the item is not such a key; `.interactionNotAllowed` if its class key is not in memory
  ///   or no user is present; `.authFailed`, `.userCanceled`; `.decode` for a key of another chip.
  package func enclavePrivateKey(
    of key: KeychainItem, for operation: AccessOperation
  ) throws(SecItemError) -> SensitiveBytes {
    guard let objectID = TokenValue(of: key)?.objectID, let separator = objectID.firstIndex(of: 0),
      let protection = ProtectionClass(rawValue: String(decoding: objectID[..<separator], as: UTF8.self))
    else { throw SecItemError(.parameter, "the key is not a Secure Enclave key") }
    try requireKey(of: protection)
    try SecItemService.authorize(operation, with: key, environment: secItemEnvironment)
    let privateKey: Secret?
    do throws(DataProtectionError) {
      privateKey = try hardware.unwrapEnclaveKey(Array(objectID[(separator + 1)...]), for: protection)
    } catch {
      throw SecItemError(.internalError, error.reason)
    }
    guard let privateKey else {
      throw SecItemError(.decode, "the key belongs to another device's Secure Enclave, or was changed")
    }
    return privateKey.withBytes { SensitiveBytes(copying: $0) }
  }

  private func requireKey(of protection: ProtectionClass) throws(SecItemError) {
    applyPendingLock()
    guard classKeys.hasKey(of: protection.keyClass) else {
      throw protection == .whenPasscodeSetThisDeviceOnly && !isPasscodeSet
        ? SecItemError(.authFailed, "the key needs a passcode, but the device has none")
        : SecItemError(.interactionNotAllowed, "the key's protection class is locked")
    }
  }
}
