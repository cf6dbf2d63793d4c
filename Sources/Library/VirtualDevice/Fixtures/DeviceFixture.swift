package import Basics
import CKeyhaul
import KeychainCrypto
public import KeychainFormats

/// A description of a device and its keychain (format `device-fixture/1`), from which the same device can be created
/// repeatedly.
///
/// The passcode and the secrets in it are unencrypted. Do not use a fixture for real data.
public struct DeviceFixture: Sendable {
  /// The identifier of the format, as in a fixture and its schema.
  package static let format = "device-fixture/1"
  /// The largest accepted size of a fixture, in bytes.
  package static let maximumByteCount = 512 << 20

  /// An item and its access constraints.
  public struct Item: Sendable {
    /// The item with its protection class, its secret and, for a key in hardware, its token identifier.
    public var item: KeychainItem
    /// The authentication requirements; empty if the item needs no authentication.
    package var accessConstraints: [AccessConstraint]
  }

  /// The seed for the identifiers and keys of a device with published keys (`Keys.published`), together with the
  /// device's name.
  package var seed: Int64
  /// The date when the device was created, and the default date of its items.
  package var created: KeychainDate
  /// The default name of a device created from the fixture.
  public var name: DeviceName
  /// The model and the iOS version.
  package var identity: DeviceIdentity
  /// The passcode as UTF-8, or `nil` if the device has none.
  package var passcode: SensitiveBytes?
  /// The apps and their access groups.
  package var apps: [DeviceApp]
  /// The items in the order in which they are added.
  public var items: [Item]
}

extension DeviceFixture {
  /// The source of the hardware UID, the class keys and the identifiers of a device that is created from a fixture.
  public enum Keys: Sendable, Hashable {
    /// Random keys, known only to the device.
    case random
    /// Keys derived from the fixture's seed and the device's name. Anyone can compute them, so a backup's device-bound
    /// items can be decrypted wherever a device of the same name is created.
    case published
  }

  /// The seed of a fixture that does not specify one.
  package static let standardSeed: Int64 = 0

  static func publishedRandomness(seed: Int64, name: String) -> SeededRandomSource {
    SeededRandomSource(seed: "\(format) \(seed) \(name)")
  }

  /// Returns the hardware UID of a device with `Keys.published` for a seed and a name. The identifier and the serial
  /// number are generated before the UID, in the same order as in `VirtualDevice.initialize`.
  static func publishedHardware(seed: Int64, name: String) throws(DataProtectionError) -> HardwareUID {
    let random = publishedRandomness(seed: seed, name: name)
    _ = try DeviceIdentity.randomUDID(random)
    _ = try DeviceIdentity.randomSerialNumber(random)
    return try HardwareUID(from: random)
  }
}

extension DeviceSession {
  /// Returns whether anyone can compute the device key, so that it does not protect device-bound items.
  ///
  /// A device with published keys records this. For older devices, the UID is compared with the UIDs that result
  /// from known seeds and the device's name.
  ///
  /// - Parameter seeds: The seeds of published fixtures, in addition to `DeviceFixture.standardSeed`.
  /// - Throws: `.underlying` if the cryptographic library fails.
  package func isDeviceKeyPublished(knownSeeds seeds: some Sequence<Int64> = []) throws(KeyhaulError) -> Bool {
    if record.hasPublishedDeviceKey { return true }
    return try translatingErrors(about: name) { () throws(DataProtectionError) in
      let uid = hardware.withBytes { Secret(copying: $0) }
      for seed in [DeviceFixture.standardSeed] + seeds {
        // The two names differ if the device's folder was renamed.
        for candidate in name == record.name ? [name] : [name, record.name] {
          let publishedUID = try DeviceFixture.publishedHardware(seed: seed, name: candidate)
          if uid.matches(publishedUID.withBytes { Secret(copying: $0) }) { return true }
        }
      }
      return false
    }
  }
}

/// The fixtures in the program itself (format `device-fixture/1`). The demo, and a device that is created from one of
/// them, need no file.
package enum BundledFixtures {
  /// The sorted names of all bundled fixtures.
  package static let names: [String] = fixtures.keys.sorted()

  /// The seed of all bundled fixtures. Together with a device's name, it determines the published keys.
  package static let seed: Int64 = 20_261_120

  /// Returns the JSON document of a fixture, or `nil` if there is none with this name.
  package static func bytes(named name: String) -> [UInt8]? { fixtures[name] }

  private static let fixtures: [String: [UInt8]] = {
    var count = 0
    guard let firstFixture = keyhaul_fixtures(&count) else { return [:] }
    let documents = UnsafeBufferPointer(start: firstFixture, count: count).map { fixture in
      (String(cString: fixture.name), Array(UnsafeBufferPointer(start: fixture.bytes, count: fixture.size)))
    }
    return Dictionary(documents, uniquingKeysWith: { first, _ in first })
  }()
}
