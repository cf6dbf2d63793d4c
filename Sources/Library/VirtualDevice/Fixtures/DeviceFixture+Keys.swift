import Basics
import KeychainCrypto
import KeychainFormats

extension DeviceFixture {
  /// Where the hardware key, the class keys and the identifiers of a device come from that is made of a fixture.
  public enum Keys: Sendable, Hashable {
    /// Nobody but the device's directory knows them.
    case random
    /// They derive from the fixture's seed and the device's name, so that everybody can compute them: a backup's items of
    /// this device only open wherever a device of the same name is made.
    case published
  }

  /// The seed of a fixture that names none.
  public static let standardSeed: Int64 = 0

  static func publishedRandomness(seed: Int64, name: String) -> SeededRandomSource {
    SeededRandomSource(seed: "\(format) \(seed) \(name)")
  }

  /// The hardware key of the device that this seed and name give, with `Keys.published`. An identifier and a serial
  /// number are drawn before it, as `VirtualDevice.initialize` draws them.
  static func publishedHardware(seed: Int64, name: String) throws(DataProtectionError) -> HardwareUID {
    let random = publishedRandomness(seed: seed, name: name)
    _ = try DeviceIdentity.randomUDID(random)
    _ = try DeviceIdentity.randomSerialNumber(random)
    return try HardwareUID(from: random)
  }
}

extension DeviceSession {
  /// Whether everybody can compute the device's hardware key, so that whatever is bound to it is bound to nothing.
  ///
  /// A device says so itself that was made with published keys. Of one that was made before this was recorded, the key
  /// is compared with those that known seeds give for the device's name.
  ///
  /// - Parameter seeds: Of published fixtures, beside `DeviceFixture.standardSeed`.
  /// - Throws: `.keychain` where the cryptographic library fails.
  public func isHardwareKeyPublished(knownSeeds seeds: some Sequence<Int64> = []) throws(VirtualDeviceError) -> Bool {
    if record.hasPublishedHardwareKey { return true }
    return try reporting { () throws(DataProtectionError) in
      let own = hardware.withBytes { Secret(copying: $0) }
      for seed in [DeviceFixture.standardSeed] + seeds {
        for known in name == record.name ? [name] : [name, record.name] {
          let published = try DeviceFixture.publishedHardware(seed: seed, name: known)
          if own.matches(published.withBytes { Secret(copying: $0) }) { return true }
        }
      }
      return false
    }
  }
}
