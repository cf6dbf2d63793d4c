import ArgumentParser
import KeyhaulKit

/// `keyhaul device create`: creates a virtual device.
struct DeviceCreate: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Create a virtual device",
    usage: "keyhaul device create NAME [--model M] [--ios V] [--from FIXTURE | --import SOURCE]",
    examples: [
      "keyhaul device create old-phone --passcode-file ~/.pin", "keyhaul device create my-phone --from old-phone",
      "keyhaul device create twin --import family.backup",
    ],
    flags: [
      "--model", "--ios", "--from", "--import", "--password-file", "--published-hardware-key", "--passcode-file",
      "--erase-after-failures",
    ])
  static let configuration = makeConfiguration(named: "create")

  @Argument(help: "The device's name, or its path if it is outside the device folder.")
  var name: String
  @Option(help: ArgumentHelp("The product type (default iPhone15,2).", valueName: "type")) var model: String?
  @Option(help: ArgumentHelp("The version of iOS (default 18.1).", valueName: "version")) var ios: String?
  @Option(
    help: ArgumentHelp(
      "Fill the device from a description: a path, or \(FixtureSource.bundledNames).",
      discussion: FixtureSource.passcodes, valueName: "fixture"),
    completion: .file(extensions: ["json"]))
  var from: String?
  @Option(
    name: .customLong("import"),
    help: ArgumentHelp(
      "Fill the device with the readable items of a backup, a keychain database, a dump or another device.",
      valueName: "source"),
    completion: .devicesAndFiles)
  var imported: String?
  @Flag(
    help: ArgumentHelp(
      "With --from, for tests: derive the device key from the description and the device's name. Anyone can compute "
        + "this key.",
      discussion: "This-device-only items can then be decrypted on any device created with the same name."))
  var publishedHardwareKey = false
  @Flag(help: "Erase the device after ten wrong passcodes.") var eraseAfterFailures = false
  @OptionGroup(title: "The passcode") var passcode: PasscodeFlags
  @OptionGroup(title: "The imported backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the source") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let (deviceSet, deviceName) = try location(in: session)
    if from != nil, imported != nil {
      throw CommandError.usage("--from and --import cannot be used together", try: "use only one of them")
    }
    let source = try source(in: session)
    let newDevice = try NewDevice(
      name: deviceName, fixture: from.map { try FixtureSource.load($0) }, imported: source, productType: model,
      productVersion: ios,
      eraseAfterFailures: eraseAfterFailures ? DeviceOptions.standardEraseAfterFailures : nil,
      hasPublishedKeys: publishedHardwareKey)
    let secret: Secret?
    if passcode.isGiven {
      secret = try session.password(passcode, of: deviceName.text, isNew: true)
    } else {
      secret = nil
    }
    if let source { try rejectItemsNeedingPasscode(of: source) }
    try createAndReport(newDevice, in: deviceSet, passcode: secret, session)
    if publishedHardwareKey { session.warnAboutPublishedKey(of: deviceName.text) }
    guard let source, source.unreadableCount > 0 else { return .ok }
    source.warnAboutUnreadable(argument: source.name, in: session)
    return .partial
  }

  /// Creates the device and prints a report. In a dry run, creates the device in a temporary folder.
  private func createAndReport(
    _ newDevice: NewDevice, in deviceSet: DeviceSet, passcode: borrowing Secret?, _ session: Session
  ) throws {
    let displayName = isPath ? UntrustedText.escaped(name) : newDevice.name.text
    if dryRun.isOn {
      let report = try newDevice.createTemporarily(in: deviceSet, passcode: passcode)
      try session.announce("Would create \(displayName) (\(report.summary)).")
      if session.isJSON { try session.writeDocument(report.document([("dry_run", true)])) }
    } else {
      let report = try create(newDevice, in: deviceSet, passcode: passcode, session)
      try session.announce("Created \(displayName) (\(report.summary)).")
      if session.isJSON { try session.writeDocument(report.document()) }
    }
  }

  /// Creates the device, and records the change.
  private func create(
    _ newDevice: NewDevice, in deviceSet: DeviceSet, passcode: borrowing Secret?, _ session: Session
  ) throws(CommandError) -> DeviceReport {
    let change = CommittedChange("\(newDevice.name) was created", of: newDevice.name.text)
    // The passcode is noncopyable, so it cannot be captured by the closure of `committing`.
    let report: DeviceReport
    do throws(CommandError) {
      report = try newDevice.create(in: deviceSet, passcode: passcode)
    } catch {
      if error.stage == .afterCommit { session.committedChange = change }
      throw error
    }
    session.committedChange = change
    return report
  }

  /// Returns the items to import; `nil` if no source was given.
  private func source(in session: Session) throws -> SourceItems? {
    guard let imported else {
      try accessOptions.reject(for: name)
      // Without a source, no database keys may be given.
      try databaseKeys.check([])
      return nil
    }
    return try SourceItems.read(imported, accessOptions, databaseKeys, in: session)
  }

  /// Rejects items that need a passcode if the new device will have no passcode.
  private func rejectItemsNeedingPasscode(of source: SourceItems) throws(CommandError) {
    let count = source.items.count { $0.protection == .whenPasscodeSetThisDeviceOnly }
    guard count > 0, !passcode.isGiven else { return }
    throw .usage(
      "\(HumanReadable.count(count, "item")) of \(source.name) \(count == 1 ? "needs" : "need") a device with a passcode",
      why: "the key of their class exists only while a passcode is set", try: "--passcode-file PATH")
  }

  private var isPath: Bool { name.contains("/") && !name.hasPrefix("device:") }

  /// Returns the folder in which to create the device, and the device's name. The command's argument is a name in the
  /// device folder, or a path.
  private func location(in session: Session) throws(CommandError) -> (deviceSet: DeviceSet, name: DeviceName) {
    let deviceSet = DeviceSet(
      path: isPath ? "." : try session.deviceFolder(), environment: .interruptible)
    let argument = isPath ? name : try SourceResolver(session).newDeviceName(name)
    do throws(KeyhaulError) {
      let location = try DeviceSet.locate(argument, in: deviceSet)
      location.deviceSet.clearLeftovers()
      return location
    } catch {
      throw CommandError(error, device: argument)
    }
  }
}
