import Foundation

/// A folder of devices that goes with its last reference: for demos and for the tests of apps.
public final class TemporaryDeviceHome: Sendable {
  /// The folder's devices; they go with the last reference to this object.
  public let home: DeviceHome

  /// Makes a folder of its own, empty.
  ///
  /// - Parameters:
  ///   - environment: The time, the randomness and the cost of a passcode for the devices in it.
  ///   - folder: Where to make it; the system's folder for temporary files unless another is named.
  /// - Throws: `.io`.
  public init(environment: DeviceEnvironment = .system, inside folder: String? = nil) throws(VirtualDeviceError) {
    let path = (folder ?? FileManager.default.temporaryDirectory.path) + "/keyhaul-" + UUID().uuidString
    home = DeviceHome(path: path, environment: environment)
    try environment.files.makeFolder(path)
  }

  deinit { try? DeviceFiles().removeTree(home.path) }
}
