import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
public import KeychainServices
package import VirtualDevice

/// A virtual iPhone for the length of a test: made unlocked, gone with its last reference.
///
/// Phones know nothing of each other, so that tests may run side by side. On systems with a file system in memory no
/// phone touches the disk; nobody waits for a lock, and a passcode costs next to nothing.
public final class Phone: Sendable {
  /// The passcode of a phone that was given no other.
  public static let standardPasscode = "2468"
  /// The app of a phone that was given no other.
  public static let standardApp = "app"

  let home: TemporaryDeviceHome
  package let device: VirtualDevice
  let installedApps: [DeviceApp]
  private let knownPasscode: Locked<String?>
  private let clients = Locked<[String: KeychainClient]>([:])

  init(
    _ home: TemporaryDeviceHome, _ device: VirtualDevice, passcode: String?, apps: [DeviceApp]
  ) {
    self.home = home
    self.device = device
    installedApps = apps
    knownPasscode = Locked(passcode)
  }

  /// The names of the phone's apps, as `run(as:)` takes them.
  public var apps: [String] { installedApps.map(\.name) }

  /// The phone's passcode; `nil` if none is set.
  public internal(set) var passcode: String? {
    get { knownPasscode.withLock { $0 } }
    set { knownPasscode.withLock { $0 = newValue } }
  }

  /// The number of items in the phone's keychain, whoever's they are; marks of deleted ones apart.
  ///
  /// - Throws: `.underlying` where the keychain cannot be read.
  public var itemCount: Int {
    get throws(PhoneError) {
      try withSession { (session) throws(PhoneError) in
        try telling { () throws(KeyhaulError) in try session.itemCount }
      }
    }
  }

  /// An app of the phone as keychain calls act for it: for `DefaultKeychain.using` and what else it offers. The phone
  /// is there as long as the client is.
  ///
  /// - Parameter app: One of `apps`; may be left out where there is one alone.
  /// - Throws: `.noSuchApp`, `.appNotNamed`.
  public func client(as app: String? = nil) throws(PhoneError) -> KeychainClient { knownClient(try chosen(app)) }

  /// The phone without regard to its apps.
  var owner: KeychainClient { knownClient(installedApps.first?.name ?? Self.standardApp) }

  private func knownClient(_ app: String) -> KeychainClient {
    clients.withLock { clients in
      if let client = clients[app] { return client }
      let client = KeychainClient(device, as: app, notificationCenter: NotificationCenter(), home: home)
      clients[app] = client
      return client
    }
  }

  /// Holds the phone for the length of the closure, after the other threads that use it.
  func withSession<Value>(
    _ access: DeviceAccess = .reading, _ body: (DeviceSession) throws(PhoneError) -> Value
  ) throws(PhoneError) -> Value {
    let outcome = try telling { () throws(KeyhaulError) in
      try owner.withSession(access) { session in Result { () throws(PhoneError) in try body(session) } }
    }
    return try outcome.get()
  }
}

/// What the person who holds the phone does with it.
extension Phone {
  /// Locks the phone and lets ten seconds pass, after which the keys of items "when unlocked" are gone.
  ///
  /// - Throws: `.noPasscode` where nothing would keep anyone from unlocking it.
  public func lock() throws(PhoneError) {
    try telling { () throws(KeyhaulError) in try owner.lock() }
  }

  /// Unlocks the phone with its passcode; the first time after a restart too.
  public func unlock() throws(PhoneError) { try unlock(passcode: passcode ?? "") }

  /// Unlocks the phone.
  ///
  /// - Throws: `.wrongPasscode`, `.noPasscode`.
  public func unlock(passcode: String) throws(PhoneError) {
    try telling { () throws(KeyhaulError) in try owner.unlock(passcode: passcode) }
  }

  /// Turns the phone off and on again. Until its first unlock, keychain calls reach items "always" alone.
  public func restart() throws(PhoneError) {
    try telling { () throws(KeyhaulError) in try owner.restart() }
  }

  /// Sets the phone's first passcode.
  ///
  /// - Throws: `.underlying` where it has one, or for an empty one.
  public func setPasscode(_ new: String) throws(PhoneError) {
    try telling { () throws(KeyhaulError) in try owner.setPasscode(new) }
    passcode = new
  }

  /// Removes the phone's passcode, and with it the items that need one, for good.
  ///
  /// - Throws: `.noPasscode`, `.locked`.
  public func removePasscode() throws(PhoneError) {
    try telling { () throws(KeyhaulError) in _ = try owner.removePasscode(passcode ?? "") }
    passcode = nil
  }

