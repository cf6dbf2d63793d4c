package import Basics
import KeychainCrypto
import KeychainFormats

extension DeviceFixture {
  /// The source of the hardware key, the class keys and the identifiers of a device that is created from a fixture.
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

  /// Returns the hardware key of a device with `Keys.published` for a seed and a name. The identifier and the serial
  /// number are generated before it, in the same order as in `VirtualDevice.initialize`.
  static func publishedHardware(seed: Int64, name: String) throws(DataProtectionError) -> HardwareUID {
    let random = publishedRandomness(seed: seed, name: name)
    _ = try DeviceIdentity.randomUDID(random)
    _ = try DeviceIdentity.randomSerialNumber(random)
    return try HardwareUID(from: random)
  }
}

extension DeviceSession {
  /// Returns whether anyone can compute the device's hardware key, so that device-bound items are not protected by it.
  ///
  /// A device with published keys records this. For older devices, the key is compared with the keys of known seeds and
  /// the device's name.
  ///
  /// - Parameter seeds: The seeds of published fixtures, in addition to `DeviceFixture.standardSeed`.
  /// - Throws: `.underlying` if the cryptographic library fails.
  package func isHardwareKeyPublished(knownSeeds seeds: some Sequence<Int64> = []) throws(KeyhaulError) -> Bool {
    if record.hasPublishedHardwareKey { return true }
    return try translatingErrors(about: name) { () throws(DataProtectionError) in
      let deviceHardware = hardware.withBytes { Secret(copying: $0) }
      for seed in [DeviceFixture.standardSeed] + seeds {
        for candidate in name == record.name ? [name] : [name, record.name] {
          let published = try DeviceFixture.publishedHardware(seed: seed, name: candidate)
          if deviceHardware.matches(published.withBytes { Secret(copying: $0) }) { return true }
        }
      }
      return false
    }
  }
}
