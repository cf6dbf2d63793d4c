import KeyhaulKit

/// A device as it was asked for: plain, or from a description, with what the command line says over it.
struct NewDevice {
  let name: DeviceName
  let fixture: FixtureSource.Loaded?
  /// Items of another keychain, where it gets those.
  let imported: SourceItems?
  let identity: DeviceIdentity
  let eraseAfterFailures: Int?
  /// Whether its keys shall be those that everybody can compute of the description.
  let hasPublishedKeys: Bool

  /// - Throws: `.usage` where model or version cannot be one, and for published keys without a description.
  init(
    name: DeviceName, fixture: FixtureSource.Loaded?, imported: SourceItems?, productType: String?,
    productVersion: String?,
    eraseAfterFailures: Int?, hasPublishedKeys: Bool
  ) throws(CommandFailure) {
    if let productType, productType.wholeMatch(of: /[A-Za-z]{1,20}[0-9]{1,4},[0-9]{1,4}/) == nil {
      throw .usage(
        "\"\(productType)\" is not a model",
        why: "a model is a word and two numbers, like Apple's product types", try: "--model iPhone15,2")
    }
    if hasPublishedKeys, fixture == nil {
      throw .usage(
        "--published-hardware-key needs --from", why: "the key derives from a description's seed",
        try: "--from FIXTURE, or leave it out")
    }
    let standard = fixture?.description.identity ?? imported?.identity ?? DeviceIdentity()
    var version = standard.productVersion
    if let productVersion {
      do throws(VirtualDeviceError) {
        version = try ProductVersion(productVersion)
      } catch {
        throw .usage("\"\(productVersion)\" is not a version of iOS", why: error.reason, try: "--ios 18.1")
      }
    }
    self.name = name
    self.fixture = fixture
    self.imported = imported
    self.eraseAfterFailures = eraseAfterFailures
    self.hasPublishedKeys = hasPublishedKeys
    identity = DeviceIdentity(
      productType: productType ?? standard.productType, productVersion: version,
      build: productVersion == nil ? standard.build : nil)
  }

  /// - Parameter passcode: `nil` for the description's, or none where there is no description.
  func create(in home: DeviceHome, passcode: borrowing Secret?) throws(CommandFailure) -> DeviceReport {
    do throws(VirtualDeviceError) {
      let device = try make(in: home, passcode: passcode)
      do throws(VirtualDeviceError) {
        return try device.withSession(.reading, verb: "keyhaul device create") {
          (session) throws(VirtualDeviceError) in try DeviceReport(session)
        }
      } catch {
        throw error.at(.afterCommit)
      }
    } catch {
      if error.isStopped { try Interruption.check("no device was made") }
      if error.code == .badFixture, let fixture { throw FixtureSource.failure(error, argument: fixture.argument) }
      if error.code == .badFixture, let imported {
        throw CommandFailure(
          .refused, "cannot make a device from \(imported.name)", why: error.reason,
          try: "keyhaul inspect \(ShellWord.quoted(imported.name)) --list")
      }
      throw CommandFailure(error, device: name.text)
    }
  }

  /// Makes the device in a directory that is gone afterwards, so that everything is tried but its place.
  func rehearse(in home: DeviceHome, passcode: borrowing Secret?) throws(CommandFailure) -> DeviceReport {
    let directory: TemporaryDeviceHome
    do throws(VirtualDeviceError) {
      try home.requireFree(name)
      directory = try TemporaryDeviceHome(environment: home.environment)
    } catch {
      throw CommandFailure(error, device: name.text)
    }
    defer { _ = directory }
    return try create(in: directory.home, passcode: passcode)
  }

  private func make(in home: DeviceHome, passcode: borrowing Secret?) throws(VirtualDeviceError) -> VirtualDevice {
    if var fixture = fixture?.description {
      fixture.identity = identity
      return try home.create(
        from: fixture, named: name, passcode: passcode, eraseAfterFailures: eraseAfterFailures,
        keys: hasPublishedKeys ? .published : .random)
    }
    let options = DeviceOptions(identity: identity, eraseAfterFailures: eraseAfterFailures)
    if let imported {
      switch passcode {
      case .some(let given): try home.create(name, options, importing: imported.items, passcode: given)
      case .none: try home.create(name, options, importing: imported.items, passcode: Secret(utf8: ""))
      }
      return try home.device(name)
    }
    switch passcode {
    case .some(let given): return try home.create(name, options, passcode: given)
    case .none: return try home.create(name, options, passcode: Secret(utf8: ""))
    }
  }
}