  /// Erases all content and settings; the passcode is among them. The hardware stays, so that the phone remains the
  /// same one to a backup of it.
  public func erase() throws(PhoneError) {
    try telling { () throws(KeyhaulError) in try owner.erase() }
    passcode = nil
  }
}

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
        "two names are the same, or one is empty: "
          + apps.map { "\"\(UntrustedText.escaped($0.key))\"" }.joined(separator: ", "),
        advice: "a different name for each app")
    }
    let version = try telling { () throws(KeyhaulError) in try ios.map(ProductVersion.init) ?? .standard }
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
    let device = try telling { () throws(KeyhaulError) in
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
        .noSuchFixture, .notFound, "there is no bundled fixture named \"\(UntrustedText.escaped(name))\"",
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
        .noSuchFixture, .notFound, "the fixture \(UntrustedText.escaped(path)) cannot be read",
        "looked for in \(FileManager.default.currentDirectoryPath)", advice: "a file path built from #filePath")
    }
    try self.init(decoding: Array(bytes), from: path)
  }

  private convenience init(decoding bytes: [UInt8], from source: String) throws(PhoneError) {
    let fixture = try telling { () throws(KeyhaulError) in try DeviceFixture(decoding: bytes, from: source) }
    let home = try Self.newHome()
    let device = try telling { () throws(KeyhaulError) in try home.home.create(from: fixture) }
    let passcode = fixture.passcode?.withBytes { String(validating: $0, as: UTF8.self) } ?? nil
    self.init(home, device, passcode: passcode?.isEmpty == true ? nil : passcode, apps: fixture.apps)
  }

  private static func newHome() throws(PhoneError) -> TemporaryDeviceHome {
    try telling { () throws(KeyhaulError) in
      try TemporaryDeviceHome(environment: .hurried, inside: KeychainClient.directoryInMemory)
    }
  }
}

extension Phone {
  /// What the person at the phone does when an item asks for them.
  public enum Person: Sendable, Hashable, CaseIterable {
    /// Nobody is there, or the dialog cannot be shown.
    case isAway
    /// Gives what is asked for.
    case allows
    /// Gives a wrong finger, face or passcode until the system gives up.
    case fails
    /// Dismisses the dialog.
    case cancels
  }

  /// The person at the phone, who is away unless a test says otherwise.
  public var person: Person {
    get {
      switch device.person.answer {
      case .unavailable: .isAway
      case .allow: .allows
      case .deny: .fails
      case .cancel: .cancels
      }
    }
    set {
      device.person.answer =
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
    if inWholeProcess { try Self.beginInWholeProcess(client) }
    defer { if inWholeProcess { DefaultKeychain.endInWholeProcess() } }
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
    if inWholeProcess { try Self.beginInWholeProcess(client) }
    defer { if inWholeProcess { DefaultKeychain.endInWholeProcess() } }
    return try await DefaultKeychain.using(client, isolation: isolation, body)
  }

  private static func beginInWholeProcess(_ client: KeychainClient) throws(PhoneError) {
    guard DefaultKeychain.beginInWholeProcess(client) else {
      throw PhoneError(
        .processInUse, .busy, "another phone is running in the whole process",
        "a keychain call on a queue or in a detached task can use only one phone",
        advice: "put such tests into one @Suite(.serialized), or wrap the queue's code in "
          + "DefaultKeychain.using(phone.client())")
    }
  }

  /// The app that a test means.
  func chosen(_ app: String?) throws(PhoneError) -> String {
    let list = apps.map { "\"\(UntrustedText.escaped($0))\"" }.joined(separator: ", ")
    guard let app else {
      if apps.count == 1 { return apps[0] }
      throw PhoneError(
        .appNotNamed, .usage, "no app was named", apps.isEmpty ? "the phone has none" : "the phone has \(list)",
        advice: apps.isEmpty ? "list \"apps\" in the fixture, with their access groups" : "run(as:) with one of them")
    }
    guard apps.contains(app) else {
      let near = EditDistance.nearest(to: app, among: apps)
      throw PhoneError(
        .noSuchApp, .notFound, "the phone has no app \"\(UntrustedText.escaped(app))\"",
        apps.isEmpty ? "it has none" : "it has \(list)",
        advice: near.map { "\"\($0)\"" } ?? "Phone(apps:) with the app and its access groups")
    }
    return app
  }
}
