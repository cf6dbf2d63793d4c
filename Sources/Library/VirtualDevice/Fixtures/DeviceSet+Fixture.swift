public import Basics
import CKeyhaul
public import KeychainCrypto
package import KeychainFormats
import Keychains

extension DeviceSet {
  /// Creates the device that a fixture describes. By default, its hardware key, class keys and identifiers are random.
  /// Published ones depend only on the fixture's seed and the device's name.
  ///
  /// Only Keyhaul itself reads fixtures. In your own code, use `create(_:_:passcode:filledBy:)`, or `Phone(fixture:)` of
  /// `KeyhaulTesting`.
  ///
  /// - Parameters:
  ///   - fixture: The description.
  ///   - name: The device's name, or `nil` to use the fixture's.
  ///   - passcode: The passcode, or `nil` to use the fixture's.
  ///   - eraseAfterFailures: The number of consecutive wrong passcodes after which the device erases itself, or `nil`
  ///     if it never does.
  ///   - keys: The source of the keys. `.published` is for tests that need the same device twice; the device records
  ///     it.
  /// - Returns: The new device.
  /// - Throws: `.exists` if the name is in use; `.deviceOccupied` if something else has the device's path; `.badLimit` if
  ///   `eraseAfterFailures` is less than 1; `.badFixture` with the item that cannot be added; `.deviceIO` if a file
  ///   operation fails.
  @discardableResult
  public func create(
    from fixture: DeviceFixture, named name: DeviceName? = nil, passcode: borrowing Secret? = nil,
    eraseAfterFailures: Int? = nil, keys: DeviceFixture.Keys = .random
  ) throws(KeyhaulError) -> VirtualDevice {
    let name = name ?? fixture.name
    var fixtureEnvironment = environment
    fixtureEnvironment.clock = DeviceClock(
      now: { fixture.created }, sleep: environment.clock.sleep, shouldContinue: environment.clock.shouldContinue)
    var options = DeviceOptions(
      identity: fixture.identity, apps: fixture.apps, eraseAfterFailures: eraseAfterFailures)
    switch keys {
    case .random: break
    case .published:
      fixtureEnvironment.random = DeviceFixture.publishedRandomness(seed: fixture.seed, name: name.text)
      options.hasPublishedHardwareKey = true
    }
    let home = DeviceSet(path: path, environment: fixtureEnvironment)
    let secret: Secret
    switch passcode {
    case .some(let passcode): secret = passcode.copy()
    case .none: secret = Secret(copying: fixture.passcode?.withBytes { Array($0) } ?? [])
    }
    try home.create(name, options, passcode: secret) { (session) throws(KeyhaulError) in
      try session.provision(fixture.items)
    }
    return try device(name)
  }
}

extension DeviceSet {
  /// Creates a device with the items of another keychain, including their dates and identifiers. Its hardware key and
  /// class keys are random.
  ///
  /// - Parameters:
  ///   - name: The device's name.
  ///   - options: The properties of the device.
  ///   - items: The decrypted items with their access groups.
  ///   - passcode: The passcode, or an empty one for none.
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
    var itemToStore = item
    if itemToStore[.accessGroup] == nil { itemToStore[.accessGroup] = .string(DeviceSession.standardAccessGroup) }
    if !accessConstraints.isEmpty {
      itemToStore[.accessControl] = .dictionary(AccessConstraint.operations(accessConstraints))
    }
    return itemToStore
  }
}

extension AccessConstraint {
  private typealias Code = AccessConstraintCode

  /// Returns the constraints of each operation, in the short names of Apple's key store.
  ///
  /// Encrypting and deleting are always allowed. Decrypting, or using a private key, requires all constraints. Source:
  /// Apple `SecAccessControl.c`.
  package static func operations(_ constraints: [AccessConstraint]) -> PropertyDictionary {
    var requirements = PropertyDictionary()
    for constraint in constraints {
      switch constraint {
      case .userPresence: requirements[Code.policy] = .string(Code.deviceOwner)
      case .biometryAny: requirements[Code.biometry] = .boolean(true)
      case .biometryCurrentSet: requirements[Code.biometry] = .string(Code.currentSet)
      case .devicePasscode: requirements[Code.passcode] = .boolean(true)
      case .privateKeyUsage: break
      }
    }
    let value = requirements.entries.isEmpty ? PropertyValue.boolean(true) : .dictionary(requirements)
    var operations = PropertyDictionary()
    for operation in [AccessOperation.encrypt, .delete] { operations[operation.rawValue] = .boolean(true) }
    let protectedOperations: [AccessOperation] =
      constraints.contains(.privateKeyUsage) ? [.sign, .computeKey, .decapsulate] : [.decrypt]
    for operation in protectedOperations { operations[operation.rawValue] = value }
    return operations
  }
}

/// The device descriptions in the program itself (format `device-fixture/1`), so that creating a device from one and
/// the demo need no file.
package enum BundledFixtures {
  /// The sorted names of all bundled descriptions.
  package static let names: [String] = fixtures.keys.sorted()

  /// The seed of all bundled descriptions. Together with a device's name, it determines the published keys.
  package static let seed: Int64 = 20_261_120

  /// Returns the JSON document of a description, or `nil` if there is none with this name.
  package static func bytes(named name: String) -> [UInt8]? { fixtures[name] }

  private static let fixtures: [String: [UInt8]] = {
    var count = 0
    guard let first = keyhaul_fixtures(&count) else { return [:] }
    return Dictionary(
      UnsafeBufferPointer(start: first, count: count).map { fixture in
        (String(cString: fixture.name), Array(UnsafeBufferPointer(start: fixture.bytes, count: fixture.size)))
      },
      uniquingKeysWith: { first, _ in first })
  }()
}
