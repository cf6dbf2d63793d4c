import Basics
import Keychains

extension DeviceSession {
  /// `SecItemAdd`, called by an app of the device.
  ///
  /// - Throws: Apple's status; `.notAvailable` or `.ioError` where the device itself cannot be used.
  @discardableResult
  public func secItemAdd(_ attributes: SecItemQuery, as app: String) throws(SecItemError) -> SecItemValue? {
    try secItemAdd(attributes, by: caller(app))
  }

  /// `SecItemCopyMatching`. Rows that will never open are removed where the session may write.
  public func secItemCopyMatching(_ query: SecItemQuery, as app: String) throws(SecItemError) -> SecItemValue? {
    try secItemCopyMatching(query, by: caller(app))
  }

  /// `SecItemUpdate`.
  public func secItemUpdate(
    _ query: SecItemQuery, changes: SecItemQuery, as app: String
  ) throws(SecItemError) {
    try secItemUpdate(query, changes: changes, by: caller(app))
  }

  /// `SecItemDelete`.
  public func secItemDelete(_ query: SecItemQuery, as app: String) throws(SecItemError) {
    try secItemDelete(query, by: caller(app))
  }

  // MARK: Callers that are no installed app

  /// `SecItemAdd`, called by whoever has these access groups.
  ///
  /// - Returns: What the query asks to be returned; `nil` where it asks for nothing.
  /// - Throws: Apple's status; `.notAvailable` or `.ioError` where the device itself cannot be used.
  @discardableResult
  public func secItemAdd(_ attributes: SecItemQuery, by caller: SecItemCaller) throws(SecItemError) -> SecItemValue? {
    let service = try writingService()
    return try service.add(attributes, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// `SecItemCopyMatching`, called by whoever has these access groups.
  ///
  /// - Throws: `.itemNotFound` and the others of Apple's statuses.
  public func secItemCopyMatching(
    _ query: SecItemQuery, by caller: SecItemCaller
  ) throws(SecItemError) -> SecItemValue? {
    let service = SecItemService(store: try asCall { () throws(VirtualDeviceError) in try keychain })
    let search = try service.search(query, caller: caller, keys: classKeys, environment: secItemEnvironment)
    if !search.undecodable.isEmpty, access == .writing {
      let store = try writingService().store
      do throws(KeychainStoreError) { try store.remove(search.undecodable) } catch { throw SecItemError(error) }
    }
    return try search.outcome.get()
  }

  /// `SecItemUpdate`, called by whoever has these access groups.
  ///
  /// - Throws: Apple's status; then nothing was changed.
  public func secItemUpdate(
    _ query: SecItemQuery, changes: SecItemQuery, by caller: SecItemCaller
  ) throws(SecItemError) {
    let service = try writingService()
    try service.update(query, changes: changes, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// `SecItemDelete`, called by whoever has these access groups.
  ///
  /// - Throws: Apple's status; then nothing was deleted.
  public func secItemDelete(_ query: SecItemQuery, by caller: SecItemCaller) throws(SecItemError) {
    let service = try writingService()
    try service.delete(query, caller: caller, keys: classKeys, environment: secItemEnvironment)
  }

  /// An app of the device as its entitlements make it; one that is not installed has no access group.
  public func caller(_ app: String) -> SecItemCaller {
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
    SecItemService(store: try asCall { () throws(VirtualDeviceError) in try willChangeItems() })
  }

  /// A call knows of no device, only that its keychain cannot be had.
  private func asCall<Value>(_ body: () throws(VirtualDeviceError) -> Value) throws(SecItemError) -> Value {
    do throws(VirtualDeviceError) {
      return try body()
    } catch {
      if let underlying = error.underlying as? KeychainStoreError { throw SecItemError(underlying) }
      throw SecItemError(error.code == .io ? .ioError : .notAvailable, error.reason)
    }
  }
}
