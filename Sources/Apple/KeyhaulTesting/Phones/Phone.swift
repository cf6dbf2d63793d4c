import Basics
import Foundation
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
