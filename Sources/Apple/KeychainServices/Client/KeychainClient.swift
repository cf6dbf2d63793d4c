public import Basics
public import Foundation
import KeychainCrypto
public import VirtualDevice

/// An app on a virtual device that makes keychain calls, and the actions of the device's user.
///
/// A client may be used from several threads. Calls run one after another.
public final class KeychainClient: Sendable {
  /// The maximum wait for another process that uses the device.
  public static let lockTimeout = Duration.seconds(30)

  /// The app's device.
  public let device: VirtualDevice
  /// The app's name on the device, which determines its access groups.
  public let app: String
  /// The center for the device's notifications. They are posted on the thread that locks or unlocks the device, during
  /// that call. An observer may make keychain calls, but must not wait for keychain calls of another thread.
  public let notificationCenter: NotificationCenter
  /// The folder of a temporary device, which lives as long as the client.
  private let deviceSet: TemporaryDeviceSet?
  let accessLock: DeviceAccessLock
  private let observation: ProtectedDataMonitor.Observation
  private let associatedObjects = Locked<[ObjectIdentifier: any AnyObject & Sendable]>([:])

  /// Creates a client for an app of a device.
  ///
  /// - Parameters:
  ///   - device: The device for the calls.
  ///   - app: The app's name on the device. If the device has no such app, calls end with `errSecMissingEntitlement`.
  ///   - notificationCenter: The center for notifications. The default is a separate one, so that parallel tests do not
  ///     receive each other's notifications.
  public convenience init(
    _ device: VirtualDevice, as app: String, notificationCenter: NotificationCenter = NotificationCenter()
  ) {
    self.init(device, as: app, notificationCenter: notificationCenter, deviceSet: nil)
  }

  /// Creates a client for an app of a device.
  ///
  /// - Parameters:
  ///   - device: The device for the calls.
  ///   - app: An app of the device.
  ///   - notificationCenter: The center for notifications.
  ///   - deviceSet: The folder of a temporary device, which lives as long as the client.
  package init(
    _ device: VirtualDevice, as app: String, notificationCenter: NotificationCenter, deviceSet: TemporaryDeviceSet?
  ) {
    self.device = device
    self.app = app
    self.notificationCenter = notificationCenter
    self.deviceSet = deviceSet
    accessLock = .forDevice(device)
    observation = device.protectedData.observe { event in
      guard let name = event.notificationName else { return }
      notificationCenter.post(name: name, object: nil)
    }
  }

  deinit { device.protectedData.remove(observation) }

  /// The user's reaction to authentication requests. By default, no user is present.
  public var authenticationOutcome: AuthenticationOutcome {
    get { device.user.answer }
    set { device.user.answer = newValue }
  }

  /// Runs the closure with a session. Waits until no other thread of this process uses the device.
  ///
  /// - Parameters:
  ///   - access: Whether the closure only reads the device or may change it.
  ///   - body: The closure, which gets the session. The session must not be used afterwards.
  /// - Returns: The closure's result.
  /// - Throws: `.deviceBusy` if another process uses the device for longer than `lockTimeout`; `.deviceIO` or
  ///   `.deviceDamaged` if the device cannot be used; the errors of the closure.
  public func withSession<Result>(
    _ access: DeviceAccess = .writing, _ body: (DeviceSession) throws(KeyhaulError) -> Result
  ) throws(KeyhaulError) -> Result {
    accessLock.acquire()
    defer { accessLock.release() }
    if let pendingSession = try accessLock.sessionOfPendingLock() {
      // This session stays open for some seconds, but the caller's changes must already be on the disk.
      let value = try body(pendingSession)
      try pendingSession.synchronize()
      return value
    }
    // Only the writing sessions of a temporary device are cached, which saves opening the device for each call.
    guard access == .writing, deviceSet != nil else {
      return try device.withSession(access, verb: "keychain call", wait: Self.lockTimeout, body)
    }
    return try device.withCachedSession(command: "keychain call", wait: Self.lockTimeout, body)
  }

  /// Returns the object of this type that belongs to the client, or creates it.
  public func associatedObject<Object: AnyObject & Sendable>(
    _ type: Object.Type, _ make: () -> Object
  ) -> Object {
    associatedObjects.withLock { associatedObjects in
      if let object = associatedObjects[ObjectIdentifier(type)] as? Object { return object }
      let object = make()
      associatedObjects[ObjectIdentifier(type)] = object
      return object
    }
  }

