import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
public import KeychainServices
package import VirtualDevice

/// A virtual iPhone for a test: unlocked at first, and deleted with its last reference.
///
/// Phones are independent, so tests can run in parallel. If the system has a file system in memory, a phone is not
/// stored on a disk. Locks need no wait, and a passcode is cheap.
public final class Phone: Sendable {
  /// The default passcode.
  public static let standardPasscode = "2468"
  /// The default app.
  public static let standardApp = "app"

  let deviceSet: TemporaryDeviceSet
  package let device: VirtualDevice
  let installedApps: [DeviceApp]
  private let knownPasscode: Locked<String?>
  private let clients = Locked<[String: KeychainClient]>([:])

  init(
    _ deviceSet: TemporaryDeviceSet, _ device: VirtualDevice, passcode: String?, apps: [DeviceApp]
  ) {
    self.deviceSet = deviceSet
    self.device = device
    installedApps = apps
    knownPasscode = Locked(passcode)
  }

  /// The names of the phone's apps, for `run(as:)`.
  public var apps: [String] { installedApps.map(\.name) }

  /// The phone's passcode, or `nil` if none is set.
  public internal(set) var passcode: String? {
    get { knownPasscode.withLock { $0 } }
    set { knownPasscode.withLock { $0 = newValue } }
  }

  /// The number of items in the phone's keychain, of all apps and without tombstones.
  ///
  /// - Throws: `.underlying` if the keychain cannot be read.
  public var itemCount: Int {
    get throws(PhoneError) {
      try withSession { (session) throws(PhoneError) in
        try translatingErrors { () throws(KeyhaulError) in try session.itemCount }
      }
    }
  }

  /// Returns a client for an app of the phone, for `DefaultKeychain.using` and other uses. The phone exists as long as
  /// the client.
  ///
  /// - Parameter app: One of `apps`. May be omitted if there is only one.
  /// - Throws: `.noSuchApp`, `.appNotNamed`.
  public func client(as app: String? = nil) throws(PhoneError) -> KeychainClient { cachedClient(try resolvedApp(app)) }

  /// A client for actions that do not depend on an app.
  var owner: KeychainClient { cachedClient(installedApps.first?.name ?? Self.standardApp) }

  private func cachedClient(_ app: String) -> KeychainClient {
    clients.withLock { clients in
      if let client = clients[app] { return client }
      let client = KeychainClient(device, as: app, notificationCenter: NotificationCenter(), deviceSet: deviceSet)
      clients[app] = client
      return client
    }
  }

  /// Runs the closure with a session, after other threads that use the phone.
  func withSession<Value>(
    _ access: DeviceAccess = .reading, _ body: (DeviceSession) throws(PhoneError) -> Value
  ) throws(PhoneError) -> Value {
    let outcome = try translatingErrors { () throws(KeyhaulError) in
      try owner.withSession(access) { session in Result { () throws(PhoneError) in try body(session) } }
    }
    return try outcome.get()
  }
}

/// The actions of the phone's user.
extension Phone {
  /// Locks the phone and waits ten seconds by its clock. Items of the class "when unlocked" are then not accessible.
  ///
  /// - Throws: `.noPasscode` if the phone has no passcode.
  public func lock() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.lock() }
  }

  /// Unlocks the phone with its passcode, also after a restart. A phone without a passcode is always unlocked.
  ///
  /// - Throws: `.wrongPasscode` if a client has changed the passcode; `.underlying` if a file operation fails.
  public func unlock() throws(PhoneError) { try unlock(passcode: passcode ?? "") }

  /// Unlocks the phone with a passcode.
  ///
  /// - Throws: `.wrongPasscode`; `.noPasscode` if the phone has no passcode and the given one is not empty; `.underlying`
  ///   if a file operation fails.
  public func unlock(passcode: String) throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.unlock(passcode: passcode) }
  }

  /// Restarts the phone. If it has a passcode, keychain calls can access only items of the class "always" until it is
  /// unlocked. Otherwise, it is unlocked afterwards.
  ///
  /// - Throws: `.underlying` if a file operation fails.
  public func restart() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.restart() }
  }

  /// Sets the phone's first passcode.
  ///
  /// - Throws: `.underlying` if it already has one or the passcode is empty.
  public func setPasscode(_ newPasscode: String) throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.setPasscode(newPasscode) }
    passcode = newPasscode
  }

  /// Removes the phone's passcode and, permanently, the items that require one.
  ///
  /// - Throws: `.noPasscode`; `.locked`; `.wrongPasscode` if a client has changed the passcode; `.underlying` if a file
  ///   operation fails.
  public func removePasscode() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in _ = try owner.removePasscode(passcode ?? "") }
    passcode = nil
  }

  /// Erases all content and settings, including the passcode. The hardware key stays, so the phone is still the same
  /// for its backups.
  ///
  /// - Throws: `.underlying` if a file operation fails.
  public func erase() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.erase() }
    passcode = nil
  }
}

extension Phone {
  private static let name = "phone"

