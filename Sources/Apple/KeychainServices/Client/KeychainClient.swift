public import Basics
public import Foundation
import KeychainCrypto
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
    _ access: DeviceAccess = .writing, _ body: (DeviceSession) throws(KeyhaulError) -> Result
  ) throws(KeyhaulError) -> Result {
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

/// The four calls as the client's app.
extension KeychainClient {
  func add(_ attributes: SecItemQuery) throws(SecItemError) -> SecItemValue? {
    try call { (session) throws(SecItemError) in try session.secItemAdd(attributes, as: app) }
  }

  func copyMatching(_ query: SecItemQuery) throws(SecItemError) -> SecItemValue? {
    try call { (session) throws(SecItemError) in try session.secItemCopyMatching(query, as: app) }
  }

  func update(_ query: SecItemQuery, _ changes: SecItemQuery) throws(SecItemError) {
    try call { (session) throws(SecItemError) in try session.secItemUpdate(query, changes: changes, as: app) }
  }

  func delete(_ query: SecItemQuery) throws(SecItemError) {
    try call { (session) throws(SecItemError) in try session.secItemDelete(query, as: app) }
  }

  /// Calls hold the device alone: also a search may find a row that will never open, and removes it.
  func call<Value>(
    _ body: (DeviceSession) throws(SecItemError) -> Value
  ) throws(SecItemError) -> Value {
    let outcome: Result<Value, SecItemError>
    do throws(KeyhaulError) {
      outcome = try withSession { session in
        Result { () throws(SecItemError) in try body(session) }
      }
    } catch {
      // To an app there is no device, only a keychain that can't be had.
      throw SecItemError(.notAvailable, error.reason)
    }
    return try outcome.get()
  }
}

extension Notification.Name {
  /// The device is about to lock. UIKit's `UIApplication.protectedDataWillBecomeUnavailableNotification`.
  public static let protectedDataWillBecomeUnavailable = Notification.Name(
    "UIApplicationProtectedDataWillBecomeUnavailable")
  /// The device was unlocked. UIKit's `UIApplication.protectedDataDidBecomeAvailableNotification`.
  public static let protectedDataDidBecomeAvailable = Notification.Name(
    "UIApplicationProtectedDataDidBecomeAvailable")
  /// The app is no longer in front. UIKit's `UIApplication.didEnterBackgroundNotification`.
  public static let applicationDidEnterBackground = Notification.Name("UIApplicationDidEnterBackgroundNotification")
}

extension ProtectedDataEvent {
  /// As UIKit calls it; `nil` for what it has no name for.
  var notificationName: Notification.Name? {
    switch self {
    case .willBecomeUnavailable: .protectedDataWillBecomeUnavailable
    case .didBecomeAvailable: .protectedDataDidBecomeAvailable
    case .didBecomeUnavailable: nil
    }
  }
}

/// What the person who holds the device does, with the announcements that apps hear of it.
extension KeychainClient {
  /// Presses the device's side button: apps hear that protected data will become unavailable, and it does ten seconds
  /// later by the device's clock.
  ///
  /// Until then this process holds the device for itself.
  /// - Throws: `.noPasscode` where nothing would keep anyone from unlocking it.
  public func pressSideButton() throws(KeyhaulError) {
    gate.enter()
    defer { gate.leave() }
    guard try gate.lockingSession == nil else { return }
    try gate.lock(through: device.openSession(.writing, verb: "lock", wait: Self.lockTimeout))
  }

  /// Presses the side button and waits, by the device's clock, until the keys are gone.
  ///
  /// - Throws: What `pressSideButton` throws.
  public func lock() throws(KeyhaulError) {
    try pressSideButton()
    guard isLocking else {
      gate.enter()
      defer { gate.leave() }
      return try gate.finishLock()
    }
    // Other threads may use the device meanwhile.
    device.environment.clock.sleep(DeviceSession.lockGrace)
    gate.enter()
    defer { gate.leave() }
    try gate.finishLock()
  }

  /// Whether the side button was pressed and the keys are still there.
  public var isLocking: Bool {
    gate.enter()
    defer { gate.leave() }
    return gate.isLocking
  }

  /// Unlocks the device, which apps hear of.
  ///
  /// - Throws: `.wrongPasscode`; `.erased` where it was the last attempt.
  public func unlock(passcode: String) throws(KeyhaulError) {
    let wasLocking = isLocking
    try withSession { (session) throws(KeyhaulError) in try session.unlock(passcode: Secret(utf8: passcode)) }
    // The device tells of keys that come back. These never went, but the app was told that they would.
    if wasLocking, !isLocking { notificationCenter.post(name: .protectedDataDidBecomeAvailable, object: nil) }
  }

  /// Sets the first passcode.
  ///
  /// - Throws: `.passcodeSet`, `.emptyPasscode`.
  public func setPasscode(_ passcode: String) throws(KeyhaulError) {
    try withSession { (session) throws(KeyhaulError) in try session.setPasscode(Secret(utf8: passcode)) }
  }

  /// Removes the passcode, and with it the items that need one, for good.
  ///
  /// - Returns: How many items were destroyed.
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`.
  @discardableResult
  public func removePasscode(_ passcode: String) throws(KeyhaulError) -> Int {
    try withSession { (session) throws(KeyhaulError) in
      try session.removePasscode(Secret(utf8: passcode))
    }
  }

  /// Erases all content and settings. The hardware stays, so that a backup of the device restores to it as to itself.
  public func erase() throws(KeyhaulError) {
    try withSession { (session) throws(KeyhaulError) in try session.erase() }
  }

  /// Turns the device off and on again. The app does not live through it, so nobody is told.
  public func restart() throws(KeyhaulError) {
    try withSession { (session) throws(KeyhaulError) in try session.restart() }
  }

  /// Puts another app in front of this one.
  public func enterBackground() {
    notificationCenter.post(name: .applicationDidEnterBackground, object: nil)
  }
}

extension KeychainClient {
  /// The name of the app on a new device for which none is given.
  public static let standardApp = "app"

  /// An app on a device made for it, which is gone with the last reference to the client. On systems with a file system
  /// in memory it never touches the disk.
  ///
  /// - Parameters:
  ///   - app: The app's name.
  ///   - accessGroups: The groups it may use, the first of which its new items get; its name where there are none.
  ///   - passcode: Empty for a device without one, which can't be locked.
  ///   - options: The identity and the habits of the device, and other apps on it.
  ///   - environment: The device's clock, randomness and passcode rounds; without one nobody waits for a lock, and a
  ///     passcode costs next to nothing.
  ///   - notificationCenter: Where its announcements are posted; a center of its own unless another is given.
  /// - Throws: `.io`.
  public static func onNewDevice(
    app: String = standardApp, accessGroups: [String] = [], passcode: String = "",
    options: DeviceOptions = DeviceOptions(), environment: DeviceEnvironment = .hurried,
    notificationCenter: NotificationCenter = NotificationCenter()
  ) throws(KeyhaulError) -> KeychainClient {
    let home = try TemporaryDeviceHome(environment: environment, inside: directoryInMemory)
    var options = options
    options.apps.append(DeviceApp(name: app, accessGroups: accessGroups.isEmpty ? [app] : accessGroups))
    let device = try home.home.create(DeviceName("phone"), options, passcode: Secret(utf8: passcode))
    return KeychainClient(device, as: app, notificationCenter: notificationCenter, home: home)
  }

  /// The client of a process that chose none. Its announcements reach whoever listens to the default center.
  static func ofTheProcess() throws(KeyhaulError) -> KeychainClient {
    let device = ProcessDevice.ofThisProcess()
    let client = try onNewDevice(
      app: device.app, accessGroups: device.accessGroups, passcode: device.passcode, notificationCenter: .default)
    atexit { DefaultKeychain.use(nil) }
    return client
  }

  /// The directory that Linux keeps in memory, so that file operations do not wait for a disk; `nil` if it does not
  /// exist or is not writable.
  package static var directoryInMemory: String? {
    let path = "/dev/shm"
    return FileManager.default.isWritableFile(atPath: path) ? path : nil
  }
}