  /// Removes the object of this type that belongs to the client. The next call of `associatedObject` creates a new one.
  public func removeAssociatedObject<Object: AnyObject & Sendable>(_ type: Object.Type) {
    associatedObjects.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(type)) }
  }
}

/// The four keychain calls, made as the client's app.
extension KeychainClient {
  func add(_ attributes: SecItemQuery) throws(SecItemError) -> SecItemValue? {
    try call { (session) throws(SecItemError) in try session.secItemAdd(attributes, as: app) }
  }

  func copyMatching(_ query: SecItemQuery) throws(SecItemError) -> SecItemValue? {
    try call { (session) throws(SecItemError) in try session.secItemCopyMatching(query, as: app) }
  }

  func update(_ query: SecItemQuery, changes: SecItemQuery) throws(SecItemError) {
    try call { (session) throws(SecItemError) in try session.secItemUpdate(query, changes: changes, as: app) }
  }

  func delete(_ query: SecItemQuery) throws(SecItemError) {
    try call { (session) throws(SecItemError) in try session.secItemDelete(query, as: app) }
  }

  /// Runs a call with exclusive access, because even a search may delete a row that can never be decrypted.
  func call<Value>(
    _ body: (DeviceSession) throws(SecItemError) -> Value
  ) throws(SecItemError) -> Value {
    let outcome: Result<Value, SecItemError>
    do throws(KeyhaulError) {
      outcome = try withSession { session in
        Result { () throws(SecItemError) in try body(session) }
      }
    } catch {
      // For an app, an error of the device means that the keychain is not available.
      throw SecItemError(.notAvailable, error.reason)
    }
    return try outcome.get()
  }
}

extension Notification.Name {
  /// The device is about to lock: UIKit's `UIApplication.protectedDataWillBecomeUnavailableNotification`.
  public static let protectedDataWillBecomeUnavailable = Notification.Name(
    "UIApplicationProtectedDataWillBecomeUnavailable")
  /// The device was unlocked: UIKit's `UIApplication.protectedDataDidBecomeAvailableNotification`.
  public static let protectedDataDidBecomeAvailable = Notification.Name(
    "UIApplicationProtectedDataDidBecomeAvailable")
  /// The app is no longer in the foreground: UIKit's `UIApplication.didEnterBackgroundNotification`.
  public static let applicationDidEnterBackground = Notification.Name("UIApplicationDidEnterBackgroundNotification")
}

extension ProtectedDataEvent {
  /// UIKit's name for the event, or `nil` if it has none.
  var notificationName: Notification.Name? {
    switch self {
    case .willBecomeUnavailable: .protectedDataWillBecomeUnavailable
    case .didBecomeAvailable: .protectedDataDidBecomeAvailable
    case .didBecomeUnavailable: nil
    }
  }
}

/// The actions of the device's user, with the notifications that apps receive.
extension KeychainClient {
  /// Presses the device's side button. Apps are notified immediately that protected data will become unavailable. The
  /// keys are removed ten seconds later, by the device's clock.
  ///
  /// Until the keys are removed, this process has exclusive access to the device.
  ///
  /// - Throws: `.noPasscode` if the device has no passcode; `.deviceBusy` if another process uses the device for longer
  ///   than `lockTimeout`; `.deviceIO` if a file operation fails.
  public func pressSideButton() throws(KeyhaulError) {
    accessLock.acquire()
    defer { accessLock.release() }
    guard try accessLock.sessionOfPendingLock() == nil else { return }
    try accessLock.lockDevice(through: device.openSession(.writing, verb: "lock", wait: Self.lockTimeout))
  }

  /// Presses the side button and waits, by the device's clock, until the keys are removed.
  ///
  /// - Throws: The errors of `pressSideButton`.
  public func lock() throws(KeyhaulError) {
    try pressSideButton()
    guard isLocking else {
      // The keys are already removed. This closes the session, and reports errors.
      accessLock.acquire()
      defer { accessLock.release() }
      return try accessLock.waitForKeyRemoval()
    }
    // Other threads may use the device during the wait.
    device.environment.clock.sleep(DeviceSession.lockGrace)
    accessLock.acquire()
    defer { accessLock.release() }
    try accessLock.waitForKeyRemoval()
  }

  /// Whether the side button was pressed and the keys are still in memory.
  public var isLocking: Bool {
    accessLock.acquire()
    defer { accessLock.release() }
    return accessLock.isDeviceLockPending
  }

