import Basics
import Foundation
public import KeychainServices
import VirtualDevice

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
  let device: VirtualDevice
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

  /// The phone's passcode; `nil` where none is set.
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
        try telling { () throws(VirtualDeviceError) in try session.itemCount }
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
    let outcome = try telling { () throws(VirtualDeviceError) in
      try owner.withSession(access) { session in Result { () throws(PhoneError) in try body(session) } }
    }
    return try outcome.get()
  }
}
