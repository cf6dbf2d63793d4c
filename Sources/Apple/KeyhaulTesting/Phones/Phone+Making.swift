import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainServices
import VirtualDevice

extension Phone {
  private static let name = "phone"

  /// A new phone, unlocked and with nothing in its keychain.
  ///
  /// - Parameters:
  ///   - passcode: `nil` for a phone without one, which cannot be locked.
  ///   - apps: Each app's access groups by its name, the first of them the one that its new items get; its name where
  ///     it has none. One app, `app`, where none is named.
  ///   - ios: The version of its system, such as `"17.0"`; iOS 18.1 without one.
  /// - Throws: `.badApps`; `.underlying` for a version that is none, and where the file system refuses.
  public convenience init(
    passcode: String? = Phone.standardPasscode, apps: KeyValuePairs<String, [String]> = [:], ios: String? = nil
  ) throws(PhoneError) {
    let apps = apps.isEmpty ? [Self.standardApp: []] : apps
    guard Set(apps.map(\.key)).count == apps.count, apps.allSatisfy({ !$0.key.isEmpty }) else {
      throw PhoneError(
        .badApps, .usage, "the phone cannot have these apps",
        "two of their names are the same, or one is empty: "
          + apps.map { "\"\(HostileText.shown($0.key))\"" }.joined(separator: ", "),
        advice: "a name of its own for each")
    }
    let version = try telling { () throws(VirtualDeviceError) in try ios.map(ProductVersion.init) ?? .standard }
    try self.init(
      passcode: passcode,
      DeviceOptions(
        identity: DeviceIdentity(productVersion: version),
        apps: apps.map { DeviceApp(name: $0.key, accessGroups: $0.value.isEmpty ? [$0.key] : $0.value) }))
  }

  /// A new phone with what another one has of apps and passcode, and the same model and system.
  convenience init(like other: Phone) throws(PhoneError) {
    let identity = try other.withSession { (session) throws(PhoneError) in
      DeviceIdentity(
        productType: session.record.productType, productVersion: session.record.productVersion,
        build: session.record.build)
    }
    try self.init(passcode: other.passcode, DeviceOptions(identity: identity, apps: other.installedApps))
  }

  private convenience init(passcode: String?, _ options: DeviceOptions) throws(PhoneError) {
    let home = try Self.newHome()
    let device = try telling { () throws(VirtualDeviceError) in
      try home.home.create(DeviceName(Self.name), options, passcode: Secret(utf8: passcode ?? ""))
    }
    self.init(home, device, passcode: passcode?.isEmpty == true ? nil : passcode, apps: options.apps)
  }

  /// The phone that a bundled description gives, unlocked, with all its items: `old-phone` and others.
  ///
  /// - Throws: `.noSuchFixture` with a near name or all there are.
  public convenience init(fixture name: String) throws(PhoneError) {
    guard let bytes = BundledFixtures.bytes(named: name) else {
      let near = EditDistance.nearest(to: name, among: BundledFixtures.names)
      throw PhoneError(
        .noSuchFixture, .notFound, "there is no bundled fixture named \"\(HostileText.shown(name))\"",
        near.map { "\"\($0)\" is similar" } ?? "there are \(BundledFixtures.names.joined(separator: ", "))",
        advice: "\(near ?? BundledFixtures.names.first ?? "one of them"), or Phone(fixtureFile:) for one of your own")
    }
    try self.init(decoding: bytes, from: name)
  }

  /// The phone that a description in a file gives (format `device-fixture/1`), unlocked, with all its items.
  ///
  /// - Parameter path: From the directory that the tests run in, unless it is absolute.
  /// - Throws: `.noSuchFixture` where it cannot be read; `.badFixture` with the place of what is wrong.
  public convenience init(fixtureFile path: String) throws(PhoneError) {
    let bytes: Data
    do {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      // One byte more than is accepted, so that the decoder sees that there is more.
      bytes = try file.read(upToCount: DeviceFixture.maximumByteCount + 1) ?? Data()
    } catch {
      throw PhoneError(
        .noSuchFixture, .notFound, "the fixture \(HostileText.shown(path)) cannot be read",
        "looked for in \(FileManager.default.currentDirectoryPath)", advice: "the path of a file, made from #filePath")
    }
    try self.init(decoding: Array(bytes), from: path)
  }

  private convenience init(decoding bytes: [UInt8], from source: String) throws(PhoneError) {
    let fixture = try telling { () throws(VirtualDeviceError) in try DeviceFixture(decoding: bytes, from: source) }
    let home = try Self.newHome()
    let device = try telling { () throws(VirtualDeviceError) in try home.home.create(from: fixture) }
    let passcode = fixture.passcode?.withBytes { String(validating: $0, as: UTF8.self) } ?? nil
    self.init(home, device, passcode: passcode?.isEmpty == true ? nil : passcode, apps: fixture.apps)
  }

  private static func newHome() throws(PhoneError) -> TemporaryDeviceHome {
    try telling { () throws(VirtualDeviceError) in
      try TemporaryDeviceHome(environment: .hurried, inside: KeychainClient.directoryInMemory)
    }
  }
}