  /// Unlocks the device, and notifies apps.
  ///
  /// - Throws: `.wrongPasscode`; `.erased` if it was the last allowed attempt; `.noPasscode` if the device has no passcode
  ///   and the given one is not empty; the errors of `withSession`.
  public func unlock(passcode: String) throws(KeyhaulError) {
    let wasLocking = isLocking
    try withSession { (session) throws(KeyhaulError) in try session.unlock(passcode: Secret(utf8: passcode)) }
    // Pressing the side button announced that the keys will be removed. If they were still in memory when the device
    // was unlocked, the device does not announce that they are available, so this is done here.
    if wasLocking, !isLocking { notificationCenter.post(name: .protectedDataDidBecomeAvailable, object: nil) }
  }

  /// Sets the first passcode.
  ///
  /// - Throws: `.passcodeSet`, `.emptyPasscode`; the errors of `withSession`.
  public func setPasscode(_ passcode: String) throws(KeyhaulError) {
    try withSession { (session) throws(KeyhaulError) in try session.setPasscode(Secret(utf8: passcode)) }
  }

  /// Removes the passcode and, permanently, the items that require one.
  ///
  /// - Returns: The number of deleted items.
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`; `.erased` if it was the last allowed attempt; the errors of
  ///   `withSession`.
  @discardableResult
  public func removePasscode(_ passcode: String) throws(KeyhaulError) -> Int {
    try withSession { (session) throws(KeyhaulError) in
      try session.removePasscode(Secret(utf8: passcode))
    }
  }

  /// Erases all content and settings. The device key stays. When a backup of the device is restored, the device
  /// therefore still counts as the backup's source device.
  ///
  /// - Throws: The errors of `withSession`, such as `.deviceBusy`.
  public func erase() throws(KeyhaulError) {
    try withSession { (session) throws(KeyhaulError) in try session.erase() }
  }

  /// Restarts the device. The app ends, so it is not notified.
  ///
  /// - Throws: The errors of `withSession`, such as `.deviceBusy`.
  public func restart() throws(KeyhaulError) {
    try withSession { (session) throws(KeyhaulError) in try session.restart() }
  }

  /// Moves the app to the background.
  public func enterBackground() {
    notificationCenter.post(name: .applicationDidEnterBackground, object: nil)
  }
}

extension KeychainClient {
  /// The default name of the app on a new device.
  public static let standardApp = "app"

  /// Creates a client for an app on a new device, which is deleted with the last reference to the client. If the system
  /// has a file system in memory, the device is not stored on a disk.
  ///
  /// - Parameters:
  ///   - app: The app's name.
  ///   - accessGroups: The app's access groups. New items get the first. An empty array stands for one group, which has
  ///     the app's name.
  ///   - passcode: The passcode, or an empty string for a device without one, which cannot be locked.
  ///   - options: The other properties of the device.
  ///   - environment: The device's clock, randomness and passcode iterations. By default, long waits are skipped and a
  ///     passcode's key is derived in few iterations.
  ///   - notificationCenter: The center for notifications. The default is a separate one.
  /// - Returns: The client.
  /// - Throws: `.deviceIO`; `.badLimit` if the options let the device erase itself after fewer than 1 wrong passcode.
  public static func onNewDevice(
    app: String = standardApp, accessGroups: [String] = [], passcode: String = "",
    options: DeviceOptions = DeviceOptions(), environment: DeviceEnvironment = .forTests,
    notificationCenter: NotificationCenter = NotificationCenter()
  ) throws(KeyhaulError) -> KeychainClient {
    let deviceSet = try TemporaryDeviceSet(environment: environment, inside: directoryInMemory)
    var options = options
    options.apps.append(DeviceApp(name: app, accessGroups: accessGroups.isEmpty ? [app] : accessGroups))
    let device = try deviceSet.devices.create(DeviceName("phone"), options, passcode: Secret(utf8: passcode))
    return KeychainClient(device, as: app, notificationCenter: notificationCenter, deviceSet: deviceSet)
  }

  /// Creates the default client of the process. Its notifications are posted to the default center.
  static func makeForProcess() throws(KeyhaulError) -> KeychainClient {
    let configuration = DefaultDeviceConfiguration.forThisProcess()
    let client = try onNewDevice(
      app: configuration.app, accessGroups: configuration.accessGroups, passcode: configuration.passcode,
      notificationCenter: .default)
    // Releasing the client deletes its device.
    atexit { DefaultKeychain.use(nil) }
    return client
  }

  /// The folder that Linux keeps in memory, so that file operations do not wait for a disk; `nil` if it does not exist
  /// or is not writable.
  package static var directoryInMemory: String? {
    let path = "/dev/shm"
    return FileManager.default.isWritableFile(atPath: path) ? path : nil
  }
}
