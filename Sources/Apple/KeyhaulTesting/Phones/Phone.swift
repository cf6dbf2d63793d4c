import Basics
import Foundation
public import KeychainServices
package import VirtualDevice

/// A virtual iPhone for a test: unlocked at first, and deleted with its last reference.
///
/// Phones are independent, so tests can run in parallel. If the system has a file system in memory, a phone is not
/// stored on a disk. Locking takes no time, and a passcode's key is derived in few iterations.
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

  /// Returns a client for an app of the phone, for example for `DefaultKeychain.using`. The client keeps the phone
  /// alive.
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

  /// Runs the closure with a session. Waits until no other thread uses the phone.
  func withSession<Value>(
    _ access: DeviceAccess = .reading, _ body: (DeviceSession) throws(PhoneError) -> Value
  ) throws(PhoneError) -> Value {
    let outcome = try translatingErrors { () throws(KeyhaulError) in
      try owner.withSession(access) { session in Result { () throws(PhoneError) in try body(session) } }
    }
    return try outcome.get()
  }
}

extension Phone {
  /// Runs an app's code on the phone. Its keychain calls use this phone's keychain.
  ///
  /// This applies to the closure and to its child tasks. Code on a queue, on another thread or in a detached task uses
  /// the phone only with `inWholeProcess`, or inside `DefaultKeychain.using(client())`.
  ///
  /// - Parameters:
  ///   - app: One of `apps`. The keychain calls have its access groups. May be `nil` if the phone has only one app.
  ///   - inWholeProcess: Whether the calls of the whole process use this phone while the closure runs. Calls inside
  ///     `run` of a different phone still use that phone. The closure must wait for the work that it starts.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` with the code `.noSuchApp`, `.appNotNamed` or `.processInUse`, or the closure's error.
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
  ///   - app: One of `apps`. The keychain calls have its access groups. May be `nil` if the phone has only one app.
  ///   - inWholeProcess: Whether the calls of the whole process use this phone while the closure runs. Calls inside
  ///     `run` of a different phone still use that phone. The closure must wait for the work that it starts.
  ///   - isolation: The caller's actor, on which the code runs.
  ///   - body: The app's code.
  /// - Throws: `PhoneError` with the code `.noSuchApp`, `.appNotNamed` or `.processInUse`, or the closure's error.
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
        reason: "a keychain call on a queue or in a detached task can use only one phone",
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
        .appNotNamed, .usage, "no app was named",
        reason: apps.isEmpty ? "the phone has none" : "the phone has \(appNames)",
        advice: apps.isEmpty ? "list \"apps\" in the fixture, with their access groups" : "run(as:) with one of them")
    }
    guard apps.contains(app) else {
      let similarName = EditDistance.nearest(to: app, among: apps)
      throw PhoneError(
        .noSuchApp, .notFound, "the phone has no app \"\(UntrustedText.escaped(app))\"",
        reason: apps.isEmpty ? "it has none" : "it has \(appNames)",
        advice: similarName.map { "\"\($0)\"" } ?? "Phone(apps:) with the app and its access groups")
    }
    return app
  }
}