  /// Creates an unlocked phone with an empty keychain.
  ///
  /// - Parameters:
  ///   - passcode: The passcode, or `nil` if the phone has none and cannot be locked.
  ///   - apps: The names of the apps with their access groups. New items are in the first group. If an app has none,
  ///     its name is used. By default, there is one app named `app`.
  ///   - ios: The iOS version, such as `"17.0"`. The default is 18.1.
  /// - Throws: `.badApps`; `.underlying` for an invalid version, or if a file operation fails.
  public convenience init(
    passcode: String? = Phone.standardPasscode, apps: KeyValuePairs<String, [String]> = [:], ios: String? = nil
  ) throws(PhoneError) {
    let apps = apps.isEmpty ? [Self.standardApp: []] : apps
    guard Set(apps.map(\.key)).count == apps.count, apps.allSatisfy({ !$0.key.isEmpty }) else {
      throw PhoneError(
        .badApps, .usage, "the phone cannot have these apps",
        "two names are the same, or one is empty: "
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

  /// Creates a phone with the apps, the passcode, the model and the iOS version of another one.
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
        similarName.map { "\"\($0)\" is similar" } ?? "there are \(BundledFixtures.names.joined(separator: ", "))",
        advice:
          "\(similarName ?? BundledFixtures.names.first ?? "one of them"), or Phone(fixtureFile:) for one of your own")
    }
    try self.init(decoding: bytes, from: name)
  }

  /// Creates an unlocked phone from a description in a file (format `device-fixture/1`) with all its items.
  ///
  /// - Parameter path: The path of the file. A relative path starts at the working directory of the tests.
  /// - Throws: `.noSuchFixture` if it cannot be read; `.badFixture` with the path of the error.
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
        "looked for in \(FileManager.default.currentDirectoryPath)", advice: "a file path built from #filePath")
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

extension Phone {
  /// The reaction of the phone's user to an authentication request.
  public enum User: Sendable, Hashable, CaseIterable {
    /// No user is present, or the dialog cannot be shown.
    case isAway
    /// Authenticates.
    case allows
    /// Presents a wrong finger, face or passcode until the system gives up.
    case fails
    /// Dismisses the dialog.
    case cancels
  }

  /// The reaction of the phone's user, who is away by default.
  public var user: User {
    get {
      switch device.user.answer {
      case .unavailable: .isAway
      case .allow: .allows
      case .deny: .fails
      case .cancel: .cancels
      }
    }
    set {
      device.user.answer =
        switch newValue {
        case .isAway: .unavailable
        case .allows: .allow
        case .fails: .deny
        case .cancels: .cancel
        }
    }
  }
}

extension Phone {
  /// Runs an app's code on the phone. Its keychain calls use this phone's keychain.
  ///
  /// This applies to the closure and to its child tasks. Code on a queue, on another thread or in a detached task uses
  /// the phone only with `inWholeProcess`, or inside `DefaultKeychain.using(client())`.
  ///
  /// - Parameters:
  ///   - app: One of `apps`, whose access groups the calls have. `nil` if the phone has only one app.
  ///   - inWholeProcess: Whether the calls of the whole process use this phone while the closure runs. Calls of other
  ///     phones' `run` still use those phones. The closure has to wait for the work that it starts.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` of code `.noSuchApp`, `.appNotNamed` or `.processInUse`, and what the closure throws.
  @discardableResult
  public func run<Result>(
    as app: String? = nil, inWholeProcess: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    let client = try client(as: app)
    if inWholeProcess { try Self.installProcessOverride(client) }
    defer { if inWholeProcess { DefaultKeychain.removeProcessOverride() } }
    return try DefaultKeychain.using(client, body)
  }

  /// Runs an app's asynchronous code on the phone. Its keychain calls use this phone's keychain.
  ///
  /// This applies to the closure and to its child tasks. Code on a queue, on another thread or in a detached task uses
  /// the phone only with `inWholeProcess`, or inside `DefaultKeychain.using(client())`.
  ///
  /// - Parameters:
  ///   - app: One of `apps`, whose access groups the calls have. `nil` if the phone has only one app.
  ///   - inWholeProcess: Whether the calls of the whole process use this phone while the closure runs. Calls of other
  ///     phones' `run` still use those phones. The closure has to wait for the work that it starts.
  ///   - isolation: The caller's actor, on which the code runs.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` of code `.noSuchApp`, `.appNotNamed` or `.processInUse`, and what the closure throws.
  @discardableResult
  public func run<Result>(
    as app: String? = nil, inWholeProcess: Bool = false, isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws -> Result
  ) async throws -> Result {
    let client = try client(as: app)
    if inWholeProcess { try Self.installProcessOverride(client) }
    defer { if inWholeProcess { DefaultKeychain.removeProcessOverride() } }
    return try await DefaultKeychain.using(client, isolation: isolation, body)
  }

  private static func installProcessOverride(_ client: KeychainClient) throws(PhoneError) {
    guard DefaultKeychain.installProcessOverride(client) else {
      throw PhoneError(
        .processInUse, .busy, "another phone is running in the whole process",
        "a keychain call on a queue or in a detached task can use only one phone",
        advice: "put such tests into one @Suite(.serialized), or wrap the queue's code in "
          + "DefaultKeychain.using(phone.client())")
    }
  }

  /// Returns the name of the selected app.
  func resolvedApp(_ app: String?) throws(PhoneError) -> String {
    let appNames = apps.map { "\"\(UntrustedText.escaped($0))\"" }.joined(separator: ", ")
    guard let app else {
      if apps.count == 1 { return apps[0] }
      throw PhoneError(
        .appNotNamed, .usage, "no app was named", apps.isEmpty ? "the phone has none" : "the phone has \(appNames)",
        advice: apps.isEmpty ? "list \"apps\" in the fixture, with their access groups" : "run(as:) with one of them")
    }
    guard apps.contains(app) else {
      let similarName = EditDistance.nearest(to: app, among: apps)
      throw PhoneError(
        .noSuchApp, .notFound, "the phone has no app \"\(UntrustedText.escaped(app))\"",
        apps.isEmpty ? "it has none" : "it has \(appNames)",
        advice: similarName.map { "\"\($0)\"" } ?? "Phone(apps:) with the app and its access groups")
    }
    return app
  }
}
