import Foundation

/// A folder of devices that goes with its last reference: for demos and for the tests of apps.
public final class TemporaryDeviceHome: Sendable {
  public let home: DeviceHome

  /// - Throws: `.io`.
  public init(environment: DeviceEnvironment = .system) throws(VirtualDeviceError) {
    let path = FileManager.default.temporaryDirectory.path + "/keyhaul-" + UUID().uuidString
    home = DeviceHome(path: path, environment: environment)
    try environment.files.makeFolder(path)
  }

  deinit { try? FileDoor().removeTree(home.path) }
}
