import VirtualDevice

/// The four calls as the client's app.
extension KeychainClient {
  func add(_ attributes: SecItemQuery) throws(SecItemError) -> SecItemValue? {
    try call { (session) throws(SecItemError) in try session.secItemAdd(attributes, as: app) }
  }

  func copyMatching(_ query: SecItemQuery) throws(SecItemError) -> SecItemValue? {
    try call { (session) throws(SecItemError) in try session.secItemCopyMatching(query, as: app) }
  }

  func update(_ query: SecItemQuery, _ changes: SecItemQuery) throws(SecItemError) {
    try call { (session) throws(SecItemError) in try session.secItemUpdate(query, changes: changes, as: app) }
  }

  func delete(_ query: SecItemQuery) throws(SecItemError) {
    try call { (session) throws(SecItemError) in try session.secItemDelete(query, as: app) }
  }

  /// Calls hold the device alone: also a search may find a row that will never open, and removes it.
  func call<Value>(
    _ body: (DeviceSession) throws(SecItemError) -> Value
  ) throws(SecItemError) -> Value {
    let outcome: Result<Value, SecItemError>
    do throws(VirtualDeviceError) {
      outcome = try withSession { session in
        Result { () throws(SecItemError) in try body(session) }
      }
    } catch {
      // To an app there is no device, only a keychain that can't be had.
      throw SecItemError(.notAvailable, error.reason)
    }
    return try outcome.get()
  }
}
