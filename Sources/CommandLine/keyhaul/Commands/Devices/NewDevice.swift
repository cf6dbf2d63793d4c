import ArgumentParser
import Foundation
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

  /// - Parameter passcode: `nil` for the description's, or none where there is no description.
  func create(in home: DeviceSet, passcode: borrowing Secret?) throws(CommandFailure) -> DeviceReport {
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
      if error.isStopped { try Interruption.check("no device was made") }
      if error.code == .badFixture, let fixture { throw FixtureSource.failure(error, argument: fixture.argument) }
      if error.code == .badFixture, let imported {
        throw CommandFailure(
          .refused, "cannot make a device from \(imported.name)", why: error.reason,
          try: "keyhaul inspect \(ShellQuoting.quote(imported.name)) --list")
      }
      throw CommandFailure(error, device: name.text)
    }
  }

  /// Makes the device in a directory that is gone afterwards, so that everything is tried but its place.
  func rehearse(in home: DeviceSet, passcode: borrowing Secret?) throws(CommandFailure) -> DeviceReport {
    let directory: TemporaryDeviceSet
    do throws(KeyhaulError) {
      try home.requireFree(name)
      directory = try TemporaryDeviceSet(environment: home.environment)
    } catch {
      throw CommandFailure(error, device: name.text)
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

/// Where `--from` finds the description of a device.
enum FixtureSource {
  /// The descriptions that the program carries, for help: "old-phone, new-phone or hostile-names".
  static let bundledNames = HumanReadable.list(BundledFixtures.names, conjunction: "or")

  /// What unlocks the devices of the bundled descriptions, which are invented and hold nothing real.
  static let passcodes =
    "The passcode is 135790 on old-phone, 2468 on new-phone, 1357 on every-rule and 2468 on every-rule-target; "
    + "hostile-names has none."

  /// A description, and what was typed for it.
  struct Loaded {
    let argument: String
    let description: DeviceFixture
  }

  /// A bundled description by its name, or else a file by its path.
  ///
  /// - Throws: `.notFound` with the near name; `.usage` for a file that describes no device; `.refused` for a version
  ///   that is not read.
  static func load(_ argument: String) throws(CommandFailure) -> Loaded {
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

  /// What is wrong with a description, also where only the device that is made of it refuses it.
  static func failure(_ error: KeyhaulError, argument: String) -> CommandFailure {
    CommandFailure(
      CommandStatus(error.category), "cannot make a device from \(argument): \(error.summary)", why: error.reason,
      try: error.call, of: error.errno)
  }

  private static func readFile(_ path: String) throws(CommandFailure) -> [UInt8] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      let near = EditDistance.nearest(to: path, among: BundledFixtures.names)
      throw CommandFailure(
        .notFound, "there is no description named \(path)",
        why: near.map { "\"\($0)\" is similar" } ?? "it is neither a file nor bundled with Keyhaul (\(bundledNames))",
        try: "--from \(near ?? BundledFixtures.names.first ?? "FILE")")
    }
    do {
      if isDirectory.boolValue { throw CocoaError(.fileReadUnknown) }
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      // One portion more than is accepted, so that the decoder sees that there is more.
      var bytes: [UInt8] = []
      while bytes.count <= DeviceFixture.maximumByteCount, let portion = try file.read(upToCount: 1 << 20),
        !portion.isEmpty
      {
        bytes += portion
      }
      return bytes
    } catch {
      throw CommandFailure(
        .failed, "cannot read \(path)", why: isDirectory.boolValue ? "it is a folder" : "the file system refused",
        try: "a file that can be read")
    }
  }
}

/// `keyhaul device fixture`: prints a description that comes with the program, to read it or to write one's own after it.
struct DeviceFixtureVerb: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Print a device description that comes with the program",
    usage: "keyhaul device fixture NAME",
    examples: [
      "keyhaul device fixture old-phone", "keyhaul device fixture every-rule > my-phone.json",
    ],
    flags: ["--json"])
  static let configuration = described(as: "fixture")

  @Argument(
    help: ArgumentHelp("\(FixtureSource.bundledNames).", valueName: "name"),
    completion: .list(BundledFixtures.names))
  var name: String
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    guard let bytes = BundledFixtures.bytes(named: name) else {
      let near = EditDistance.nearest(to: name, among: BundledFixtures.names)
      throw CommandFailure(
        .notFound, "no description named \(UntrustedText.escaped(name)) comes with the program",
        why: near.map { "\"\($0)\" is similar" } ?? "there are \(HumanReadable.list(BundledFixtures.names))",
        try: near.map { "keyhaul device fixture \($0)" })
    }
    try session.writeRaw(bytes)
    return .ok
  }
}
