public import Basics
public import KeychainCrypto
package import KeychainFormats
import Keychains

extension DeviceSet {
  /// Creates the device that a fixture describes. By default, its device key, class keys and identifiers are random.
  /// Published keys and identifiers depend only on the fixture's seed and the device's name.
  ///
  /// Only Keyhaul itself reads fixtures. In your own code, use `create(_:_:passcode:filledBy:)`, or `Phone(fixture:)`
  /// of `KeyhaulTesting`.
  ///
  /// - Parameters:
  ///   - fixture: The fixture, which describes the device.
  ///   - name: The device's name, or `nil` to use the fixture's.
  ///   - passcode: The passcode, or `nil` to use the fixture's.
  ///   - eraseAfterFailures: The number of consecutive wrong passcodes after which the device erases itself, or `nil`
  ///     if it never does.
  ///   - keys: The source of the keys. `.published` is for tests that need the same device twice. The device records
  ///     that its keys are published.
  /// - Returns: The new device.
  /// - Throws: `.exists` if the name is in use; `.deviceOccupied` if something else has the device's path; `.badLimit`
  ///   if `eraseAfterFailures` is less than 1; `.badFixture` with the item that cannot be added; `.deviceIO` if a file
  ///   operation fails.
  @discardableResult
  public func create(
    from fixture: DeviceFixture, named name: DeviceName? = nil, passcode: borrowing Secret? = nil,
    eraseAfterFailures: Int? = nil, keys: DeviceFixture.Keys = .random
  ) throws(KeyhaulError) -> VirtualDevice {
    let name = name ?? fixture.name
    var options = DeviceOptions(
      identity: fixture.identity, apps: fixture.apps, eraseAfterFailures: eraseAfterFailures)
    options.hasPublishedDeviceKey = keys == .published
    let devicePasscode = Self.passcode(passcode, orOf: fixture)
    let fixtureSet = DeviceSet(path: path, environment: creationEnvironment(of: fixture, named: name, keys))
    try fixtureSet.create(name, options, passcode: devicePasscode) { (session) throws(KeyhaulError) in
      try session.provision(fixture.items)
    }
    return try device(name)
  }

  /// Returns the environment in which a device is created: with the date of the fixture, and with the fixture's
  /// randomness if the keys are published.
  private func creationEnvironment(
    of fixture: DeviceFixture, named name: DeviceName, _ keys: DeviceFixture.Keys
  ) -> DeviceEnvironment {
    var fixtureEnvironment = environment
    fixtureEnvironment.clock = DeviceClock(
      now: { fixture.created }, sleep: environment.clock.sleep, shouldContinue: environment.clock.shouldContinue)
    if keys == .published {
      fixtureEnvironment.random = DeviceFixture.publishedRandomness(seed: fixture.seed, name: name.text)
    }
    return fixtureEnvironment
  }

  /// Returns a copy of a passcode, or the fixture's passcode if `passcode` is `nil`.
  private static func passcode(_ passcode: borrowing Secret?, orOf fixture: DeviceFixture) -> Secret {
    switch passcode {
    case .some(let passcode): return passcode.copy()
    case .none: return Secret(copying: fixture.passcode?.withBytes { Array($0) } ?? [])
    }
  }
}

extension DeviceSet {
  /// Creates a device with the items of an existing keychain, including their dates and identifiers. Its device key
  /// and class keys are random.
  ///
  /// - Parameters:
  ///   - name: The device's name.
  ///   - options: The properties of the device.
  ///   - items: The decrypted items with their access groups.
  ///   - passcode: The passcode, or an empty secret if the device has none.
  /// - Throws: `.exists`, `.deviceIO`; `.badFixture` with the reason why an item cannot be added.
  package func create(
    _ name: DeviceName, _ options: DeviceOptions, importing items: [KeychainItem], passcode: borrowing Secret
  ) throws(KeyhaulError) {
    try create(name, options, passcode: passcode) { (session) throws(KeyhaulError) in
      try session.provision(items.map { DeviceFixture.Item(item: $0, accessConstraints: []) }, keepsIdentifiers: true)
    }
  }
}

extension DeviceSession {
  /// Adds the items of a fixture, with their dates, tokens and access controls, to a device that is still being
  /// created.
  func provision(_ items: [DeviceFixture.Item], keepsIdentifiers: Bool = false) throws(KeyhaulError) {
    let random = environment.random
    let store = try prepareItemChanges()
    do throws(KeyhaulError) {
      try store.provision(
        items.lazy.map(\.itemToStore), keepsIdentifiers: keepsIdentifiers, isUnfinished: true, keys: classKeys,
        random: random)
    } catch {
      // Errors with these codes are faults of an item in the fixture.
      guard [.duplicateItem, .authFailed, .parameter].contains(error.code) else {
        throw KeyhaulError(error).with(subject: name)
      }
      throw KeyhaulError(.badFixture, name, "its items: \(error.description)", underlying: error)
    }
  }
}

extension DeviceFixture.Item {
  /// The item with an access group and its access control, which the keychain encrypts separately.
  var itemToStore: KeychainItem {
    var completeItem = item
    if completeItem[.accessGroup] == nil { completeItem[.accessGroup] = .string(DeviceSession.standardAccessGroup) }
    if !accessConstraints.isEmpty {
      completeItem[.accessControl] = .dictionary(AccessConstraint.operations(accessConstraints))
    }
    return completeItem
  }
}
