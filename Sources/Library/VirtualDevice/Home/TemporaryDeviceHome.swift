#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A directory of devices that goes with its last reference: for demos and for the tests of apps.
public final class TemporaryDeviceHome: Sendable {
  /// The directory's devices; they go with the last reference to this object.
  public let home: DeviceHome

  /// Makes a directory of its own, empty.
  ///
  /// - Parameters:
  ///   - environment: The time, the randomness and the cost of a passcode for the devices in it.
  ///   - directory: Where to make it; the system's directory for temporary files unless another is named.
  /// - Throws: `.io`.
  public init(environment: DeviceEnvironment = .system, inside directory: String? = nil) throws(VirtualDeviceError) {
    let path = (directory ?? FileManager.default.temporaryDirectory.path) + "/keyhaul-" + UUID().uuidString
    home = DeviceHome(path: path, environment: environment)
    try environment.files.makeDirectory(path)
  }

  deinit {
    KeptSessions.ofThisProcess.letGo(below: home.path)
    try? DeviceFiles().removeTree(home.path)
  }
}
