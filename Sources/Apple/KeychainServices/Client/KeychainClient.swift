import Basics
public import Foundation
public import VirtualDevice

/// An app on a virtual device, as keychain calls act for it, and the device in its user's hand.
///
/// May be used by several threads; their calls come one after another.
public final class KeychainClient: Sendable {
  /// How long a call waits for another process that holds the device.
  public static let lockTimeout = Duration.seconds(30)

  /// The device that the app is on.
  public let device: VirtualDevice
  /// The app's name on the device, which gives its access groups.
  public let app: String
  /// Where the device's announcements are posted, on the thread that locks or unlocks it and while that holds the device:
  /// an observer may make calls, but not wait for another thread's.
  public let notificationCenter: NotificationCenter
  /// Keeps the directory of a temporary device for as long as somebody speaks to it.
  private let home: TemporaryDeviceHome?
  let gate: DeviceGate
  private let observation: ProtectedDataMonitor.Observation
  private let companions = Locked<[ObjectIdentifier: any AnyObject & Sendable]>([:])

  /// Creates a client that speaks for an app of a device.
  ///
  /// - Parameters:
  ///   - device: The device that calls shall reach.
  ///   - app: One of the device's apps; calls of an app that it does not have end with `errSecMissingEntitlement`.
  ///   - notificationCenter: A center of its own unless another is given, so that tests side by side do not hear each
  ///     other's devices.
  public convenience init(
    _ device: VirtualDevice, as app: String, notificationCenter: NotificationCenter = NotificationCenter()
  ) {
    self.init(device, as: app, notificationCenter: notificationCenter, home: nil)
  }

  /// - Parameter home: Where a temporary device is, which then lives as long as the client.
  package init(
    _ device: VirtualDevice, as app: String, notificationCenter: NotificationCenter, home: TemporaryDeviceHome?
  ) {
    self.device = device
    self.app = app
    self.notificationCenter = notificationCenter
    self.home = home
    gate = .of(device)
    observation = device.protectedData.observe { event in
      guard let name = event.notificationName else { return }
      notificationCenter.post(name: name, object: nil)
    }
  }

  deinit { device.protectedData.remove(observation) }

  /// What the person at the device does when an app asks for them. Nobody is there unless told otherwise.
  public var authenticationOutcome: AuthenticationOutcome {
    get { device.person.answer }
    set { device.person.answer = newValue }
  }

  /// Holds the device for the length of the closure, after the other threads of this process that use it.
  ///
  /// - Throws: `.busy` where another process holds the device for longer than `lockTimeout`, and what the closure throws.
  public func withSession<Result>(
    _ access: DeviceAccess = .writing, _ body: (DeviceSession) throws(VirtualDeviceError) -> Result
  ) throws(VirtualDeviceError) -> Result {
    gate.enter()
    defer { gate.leave() }
    if let locking = try gate.lockingSession {
      // Kept for some seconds more: whoever called does not wait for its end to be safe from a power cut.
      let value = try body(locking)
      try locking.synchronize()
      return value
    }
    // A device that is gone with its client opens once, not at each call.
    guard access == .writing, home != nil else {
      return try device.withSession(access, verb: "keychain call", wait: Self.lockTimeout, body)
    }
    return try device.withKeptSession(verb: "keychain call", wait: Self.lockTimeout, body)
  }

  /// The one object of this type that goes with the client, made where there is none yet.
  public func companion<Companion: AnyObject & Sendable>(
    _ type: Companion.Type, _ make: () -> Companion
  ) -> Companion {
    companions.withLock { companions in
      if let companion = companions[ObjectIdentifier(type)] as? Companion { return companion }
      let companion = make()
      companions[ObjectIdentifier(type)] = companion
      return companion
    }
  }

  /// Lets go of that object; the next call of `companion` makes another one.
  public func dropCompanion<Companion: AnyObject & Sendable>(_ type: Companion.Type) {
    companions.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(type)) }
  }
}
