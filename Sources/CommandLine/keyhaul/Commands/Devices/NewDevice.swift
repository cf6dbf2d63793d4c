import KeyhaulKit

/// A device to create: empty, from a fixture (a device description) or with imported items. The command's options override
/// the model and the version.
struct NewDevice {
  let name: DeviceName
  let fixture: FixtureSource.Loaded?
  /// The items to import from another keychain; `nil` if no keychain is imported.
  let imported: SourceItems?
  let identity: DeviceIdentity
  let eraseAfterFailures: Int?
  /// Whether the device's keys are derived from the fixture. If so, anyone can compute them.
  let hasPublishedKeys: Bool

  /// Checks the options.
  ///
  /// - Throws: `.usage` for an invalid model or version, and for published keys without a fixture.
  init(
    name: DeviceName, fixture: FixtureSource.Loaded?, imported: SourceItems?, productType: String?,
    productVersion: String?, eraseAfterFailures: Int?, hasPublishedKeys: Bool
  ) throws(CommandError) {
    if let productType, !DeviceIdentity.isProductType(productType) {
      throw .usage(
        "\"\(productType)\" is not a model",
        why: "a model is a word and two numbers, like Apple's product types", try: "--model iPhone15,2")
    }
    if hasPublishedKeys, fixture == nil {
      throw .usage(
        "--published-hardware-key needs --from", why: "the key is derived from a description's seed",
        try: "--from FIXTURE, or leave --published-hardware-key out")
    }
    let sourceIdentity = fixture?.description.identity ?? imported?.identity ?? DeviceIdentity()
    var version = sourceIdentity.productVersion
    if let productVersion {
      do throws(KeyhaulError) {
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
      productType: productType ?? sourceIdentity.productType, productVersion: version,
      build: productVersion == nil ? sourceIdentity.build : nil)
  }

  /// Creates the device.
  ///
  /// - Parameter passcode: The passcode; `nil` if the fixture provides the passcode or the device has none.
  func create(in deviceSet: DeviceSet, passcode: borrowing Secret?) throws(CommandError) -> DeviceReport {
    do throws(KeyhaulError) {
      let device = try make(in: deviceSet, passcode: passcode)
      do throws(KeyhaulError) {
        return try device.withSession(.reading, verb: "keyhaul device create") {
          (openDevice) throws(KeyhaulError) in try DeviceReport(openDevice)
        }
      } catch {
        throw error.at(.afterCommit)
      }
    } catch {
      if error.isCancellation { try Interruption.check("no device was made") }
      if error.code == .badFixture, let fixture {
        throw FixtureSource.commandError(for: error, argument: fixture.argument)
      }
      if error.code == .badFixture, let imported {
        throw CommandError(
          .refused, "cannot make a device from \(imported.name)", why: error.reason,
          try: "keyhaul inspect \(ShellQuoting.quote(imported.name)) --list")
      }
      throw CommandError(error, device: name.text)
    }
  }

  /// Creates the device in a temporary folder, so that everything is tested except the final location.
  func createTemporarily(in deviceSet: DeviceSet, passcode: borrowing Secret?) throws(CommandError) -> DeviceReport {
    let directory: TemporaryDeviceSet
    do throws(KeyhaulError) {
      try deviceSet.requireFree(name)
      directory = try TemporaryDeviceSet(environment: deviceSet.environment)
    } catch {
      throw CommandError(error, device: name.text)
    }
    // The temporary folder is deleted when this value is released.
    defer { _ = directory }
    return try create(in: directory.devices, passcode: passcode)
  }

  private func make(in deviceSet: DeviceSet, passcode: borrowing Secret?) throws(KeyhaulError) -> VirtualDevice {
    if var fixture = fixture?.description {
      fixture.identity = identity
      return try deviceSet.create(
        from: fixture, named: name, passcode: passcode, eraseAfterFailures: eraseAfterFailures,
        keys: hasPublishedKeys ? .published : .random)
    }
    let options = DeviceOptions(identity: identity, eraseAfterFailures: eraseAfterFailures)
    if let imported {
      switch passcode {
      case .some(let passcode): try deviceSet.create(name, options, importing: imported.items, passcode: passcode)
      case .none: try deviceSet.create(name, options, importing: imported.items, passcode: Secret(utf8: ""))
      }
      return try deviceSet.device(name)
    }
    switch passcode {
    case .some(let passcode): return try deviceSet.create(name, options, passcode: passcode)
    case .none: return try deviceSet.create(name, options, passcode: Secret(utf8: ""))
    }
  }
}
