import Basics
import Foundation
import KeychainCrypto
import KeychainServices
import VirtualDevice

extension Phone {
  private static let name = "phone"

  /// Creates an unlocked phone with an empty keychain.
  ///
  /// - Parameters:
  ///   - passcode: The passcode, or `nil` if the phone has none and cannot be locked.
  ///   - apps: The names of the apps with their access groups. New items are in the first group. An app without groups
  ///     gets one with the app's name. By default, there is one app named `app`.
  ///   - ios: The iOS version, such as `"17.0"`. The default is 18.1.
  /// - Throws: `.badApps`; `.underlying` for an invalid version, or if a file operation fails.
  public convenience init(
    passcode: String? = Phone.standardPasscode, apps: KeyValuePairs<String, [String]> = [:], ios: String? = nil
  ) throws(PhoneError) {
    let apps = apps.isEmpty ? [Self.standardApp: []] : apps
    guard Set(apps.map(\.key)).count == apps.count, apps.allSatisfy({ !$0.key.isEmpty }) else {
      throw PhoneError(
        .badApps, .usage, "the phone cannot have these apps",
        reason: "two names are the same, or one is empty: "
          + apps.map { "\"\(UntrustedText.escaped($0.key))\"" }.joined(separator: ", "),
        advice: "a different name for each app")
    }
    let version = try translatingErrors { () throws(KeyhaulError) in try ios.map(ProductVersion.init) ?? .standard }
    try self.init(
      passcode: passcode,
      DeviceOptions(
        identity: DeviceIdentity(productVersion: version),
        apps: apps.map { DeviceApp(name: $0.key, accessGroups: $0.value.isEmpty ? [$0.key] : $0.value) }))
  }

  /// Creates a phone with the apps, the passcode, the model and the iOS version of another phone.
  convenience init(like other: Phone) throws(PhoneError) {
    let identity = try other.withSession { (session) throws(PhoneError) in
      DeviceIdentity(
        productType: session.record.productType, productVersion: session.record.productVersion,
        build: session.record.build)
    }
    try self.init(passcode: other.passcode, DeviceOptions(identity: identity, apps: other.installedApps))
  }

  private convenience init(passcode: String?, _ options: DeviceOptions) throws(PhoneError) {
    let deviceSet = try Self.newDeviceSet()
    let device = try translatingErrors { () throws(KeyhaulError) in
      try deviceSet.devices.create(DeviceName(Self.name), options, passcode: Secret(utf8: passcode ?? ""))
    }
    self.init(deviceSet, device, passcode: passcode?.isEmpty == true ? nil : passcode, apps: options.apps)
  }

  /// Creates an unlocked phone from a bundled description with all its items, such as `old-phone`.
  ///
  /// - Throws: `.noSuchFixture` with a similar name or all names.
  public convenience init(fixture name: String) throws(PhoneError) {
    guard let bytes = BundledFixtures.bytes(named: name) else {
      let similarName = EditDistance.nearest(to: name, among: BundledFixtures.names)
      throw PhoneError(
        .noSuchFixture, .notFound, "there is no bundled fixture named \"\(UntrustedText.escaped(name))\"",
        reason: similarName.map { "\"\($0)\" is similar" }
          ?? "there are \(BundledFixtures.names.joined(separator: ", "))",
        advice:
          "\(similarName ?? BundledFixtures.names.first ?? "one of them"), or Phone(fixtureFile:) for one of your own")
    }
    try self.init(decoding: bytes, from: name)
  }

  /// Creates an unlocked phone from a description in a file (format `device-fixture/1`) with all its items.
  ///
  /// - Parameter path: The path of the file. A relative path starts at the working directory of the tests.
  /// - Throws: `.noSuchFixture` if it cannot be read; `.badFixture` with the JSON path of the fault.
  public convenience init(fixtureFile path: String) throws(PhoneError) {
    let bytes: Data
    do {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      defer { try? file.close() }
      // One byte more than the limit, so that the decoder detects a file that is too large.
      bytes = try file.read(upToCount: DeviceFixture.maximumByteCount + 1) ?? Data()
    } catch {
      throw PhoneError(
        .noSuchFixture, .notFound, "the fixture \(UntrustedText.escaped(path)) cannot be read",
        reason: "looked for in \(FileManager.default.currentDirectoryPath)", advice: "a file path built from #filePath")
    }
    try self.init(decoding: Array(bytes), from: path)
  }

  private convenience init(decoding bytes: [UInt8], from source: String) throws(PhoneError) {
    let fixture = try translatingErrors { () throws(KeyhaulError) in try DeviceFixture(decoding: bytes, from: source) }
    let deviceSet = try Self.newDeviceSet()
    let device = try translatingErrors { () throws(KeyhaulError) in try deviceSet.devices.create(from: fixture) }
    let passcode = fixture.passcode?.withBytes { String(validating: $0, as: UTF8.self) } ?? nil
    self.init(deviceSet, device, passcode: passcode?.isEmpty == true ? nil : passcode, apps: fixture.apps)
  }

  private static func newDeviceSet() throws(PhoneError) -> TemporaryDeviceSet {
    try translatingErrors { () throws(KeyhaulError) in
      try TemporaryDeviceSet(environment: .forTests, inside: KeychainClient.directoryInMemory)
    }
  }
}
