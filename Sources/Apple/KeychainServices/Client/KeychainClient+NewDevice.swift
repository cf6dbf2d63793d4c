import Basics
public import Foundation
import KeychainCrypto
public import VirtualDevice

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
  ) throws(VirtualDeviceError) -> KeychainClient {
    let home = try TemporaryDeviceHome(environment: environment, inside: directoryInMemory)
    var options = options
    options.apps.append(DeviceApp(name: app, accessGroups: accessGroups.isEmpty ? [app] : accessGroups))
    let device = try home.home.create(DeviceName("phone"), options, passcode: Secret(utf8: passcode))
    return KeychainClient(device, as: app, notificationCenter: notificationCenter, home: home)
  }

  /// The client of a process that chose none. Its announcements reach whoever listens to the default center.
  static func ofTheProcess() throws(VirtualDeviceError) -> KeychainClient {
    let device = ProcessDevice.ofThisProcess()
    let client = try onNewDevice(
      app: device.app, accessGroups: device.accessGroups, passcode: device.passcode, notificationCenter: .default)
    atexit { DefaultKeychain.use(nil) }
    return client
  }

  /// Linux keeps this directory in memory, where nothing waits for a disk; `nil` where it is not there.
  package static var directoryInMemory: String? {
    let path = "/dev/shm"
    return FileManager.default.isWritableFile(atPath: path) ? path : nil
  }
}
