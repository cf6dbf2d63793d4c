public import Basics
import CKeyhaul
public import KeychainCrypto
package import KeychainFormats
import Keychains

extension DeviceHome {
  /// Makes the device that a fixture describes. Its hardware, its keys and its identifiers are its own, unless published
  /// ones are asked for: these are the same bytes each time, for a name.
  ///
  /// - Parameters:
  ///   - fixture: The description.
  ///   - name: Instead of the fixture's.
  ///   - passcode: Instead of the fixture's; `nil` for the fixture's.
  ///   - eraseAfterFailures: After how many wrong passcodes in a row it erases itself; `nil` for never.
  ///   - keys: `.published` for tests that need the same device twice. The device says so from then on.
  /// - Throws: `.exists`, `.deviceIO`; `.badFixture` naming the item that the keychain does not take.
  @discardableResult
  public func create(
    from fixture: DeviceFixture, named name: DeviceName? = nil, passcode: borrowing Secret? = nil,
    eraseAfterFailures: Int? = nil, keys: DeviceFixture.Keys = .random
  ) throws(KeyhaulError) -> VirtualDevice {
    let name = name ?? fixture.name
    var described = environment
    described.clock = DeviceClock(
      now: { fixture.created }, sleep: environment.clock.sleep, shouldContinue: environment.clock.shouldContinue)
    var options = DeviceOptions(
      identity: fixture.identity, apps: fixture.apps, eraseAfterFailures: eraseAfterFailures)
    switch keys {
    case .random: break
    case .published:
      described.random = DeviceFixture.publishedRandomness(seed: fixture.seed, name: name.text)
      options.hasPublishedHardwareKey = true
    }
    let home = DeviceHome(path: path, environment: described)
    let secret: Secret
    switch passcode {
    case .some(let given): secret = given.copy()
    case .none: secret = Secret(copying: fixture.passcode?.withBytes { Array($0) } ?? [])
    }
    try home.create(name, options, passcode: secret) { (session) throws(KeyhaulError) in
      try session.provision(fixture.items)
    }
    return try device(name)
  }
}

extension DeviceHome {
  /// Makes a device that has the items of another keychain, with their dates and identifiers; its hardware and its keys are
  /// its own.
  ///
  /// - Parameters:
  ///   - items: In clear; access groups are those that they name.
  ///   - passcode: Empty for none.
  /// - Throws: `.exists`, `.deviceIO`; `.badFixture` naming why the keychain does not take an item.
  package func create(
    _ name: DeviceName, _ options: DeviceOptions, importing items: [KeychainItem], passcode: borrowing Secret
  ) throws(KeyhaulError) {
    try create(name, options, passcode: passcode) { (session) throws(KeyhaulError) in
      try session.provision(items.map { DeviceFixture.Item(item: $0, accessConstraints: []) }, keepsIdentifiers: true)
    }
  }
}

extension DeviceSession {
  /// Puts a fixture's items in place, with their dates, their tokens and their access controls: on a device that is not
  /// there for anybody else.
  func provision(_ items: [DeviceFixture.Item], keepsIdentifiers: Bool = false) throws(KeyhaulError) {
    let random = environment.random
    let store = try willChangeItems()
    do throws(KeyhaulError) {
      try store.provision(
        items.lazy.map(\.complete), keepsIdentifiers: keepsIdentifiers, isUnfinished: true, keys: classKeys,
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
  /// The item with an access group, and its access control as the attribute that the keychain seals apart.
  var complete: KeychainItem {
    var complete = item
    if complete[.accessGroup] == nil { complete[.accessGroup] = .string(DeviceSession.standardAccessGroup) }
    if !accessConstraints.isEmpty {
      complete[.accessControl] = .dictionary(AccessConstraint.operations(accessConstraints))
    }
    return complete
  }
}

extension AccessConstraint {
  /// What must be fulfilled for which operation, in the short names of Apple's key store.
  ///
  /// Encrypting (`oe`) and deleting (`odel`) are free; decrypting (`od`), or using a private key (`osgn`, `ock`, `okd`),
  /// takes all of the constraints: a policy (`cpo`), a biometry (`cbio`), the passcode (`cup`). Source: Apple `SecAccessControl.c`.
  package static func operations(_ constraints: [AccessConstraint]) -> PropertyDictionary {
    var needed = PropertyDictionary()
    for constraint in constraints {
      switch constraint {
      case .userPresence: needed["cpo"] = .string("DeviceOwnerAuthentication")
      case .biometryAny: needed["cbio"] = .boolean(true)
      case .biometryCurrentSet: needed["cbio"] = .string("current-set")
      case .devicePasscode: needed["cup"] = .boolean(true)
      case .privateKeyUsage: break
      }
    }
    let value = needed.entries.isEmpty ? PropertyValue.boolean(true) : .dictionary(needed)
    var operations: PropertyDictionary = ["oe": .boolean(true), "odel": .boolean(true)]
    let guarded = constraints.contains(.privateKeyUsage) ? ["osgn", "ock", "okd"] : ["od"]
    for operation in guarded { operations[operation] = value }
    return operations
  }
}

/// The device descriptions that the program carries in itself (format `device-fixture/1`), so that `device create
/// --from` and the demo need no file.
package enum BundledFixtures {
  /// The names of all descriptions, as `--from` takes them, sorted.
  package static let names: [String] = fixtures.keys.sorted()

  /// The seed that all of them have: with a device's name it gives the published keys of the device.
  package static let seed: Int64 = 20_261_120

  /// The JSON document of a description, or `nil` if none has that name.
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
