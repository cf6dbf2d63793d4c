package import Basics
import KeychainCrypto
package import KeychainFormats
import Keychains

extension DeviceSession {
  /// `SecItemAdd`, called by an app of the device.
  ///
  /// - Throws: Apple's status; `.notAvailable` or `.ioError` where the device itself cannot be used.
  @discardableResult
  package func secItemAdd(_ attributes: SecItemQuery, as app: String) throws(SecItemError) -> SecItemValue? {
    try secItemAdd(attributes, by: caller(app))
  }

  /// `SecItemCopyMatching`. Rows that will never open are removed where the session may write.
  package func secItemCopyMatching(_ query: SecItemQuery, as app: String) throws(SecItemError) -> SecItemValue? {
    try secItemCopyMatching(query, by: caller(app))
  }

  /// `SecItemUpdate`.
  package func secItemUpdate(
    _ query: SecItemQuery, changes: SecItemQuery, as app: String
  ) throws(SecItemError) {
    try secItemUpdate(query, changes: changes, by: caller(app))
  }

  /// `SecItemDelete`.
  package func secItemDelete(_ query: SecItemQuery, as app: String) throws(SecItemError) {
    try secItemDelete(query, by: caller(app))
  }

  // MARK: Callers that are no installed app

  /// `SecItemAdd`, called by whoever has these access groups.
  ///
  /// - Returns: What the query asks to be returned; `nil` if it asks for nothing.
  /// - Throws: Apple's status; `.notAvailable` or `.ioError` where the device itself cannot be used.
  @discardableResult
  package func secItemAdd(_ attributes: SecItemQuery, by caller: SecItemCaller) throws(SecItemError) -> SecItemValue? {
    let service = try writingService()
    return try service.add(attributes, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// `SecItemCopyMatching`, called by whoever has these access groups.
  ///
  /// - Throws: `.itemNotFound` and the others of Apple's statuses.
  package func secItemCopyMatching(
    _ query: SecItemQuery, by caller: SecItemCaller
  ) throws(SecItemError) -> SecItemValue? {
    let service = SecItemService(store: try asCall { () throws(KeyhaulError) in try keychain })
    let search = try service.search(query, caller: caller, keys: classKeys, environment: secItemEnvironment)
    if !search.undecodable.isEmpty, access == .writing {
      let store = try writingService().store
      try asCall { () throws(KeyhaulError) in try store.remove(search.undecodable) }
    }
    return try search.outcome.get()
  }

  /// `SecItemUpdate`, called by whoever has these access groups.
  ///
  /// - Throws: Apple's status; then nothing was changed.
  package func secItemUpdate(
    _ query: SecItemQuery, changes: SecItemQuery, by caller: SecItemCaller
  ) throws(SecItemError) {
    let service = try writingService()
    try service.update(query, changes: changes, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// `SecItemDelete`, called by whoever has these access groups.
  ///
  /// - Throws: Apple's status; then nothing was deleted.
  package func secItemDelete(_ query: SecItemQuery, by caller: SecItemCaller) throws(SecItemError) {
    let service = try writingService()
    try service.delete(query, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// An app of the device as its entitlements make it; one that is not installed has no access group.
  package func caller(_ app: String) -> SecItemCaller {
    SecItemCaller(keychainAccessGroups: record.apps.first { $0.name == app }?.accessGroups ?? [])
  }

  var secItemEnvironment: SecItemEnvironment {
    let person = device.person
    return SecItemEnvironment(
      now: environment.clock.now(), random: environment.random, isSyncing: record.isSyncing,
      defaultProtection: record.productVersion.defaultProtection
    ) { request in person.respond(to: request) }
  }

  /// The keychain with the revision raised.
  private func writingService() throws(SecItemError) -> SecItemService {
    SecItemService(store: try asCall { () throws(KeyhaulError) in try willChangeItems() })
  }
}

/// Keys of the device's Secure Enclave: their private numbers are wrapped by its chip, and leave it for the length of an
/// operation alone.
///
/// What a token calls such a key is the protection class's name, a zero byte and the wrapped number, 40 bytes.
extension DeviceSession {
  /// Wraps the private number of a new key.
  ///
  /// - Parameters:
  ///   - number: Of P-256, 32 bytes.
  ///   - protection: The class whose key has to be in memory where the key is used.
  /// - Throws: `.authFailed` for the class that needs a passcode where none is set, `.interactionNotAllowed` where the
  ///   class is locked, `.parameter` for another size.
  package func enclaveObject(
    of number: SensitiveBytes, protection: ProtectionClass
  ) throws(SecItemError) -> [UInt8] {
    try requireKey(of: protection)
    do throws(DataProtectionError) {
      let wrapped = try number.withBytes { (bytes) throws(DataProtectionError) in
        try hardware.wrapEnclaveKey(Secret(copying: bytes), for: protection)
      }
      return Array(protection.rawValue.utf8) + [0] + wrapped
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }

  /// The private number of a key, for an operation that the person allows where the key's access control asks for them.
  ///
  /// - Parameters:
  ///   - key: An item on the token `com.apple.setoken`.
  ///   - operation: What is done with it.
  /// - Returns: 32 bytes.
  /// - Throws: `.parameter` for another item; `.interactionNotAllowed` where the key's class is locked, or nobody is there
  ///   to be asked; `.authFailed`, `.userCanceled`; `.decode` for a key that this chip did not wrap.
  package func enclaveNumber(
    of key: KeychainItem, for operation: AccessOperation
  ) throws(SecItemError) -> SensitiveBytes {
    guard let object = TokenValue(of: key)?.objectID, let end = object.firstIndex(of: 0),
      let protection = ProtectionClass(rawValue: String(decoding: object[..<end], as: UTF8.self))
    else { throw SecItemError(.parameter, "the key is not a Secure Enclave key") }
    try requireKey(of: protection)
    try SecItemService.authorize(operation, with: key, environment: secItemEnvironment)
    let number: Secret?
    do throws(DataProtectionError) {
      number = try hardware.unwrapEnclaveKey(Array(object[(end + 1)...]), for: protection)
    } catch {
      throw SecItemError(.internalError, error.reason)
    }
    guard let number else {
      throw SecItemError(.decode, "the key belongs to another device's Secure Enclave, or was changed")
    }
    return number.withBytes { SensitiveBytes(copying: $0) }
  }

  private func requireKey(of protection: ProtectionClass) throws(SecItemError) {
    settleLock()
    guard classKeys.hasKey(of: protection.keyClass) else {
      throw protection == .whenPasscodeSetThisDeviceOnly && !isPasscodeSet
        ? SecItemError(.authFailed, "the key needs a passcode, but the device has none")
        : SecItemError(.interactionNotAllowed, "the key's protection class is locked")
    }
  }
}
