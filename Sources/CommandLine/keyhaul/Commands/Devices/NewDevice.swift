import ArgumentParser
import Foundation
import KeyhaulKit

/// A device to create: empty, from a description or with imported items, changed by the command's options.
struct NewDevice {
  let name: DeviceName
  let fixture: FixtureSource.Loaded?
  /// The items of another keychain to import; `nil` if there are none.
  let imported: SourceItems?
  let identity: DeviceIdentity
  let eraseAfterFailures: Int?
  /// Whether its keys are derived from the description, so that anyone can compute them.
  let hasPublishedKeys: Bool

  /// Checks the options.
  ///
  /// - Throws: `.usage` for an invalid model or version, and for published keys without a description.
  init(
    name: DeviceName, fixture: FixtureSource.Loaded?, imported: SourceItems?, productType: String?,
    productVersion: String?,
    eraseAfterFailures: Int?, hasPublishedKeys: Bool
  ) throws(CommandError) {
    if let productType, productType.wholeMatch(of: /[A-Za-z]{1,20}[0-9]{1,4},[0-9]{1,4}/) == nil {
      throw .usage(
        "\"\(productType)\" is not a model",
        why: "a model is a word and two numbers, like Apple's product types", try: "--model iPhone15,2")
    }
    if hasPublishedKeys, fixture == nil {
      throw .usage(
        "--published-hardware-key needs --from", why: "the key is derived from a description's seed",
        try: "--from FIXTURE, or leave --published-hardware-key out")
    }
    let standard = fixture?.description.identity ?? imported?.identity ?? DeviceIdentity()
    var version = standard.productVersion
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
      productType: productType ?? standard.productType, productVersion: version,
      build: productVersion == nil ? standard.build : nil)
  }

  /// Creates the device.
  ///
  /// - Parameter passcode: The passcode; `nil` if the description's passcode is used, or none.
  func create(in home: DeviceSet, passcode: borrowing Secret?) throws(CommandError) -> DeviceReport {
    do throws(KeyhaulError) {
      let device = try make(in: home, passcode: passcode)
      do throws(KeyhaulError) {
        return try device.withSession(.reading, verb: "keyhaul device create") {
          (session) throws(KeyhaulError) in try DeviceReport(session)
        }
      } catch {
        throw error.at(.afterCommit)
      }
    } catch {
      if error.isCancellation { try Interruption.check("no device was made") }
      if error.code == .badFixture, let fixture { throw FixtureSource.failure(error, argument: fixture.argument) }
      if error.code == .badFixture, let imported {
        throw CommandError(
          .refused, "cannot make a device from \(imported.name)", why: error.reason,
          try: "keyhaul inspect \(ShellQuoting.quote(imported.name)) --list")
      }
      throw CommandError(error, device: name.text)
    }
  }

  /// Creates the device in a temporary folder, which tests everything except its final location.
  func createTemporarily(in home: DeviceSet, passcode: borrowing Secret?) throws(CommandError) -> DeviceReport {
    let directory: TemporaryDeviceSet
    do throws(KeyhaulError) {
      try home.requireFree(name)
      directory = try TemporaryDeviceSet(environment: home.environment)
    } catch {
      throw CommandError(error, device: name.text)
    }
    defer { _ = directory }
    return try create(in: directory.devices, passcode: passcode)
  }

  private func make(in home: DeviceSet, passcode: borrowing Secret?) throws(KeyhaulError) -> VirtualDevice {
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

/// The source of the description that `--from` names.
enum FixtureSource {
  /// The names of the bundled descriptions, for help: "old-phone, new-phone or hostile-names".
  static let bundledNames = HumanReadable.list(BundledFixtures.names, conjunction: "or")

  /// The passcodes of the bundled descriptions, which contain only invented data.
  static let passcodes =
    "The passcode is 135790 on old-phone, 2468 on new-phone, 1357 on every-rule and 2468 on every-rule-target; "
    + "hostile-names has none."

  /// A description and the argument that named it.
  struct Loaded {
    let argument: String
    let description: DeviceFixture
  }

  /// Loads a bundled description by name, or a file by path.
  ///
  /// - Throws: `.notFound` with a suggestion; `.usage` for a file that does not describe a device; `.refused` for an
  ///   unsupported version.
  static func load(_ argument: String) throws(CommandError) -> Loaded {
    let bytes: [UInt8]
    if let bundled = BundledFixtures.bytes(named: argument) {
      bytes = bundled
    } else {
      bytes = try readFile(argument)
    }
    do throws(KeyhaulError) {
      return Loaded(argument: argument, description: try DeviceFixture(decoding: bytes, from: argument))
    } catch {
      throw failure(error, argument: argument)
    }
  }

  /// Returns the error for a faulty description, including faults that only the creation of the device finds.
  static func failure(_ error: KeyhaulError, argument: String) -> CommandError {
    CommandError(
      CommandExitStatus(error.category), "cannot make a device from \(argument): \(error.summary)", why: error.reason,
      try: error.call, of: error.errno)
  }

  private static func readFile(_ path: String) throws(CommandError) -> [UInt8] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      let near = EditDistance.nearest(to: path, among: BundledFixtures.names)
      throw CommandError(
        .notFound, "there is no description named \(path)",
        why: near.map { "\"\($0)\" is similar" } ?? "it is neither a file nor bundled with Keyhaul (\(bundledNames))",
        try: "--from \(near ?? BundledFixtures.names.first ?? "FILE")")
    }
    do {
      if isDirectory.boolValue { throw CocoaError(.fileReadUnknown) }
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      // Reads one portion more than is accepted, so that the decoder can reject the file.
      var bytes: [UInt8] = []
      while bytes.count <= DeviceFixture.maximumByteCount, let portion = try file.read(upToCount: 1 << 20),
        !portion.isEmpty
      {
        bytes += portion
      }
      return bytes
    } catch {
      throw CommandError(
        .failed, "cannot read \(path)", why: isDirectory.boolValue ? "it is a folder" : "the file system refused",
        try: "a file that can be read")
    }
  }
}

/// `keyhaul device fixture`: prints a bundled description, as an example for writing others.
struct DeviceFixtureCommand: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Print a device description that comes with the program",
    usage: "keyhaul device fixture NAME",
    examples: [
      "keyhaul device fixture old-phone", "keyhaul device fixture every-rule > my-phone.json",
    ],
    flags: ["--json"])
  static let configuration = makeConfiguration(named: "fixture")

  @Argument(
    help: ArgumentHelp("\(FixtureSource.bundledNames).", valueName: "name"),
    completion: .list(BundledFixtures.names))
  var name: String
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    guard let bytes = BundledFixtures.bytes(named: name) else {
      let near = EditDistance.nearest(to: name, among: BundledFixtures.names)
      throw CommandError(
        .notFound, "no description named \(UntrustedText.escaped(name)) comes with the program",
        why: near.map { "\"\($0)\" is similar" } ?? "there are \(HumanReadable.list(BundledFixtures.names))",
        try: near.map { "keyhaul device fixture \($0)" })
    }
    try session.writeRaw(bytes)
    return .ok
  }
}
